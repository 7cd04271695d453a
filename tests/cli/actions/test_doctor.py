"""The checks of the installation."""

from pathlib import Path

from contend.models.providers.weights import DEFAULT_EMBEDDING, EMBEDDINGS, weights_path
from tests.cli.support import Command
from tests.support.model_server import ModelServer


def test_doctor_names_every_fix_and_no_secret(contend: Command) -> None:
    ended = contend.here("doctor")
    assert ended.code == 0
    assert "sk-canary" not in ended.out + ended.err
    findings = {each["what"]: each for each in contend.here("doctor", "--json").json}
    assert findings["OPENAI_API_KEY"]["detail"] == "set"
    assert findings["OPENROUTER_API_KEY"]["detail"] == "not set (optional)"
    assert findings["embedded:smollm2-135m"]["fix"].startswith("contend models pull")
    assert "reachable, 2 models" in findings["ollama"]["detail"]
    assert findings["openai"]["detail"] == "reachable"
    assert "openrouter" not in findings, "it has no key"
    assert findings["tracing"]["detail"] == "off"
    assert all(each["fix"] for each in findings.values() if each["level"] != "ok")
    assert not contend.home.exists()


def test_doctor_sees_a_provider_that_does_not_answer(contend: Command) -> None:
    ended = contend.here("doctor", "--json", OPENAI_BASE_URL="http://127.0.0.1:1/v1")
    found = next(each for each in ended.json if each["what"] == "openai")
    assert (ended.code, found["level"]) == (0, "warn")
    assert "Cannot reach openai at http://127.0.0.1:1/v1" in found["detail"]


def test_doctor_sees_a_refused_key(contend: Command, models: ModelServer) -> None:
    models.api_key = "another"
    found = next(e for e in contend.here("doctor", "--json").json if e["what"] == "openai")
    assert (found["level"], "refused the key" in found["detail"]) == ("warn", True)


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


def test_doctor_tries_the_data_folder(contend: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for unusable in ("/proc/nope", str(tmp_path / "file" / "home")):
        ended = contend.here("doctor", CONTEND_HOME=unusable)
        assert ended.code == 1
        assert f"{unusable} is not writable" in ended.out


def test_doctor_breaks_no_word_in_a_narrow_terminal(contend: Command) -> None:
    ended = contend.here("doctor", COLUMNS="60", FORCE_COLOR="1", TERM="dumb")
    lines = [line for line in ended.out.splitlines() if str(contend.home) not in line]
    assert max(map(len, lines)) <= 60
