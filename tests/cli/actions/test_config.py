from pathlib import Path

from contend.models.providers.weights import default_chat_model
from tests.cli.support import Command


def test_config_says_where_each_value_comes_from(contend: Command, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("maxRounds: 7\nminRounds: 2\n")
    arguments = ["--config", str(file), "--set", "min_rounds=4", "--model", "openai:m"]
    arguments += ["--set", "judge_model=ollama:other"]
    ended = contend.here("config", "--json", *arguments, CONTEND_MAX_RETRIES="0")
    found = ended.json["settings"]
    assert found["max_rounds"] == {"value": 7, "source": str(file)}
    assert found["min_rounds"] == {"value": 4, "source": "--set"}
    assert found["max_retries"] == {"value": 0, "source": "CONTEND_MAX_RETRIES"}
    assert found["skeptic_model"] == {"value": "openai:m", "source": "--model"}
    assert found["judge_model"] == {"value": "ollama:other", "source": "--set"}
    assert found["pause"] == {"value": "never", "source": "default"}
    shown = contend.here("config", OPENAI_API_KEY="").out
    assert "max_rounds = 5  (default)\n" in shown
    assert "context_tokens = null  (default)\n" in shown
    assert "skeptic_fallbacks = []  (default)\n" in shown
    built_in = default_chat_model(contend.home).name
    assert f"otherwise embedded:{built_in} (no API key is set)." in shown
    assert "Ollama has it, otherwise embedded:minilm-l6. Prices: the built-in table (" in shown
    assert "OPENAI_API_KEY is set" in contend.here("config").out
    assert "Models: as set above." in contend.here("config", "-m", "openai:m").out
