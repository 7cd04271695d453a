from datetime import datetime
from pathlib import Path

import pytest

from contend.cli.actions import doctor
from contend.models.providers.weights import DEFAULT_EMBEDDING, EMBEDDINGS, weights_path
from contend.service.address import ServiceState
from tests.cli.support import Command, break_table, change_database
from tests.support.model_server import ModelServer


def test_doctor_names_every_fix_and_no_secret(contend: Command) -> None:
    ended = contend.here("doctor")
    assert ended.code == 0
    assert "sk-canary" not in ended.out + ended.err
    findings = {each["what"]: each for each in contend.here("doctor", "--json").json}
    assert findings["OPENAI_API_KEY"]["detail"] == "set in the environment"
    assert findings["OPENROUTER_API_KEY"]["detail"] == "not set (optional)"
    assert findings["embedded:minilm-l6"]["fix"].startswith("run contend models pull")
    assert "reachable, 2 models" in findings["ollama"]["detail"]
    assert findings["openai"]["detail"] == "reachable"
    assert "openrouter" not in findings, "it has no key"
    assert findings["tracing"]["detail"] == "off"
    assert all(each["fix"] for each in findings.values() if each["level"] != "ok")
    assert not contend.home.exists()


def test_doctor_shows_the_model_first_and_then_what_needs_a_fix(contend: Command) -> None:
    lines = contend.here("doctor").out.splitlines()
    assert "No model chosen; using openai:gpt-5-mini, because OPENAI_API_KEY is set." in lines[0]
    levels = [each["level"] for each in contend.here("doctor", "--json").json][1:]
    assert levels == sorted(levels, key=["problem", "warn", "ok"].index)
    assert "warn" in levels
    assert not any("langgraph" in line for line in lines)
    assert "langgraph " in contend.here("doctor", "--verbose").out
    chosen = contend.here("doctor", CONTEND_PROPOSER_MODEL="openai:m").out.splitlines()[0]
    assert "No model chosen for Skeptic, Synthesizer, Judge; using openai:m" in chosen


def test_doctor_names_a_setting_that_ask_would_refuse(contend: Command) -> None:
    ended = contend.here("doctor", CONTEND_MAX_ROUNDS="many")
    assert ended.code == 1
    assert ended.out.startswith("problem default model")
    assert "max_rounds" in ended.out.splitlines()[0].lower()


def test_doctor_sees_a_provider_that_does_not_answer(contend: Command) -> None:
    ended = contend.here("doctor", "--json", OPENAI_BASE_URL="http://127.0.0.1:1/v1")
    found = next(each for each in ended.json if each["what"] == "openai")
    assert (ended.code, found["level"]) == (0, "warn")
    assert "Cannot reach openai at http://127.0.0.1:1/v1" in found["detail"]


def test_doctor_sees_a_refused_key(contend: Command, models: ModelServer) -> None:
    models.api_key = "another"
    found = next(e for e in contend.here("doctor", "--json").json if e["what"] == "openai")
    assert (found["level"], "refused the key" in found["detail"]) == ("warn", True)


PROBE = datetime(2027, 3, 1, 9, 31, 5)  # noqa: DTZ001 - local time, as it is shown


@pytest.mark.parametrize(
    ("state", "level", "said"),
    [
        (None, None, ""),
        (ServiceState("http://127.0.0.1:8000", None, []), "ok", "8000 and is ready"),
        (
            ServiceState("http://127.0.0.1:8000", None, [("openai", PROBE)]),
            "warn",
            "after repeated failures it does not call openai until 09:31:05",
        ),
        (
            ServiceState("http://127.0.0.1:8000", "No model provider answers.", []),
            "warn",
            "runs at http://127.0.0.1:8000. No model provider answers.",
        ),
    ],
)
def test_doctor_shows_the_providers_that_a_service_does_not_call(
    contend: Command,
    state: ServiceState | None,
    level: str | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "running_service", lambda: state)
    ended = contend.here("doctor", "--json")
    found = [each for each in ended.json if each["what"] == "service"]
    assert [each["level"] for each in found] == ([level] if level else [])
    assert all(said in each["detail"] for each in found)
    assert ended.code == 0


def test_doctor_sees_damaged_weights(contend: Command) -> None:
    (contend.home / "models").mkdir(parents=True)
    for file in EMBEDDINGS[DEFAULT_EMBEDDING]:
        with weights_path(file, contend.home).open("wb") as sink:
            sink.truncate(file.size)
    findings = {each["what"]: each for each in contend.here("doctor", "--json").json}
    found = findings["embedded:minilm-l6"]
    assert (found["level"], "checksum" in found["detail"]) == ("problem", True)
    assert "contend models pull minilm-l6" in found["fix"]


def test_doctor_sees_a_broken_database_and_tracing(contend: Command) -> None:
    contend.home.mkdir()
    (contend.home / "contend.db").write_bytes(b"not a database" * 100)
    ended = contend.here("doctor", LANGSMITH_TRACING="true", OLLAMA_HOST="http://127.0.0.1:1")
    assert ended.code == 1
    assert "problem database" in " ".join(ended.out.split())
    assert "debates are sent to LangSmith" in ended.out
    assert "not reachable" in ended.out
    listed = contend.here("list")
    assert listed.code == 2
    assert "Cannot open the" in listed.err


def _database(contend: Command) -> tuple[str, str]:
    ended = contend.here("doctor", "--json")
    (found,) = [each for each in ended.json if each["what"] == "database"]
    assert ended.code == (1 if found["level"] == "problem" else 0)
    return found["level"], f"{found['detail']} fix: {found['fix']}"


def test_doctor_finds_damaged_debates(contend: Command) -> None:
    debate = contend.ask_here("--json").json["id"]
    contend.ask_here()
    assert _database(contend) == ("ok", "SQLite, 2 debates fix: ")
    change_database(contend, "UPDATE debate_turns SET turn = '{}' WHERE debate_id = ?", debate)
    level, said = _database(contend)
    assert (level, said.partition(" fix: ")[0]) == (
        "problem",
        f"SQLite, 2 debates; damaged: {debate}",
    )
    assert "contend prune --damaged" in said


def test_doctor_reports_a_damaged_database_file(contend: Command) -> None:
    contend.ask_here()
    break_table(contend, "writes")
    level, said = _database(contend)
    assert level == "problem"
    assert "the file is damaged" in said


def test_doctor_reports_a_database_of_a_newer_release(contend: Command) -> None:
    contend.ask_here()
    change_database(contend, "UPDATE contend_version SET version_num = '9000'")
    level, said = _database(contend)
    assert level == "problem"
    assert "newer version of Contend" in said
    assert "move" not in said


def test_doctor_reports_an_unwritable_data_folder(contend: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for unusable in ("/proc/nope", str(tmp_path / "file" / "home")):
        ended = contend.here("doctor", CONTEND_HOME=unusable)
        assert ended.code == 1
        assert f"{unusable} is not writable" in ended.out


def test_doctor_fits_a_narrow_terminal(contend: Command) -> None:
    ended = contend.here("doctor", COLUMNS="60", FORCE_COLOR="1", TERM="dumb")
    lines = [line for line in ended.out.splitlines() if str(contend.home) not in line]
    assert max(map(len, lines)) <= 60
