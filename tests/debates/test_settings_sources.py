"""Reading settings from flags, files and the environment."""

from pathlib import Path
from typing import Any

import pytest

from contend.debates.settings_sources import Configured, configure, parse_assignments
from contend.graph.errors import BadInput
from contend.graph.settings import AdversarialSettings


def _configured(
    flags: dict[str, Any] | None = None,
    model: str | None = None,
    config: Path | None = None,
    **environ: str,
) -> Configured:
    return configure("adversarial", flags or {}, model, config, environ)


def test_flags_override_file_then_environment_then_defaults(tmp_path: Path) -> None:
    file = tmp_path / "debate.yaml"
    file.write_text("max_rounds: 8\nmin_rounds: 2\nskepticTemperature: 1\n")
    found = _configured(
        {"max_rounds": "9"},
        None,
        file,
        CONTEND_MAX_ROUNDS="7",
        CONTEND_MIN_ROUNDS="1",
        CONTEND_MAX_RETRIES="0",
    )
    settings = found.settings
    assert isinstance(settings, AdversarialSettings)
    assert (settings.max_rounds, settings.min_rounds, settings.max_retries) == (9, 2, 0)
    assert settings.skeptic_temperature == 1
    assert found.sources == {
        "max_rounds": "--set",
        "min_rounds": str(file),
        "skeptic_temperature": str(file),
        "max_retries": "CONTEND_MAX_RETRIES",
    }
    assert settings.model_fields_set == set(found.sources)
    assert found.described()["pause"] == {"value": "never", "source": "default"}


def test_reads_the_config_in_the_data_folder_unless_a_file_is_given(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.yaml").write_text("max_rounds: 6\n")
    assert _configured().settings.model_fields_set == {"max_rounds"}
    other = tmp_path / "other.yaml"
    other.write_text("")
    assert _configured(config=other).settings.model_fields_set == set()


def test_model_applies_to_seats_without_their_own_model() -> None:
    found = _configured({"judgeModel": "ollama:b"}, "openai:a", CONTEND_SKEPTIC_MODEL="ollama:c")
    models = {seat.id: seat.model for seat in found.settings.build_seats()}
    assert models == {
        "proposer": "openai:a",
        "skeptic": "ollama:c",
        "synthesizer": "openai:a",
        "judge": "ollama:b",
    }


def test_parses_text_by_the_type_of_the_setting() -> None:
    flags = {
        "proposer_model": "1",
        "proposer_fallbacks": "ollama:a, openai:b",
        "skeptic_fallbacks": "[ollama:c:7b]",
        "judge_fallbacks": "",
        "ready_respects_min_rounds": "yes",
        "context_tokens": "null",
        "prices": "{'openai:a': [1, 2.5]}",
    }
    settings = configure("adversarial", flags, None, None, {}).settings
    assert isinstance(settings, AdversarialSettings)
    assert settings.proposer_model == "1"
    assert settings.proposer_fallbacks == ("ollama:a", "openai:b")
    assert settings.skeptic_fallbacks == ("ollama:c:7b",)
    assert settings.judge_fallbacks == ()
    assert settings.ready_respects_min_rounds
    assert settings.context_tokens is None
    assert settings.prices == {"openai:a": (1.0, 2.5)}


def test_unknown_variables_are_reported_and_ignored() -> None:
    found = _configured(CONTEND_MAX_ROUND="3", CONTEND_HOME="x", CONTEND_DEBUG="1", HOME="y")
    assert found.notices == [
        "CONTEND_MAX_ROUND is not a setting of adversarial and was ignored."
        " Did you mean 'max_rounds'?"
    ]
    assert found.settings.model_fields_set == set()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("max_rounds", "99", "max_rounds must be between 1 and 50, not 99 (--set)."),
        ("max_rounds", "3.5", "max_rounds must be a whole number, not 3.5 (--set)."),
        ("max_rounds", "true", "max_rounds must be a number, not true (--set)."),
        ("max_rounds", "", "max_rounds must be a whole number, not nothing (--set)."),
        ("max_rounds", "{", "max_rounds (--set) cannot be read: '{'."),
        ("retry_wait", "0", "retry_wait must be more than 0, not 0 (--set)."),
        ("idle_timeout", ".inf", "idle_timeout must be a number, not inf (--set)."),
        ("idle_timeout", "inf", "idle_timeout must be a number, not inf (--set)."),
        ("early_stop_score", ".nan", "early_stop_score must be a number, not nan (--set)."),
        ("context_tokens", "3", "context_tokens must be at least 512, not 3 (--set)."),
        ("max_retries", "-1", "max_retries must be between 0 and 10, not -1 (--set)."),
        ("ready_respects_min_rounds", "so", "must be true or false, not so (--set)."),
        ("pause", "often", "must be one of never, each_round or before_synthesis, not often"),
        ("prices", "5", "prices must be a mapping, not 5 (--set)."),
        ("skeptic_fallbacks", "5", "skeptic_fallbacks must be a list, not 5 (--set)."),
        ("max_rounds", "2", "min_rounds (3) is larger than max_rounds (2). Set both"),
        ("roundsMax", "2", "adversarial has no setting 'roundsMax' (--set)."),
    ],
)
def test_invalid_values_are_reported_in_one_line(name: str, value: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        _configured({name: value})
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_error_names_the_source_of_an_invalid_value(tmp_path: Path) -> None:
    file = tmp_path / "debate.yaml"
    file.write_text("max_rounds: 51\n")
    with pytest.raises(BadInput, match=r"between 1 and 50, not 51 \(.*debate\.yaml\)"):
        _configured(config=file)
    with pytest.raises(BadInput, match=r"not x \(CONTEND_MAX_ROUNDS\)"):
        _configured(CONTEND_MAX_ROUNDS="x")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: [", "not valid YAML (line 1"),
        (b"a: &a [*a]", "not valid YAML"),
        (b"- a", "NAME: VALUE"),
        (b"7", "NAME: VALUE"),
        (b"\xff\xfe", "not UTF-8"),
        (b"1: 2", "no setting '1'"),
    ],
)
def test_reports_an_invalid_config_file(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "debate.yaml"
    file.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        _configured(config=file)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_reports_a_missing_file_a_folder_and_an_unknown_protocol(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        _configured(config=tmp_path / "none.yaml")
    with pytest.raises(BadInput, match="Is a directory"):
        _configured(config=tmp_path)
    with pytest.raises(BadInput, match=r"no protocol 'adversary'\. Did you mean 'adversarial'\?"):
        configure("adversary", {}, None, None, {})


def test_parses_assignments() -> None:
    assert parse_assignments(["a=1", " b = c=d ", "a=2"]) == {"a": "2", "b": " c=d "}
    for wrong in ("a", "=1", ""):
        with pytest.raises(BadInput, match="NAME=VALUE"):
            parse_assignments([wrong])
