"""Shell completion of ids, models and protocols."""

import pytest

from contend.cli.completion import complete_debate, complete_model, complete_protocol
from tests.cli.support import QUESTION, Command, change_database


@pytest.fixture
def contend(contend: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    for name, value in contend.env.items():
        monkeypatch.setenv(name, value)
    return contend


def test_ids_are_offered_with_their_questions_or_titles(contend: Command) -> None:
    assert complete_debate("") == []
    assert not contend.home.exists()
    first, second = (contend.ask_here("--json").json["id"] for _ in range(2))
    contend.here("rename", second, "Monolith")
    found = complete_debate("")
    assert found == [(second[:8], "Monolith"), (first[:8], QUESTION)]
    assert complete_debate(first[:5].upper()) == [(first[:8], QUESTION)]
    assert complete_debate("nothing") == []


def test_completion_offers_available_and_previously_used_models(contend: Command) -> None:
    assert dict(complete_model("o")) == {
        "ollama:m": "Ollama",
        "ollama:other": "Ollama",
        "openai:gpt-5-mini": "its key is set",
    }
    assert "embedded:smollm2-135m" in dict(complete_model("embedded:"))
    contend.ask_here("-q")
    assert dict(complete_model("openai:"))["openai:m"] == "used before"


def test_protocols_are_offered() -> None:
    assert complete_protocol("fo") == ["forecast", "forum"]


def test_completion_offers_nothing_from_unavailable_sources(
    contend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    contend.ask_here("-q")
    change_database(contend, "UPDATE contend_version SET version_num = '9999'")
    assert complete_debate("") == []
    for host in ("127.0.0.1:1", "http://[", "nonsense:port"):
        monkeypatch.setenv("OLLAMA_HOST", host)
        assert all(each.startswith("openai:") for each, _ in complete_model("o"))


@pytest.mark.slow
def test_bash_completion_calls_the_command(contend: Command) -> None:
    debate = contend.ask_here("--json").json["id"]
    for words, offered in (("contend show ", debate[:8]), ("contend ask x -m olla", "ollama:m")):
        asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        ended = contend.spawn(_CONTEND_COMPLETE="complete_bash", **asked)
        assert ended.out.splitlines()[0] == offered
