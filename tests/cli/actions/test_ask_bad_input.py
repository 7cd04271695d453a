"""Bad input: one error line, exit code 2, no model call, nothing left on disk."""

import re
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from contend.cli.main import run
from tests.cli.support import ASK, QUESTION, Command
from tests.models.providers.test_registry import HTML, answering
from tests.support.model_server import ModelServer

REFUSED = {
    "empty": (["ask", ""], 'The question is empty. Give one in quotes: contend ask "...".'),
    "blank": (["ask", " \n\t "], "The question is empty."),
    "too long": (["ask", "x" * 100_001], "100,001 characters; the limit is 100,000"),
    "no question": (["ask"], "Missing argument 'QUESTION'. Put the question in quotes: "),
    "no quotes": (["ask", "a", "b", "c"], "(b c). Put the question in quotes: "),
    "protocol": (["ask", QUESTION, "-p", "adverserial"], "Did you mean 'adversarial'?"),
    "setting": (["ask", QUESTION, "-s", "max_round=3"], "Did you mean 'max_rounds'?"),
    "no setting": (["ask", QUESTION, "-s"], "requires an argument. See `contend ask --help`."),
    "no value": (["ask", QUESTION, "-s", "max_rounds"], "NAME=VALUE"),
    "out of range": (["ask", QUESTION, "-s", "max_rounds=99"], "between 1 and 50, not 99"),
    "no number": (["ask", QUESTION, "-s", "max_rounds=many"], "must be a whole number, not many"),
    "min over max": (["ask", QUESTION, "-s", "max_rounds=2"], "min_rounds (3) is larger than"),
    "pause": (["ask", QUESTION, "--pause", "often"], "'--pause': 'often' is not one of"),
    "provider": (["ask", QUESTION, "-m", "opnai:m"], "Did you mean 'openai:m'?"),
    "ollama model": (["ask", QUESTION, "-m", "ollama:othr"], "ollama pull othr"),
    "option": (["ask", QUESTION, "--modell", "m"], "--modell. Did you mean --model? See `contend"),
    "both outputs": (["ask", QUESTION, "--json", "--events"], "use only one of them"),
    "no such document": (["ask", QUESTION, "--docs", "notes"], "notes"),
    "no such image": (["ask", QUESTION, "--image", "chart.png"], "Cannot read chart.png"),
    "no config": (["ask", QUESTION, "--config", "no.yaml"], "no.yaml cannot be read: No such file"),
    "show": (["show", "0000"], "No debate has the id '0000'"),
    "resume": (["resume", "0000"], "No debate has the id '0000'"),
    "rate": (["rate", "0000", "11"], "between 1 and 10; you gave 11"),
    "no rating": (["rate", "0000", "good"], "'RATING': it must be a whole number. See `contend r"),
    "graph": (["graph", "forvm"], "There is no protocol 'forvm'"),
    "embedded model": (["models", "pull", "smollm2-135n"], "embedded:smollm2-135m"),
    "rounds": (["ask", QUESTION, "--rounds", "3"], "--set max_rounds=3. See `contend ask"),
    "budget": (["ask", QUESTION, "--budget", "1"], "A budget of 1 token does not pay for one call"),
    "format": (["ask", QUESTION, "--format", "html"], "contend export ID --format html"),
    "no command": ([QUESTION], f'To debate a question, use ask: contend ask "{QUESTION}".'),
    "delete": (["delete", "0000", "--yes"], "No debate has the id '0000'"),
    "command": (["aks"], "No such command 'aks'. Did you mean 'ask'? See `contend --help`."),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_bad_arguments_are_refused_in_one_line(
    contend: Command, models: ModelServer, tmp_path: Path, arguments: list[str], said: str
) -> None:
    _assert_refused(contend, models, tmp_path, arguments, said)


def _assert_refused(
    contend: Command,
    models: ModelServer,
    folder: Path,
    arguments: list[str],
    said: str,
    **env: str,
) -> None:
    before = sorted(folder.rglob("*"))
    ended = contend.here(*arguments, **env)
    assert (ended.code, ended.out) == (2, "")
    assert re.fullmatch(r"Error: [^\n]+\n", ended.err), ended.err
    assert said in ended.err
    assert models.calls == []
    assert sorted(folder.rglob("*")) == before


def test_refuses_a_missing_key_and_unreachable_servers(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    nobody = "http://127.0.0.1:1"
    ask = ["ask", QUESTION, "-m"]
    for model, said, env in [
        ("openai:m", "OPENAI_API_KEY is not set", {"OPENAI_API_KEY": ""}),
        ("openai:m", "Cannot reach openai", {"OPENAI_BASE_URL": f"{nobody}/v1"}),
        ("ollama:m", "Error: Ollama is not running", {"OLLAMA_HOST": nobody}),
        (
            "foo:bar",
            "'foo:bar' was taken for an Ollama model, because there",
            {"OLLAMA_HOST": nobody},
        ),
        (
            "foo:bar",
            "there is no provider 'foo'. Write a model as PROVIDER:",
            {"OLLAMA_HOST": nobody},
        ),
        ("gpt5", "'gpt5' was taken for an Ollama model, because it has", {"OLLAMA_HOST": nobody}),
        ("gpt5", "because it has no provider", {}),
    ]:
        _assert_refused(contend, models, tmp_path, [*ask, model], said, **env)


def test_a_missing_key_names_the_seat(contend: Command, models: ModelServer) -> None:
    wanted = ["-m", "ollama:m", "-s", "skeptic_model=openai:m"]
    ended = contend.here("ask", QUESTION, *wanted, OPENAI_API_KEY="")
    assert ended.code == 2
    assert ended.err.endswith(" Needed by: Skeptic.\n")


def test_refuses_a_server_that_is_not_the_named_provider(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    ask = ["ask", QUESTION, "-m"]
    with answering({"*": HTML}) as other:
        for model, said, env in [
            ("openai:m", "is not openai-compatible", {"OPENAI_BASE_URL": f"{other}/v1"}),
            ("ollama:m", "OLLAMA_HOST is not Ollama", {"OLLAMA_HOST": other}),
            ("ollama:m", "OLLAMA_HOST is not a valid address", {"OLLAMA_HOST": "127.0.0.1:99999"}),
        ]:
            _assert_refused(contend, models, tmp_path, [*ask, model], said, **env)


def test_refuses_a_damaged_model_file(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "damaged.gguf"
    file.write_bytes(b"GGUF" + b"\xff" * 64)
    arguments = ["ask", QUESTION, "-m", f"embedded:{file}"]
    _assert_refused(contend, models, tmp_path, arguments, "Cannot load the model file damaged.gguf")


def test_invalid_ollama_host_is_ignored_when_ollama_is_not_used(contend: Command) -> None:
    with answering({"*": HTML}) as other:
        for host in (other, "127.0.0.1:99999"):
            assert contend.here(*ASK, OLLAMA_HOST=host).code == 0
            ended = contend.here("doctor", OLLAMA_HOST=host)
            assert "Traceback" not in ended.err
            assert "not reachable" in ended.out + ended.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"max_rounds: [", "is not valid YAML (line 1"),
        (b"- max_rounds", "must hold NAME: VALUE lines"),
        (b"max_rounds: \xff", "is not UTF-8 text"),
        (b"skeptic_modle: ollama:m", "Did you mean 'skeptic_model'?"),
    ],
)
def test_refuses_an_invalid_config_file(
    contend: Command, models: ModelServer, tmp_path: Path, text: bytes, said: str
) -> None:
    file = tmp_path / "debate.yaml"
    file.write_bytes(text)
    _assert_refused(contend, models, tmp_path, ["ask", QUESTION, "--config", str(file)], said)


def test_refuses_a_data_folder_that_cannot_be_created(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    arguments = ["ask", QUESTION, "-m", "openai:m"]
    said = "Set CONTEND_HOME to another folder."
    _assert_refused(contend, models, tmp_path, arguments, said, CONTEND_HOME=str(blocked / "home"))


def test_separate_process_prints_an_error_in_one_line(contend: Command) -> None:
    ended = contend("ask", QUESTION, "--no-such-option")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("Error: No such option")


def test_bug_is_reported_in_one_line_with_a_traceback_only_on_request(
    contend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the sum of nothing")

    monkeypatch.setattr("contend.cli.actions.config.configure", broken)
    ended = contend.here("config")
    assert ended.code == 1
    assert ended.err == (
        "Error: ZeroDivisionError: the sum of nothing. Run again with --debug for a traceback.\n"
    )
    with pytest.raises(AssertionError, match="Traceback"):
        contend.here("config", CONTEND_DEBUG="1")


def test_a_traceback_has_no_key_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("the key is canary-key-9876")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key-9876")
    monkeypatch.setattr("contend.cli.actions.config.configure", broken)
    assert run(["--debug", "config"]) == 1
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "ZeroDivisionError: the key is ***" in said
    assert "canary" not in said


def test_refuses_a_question_that_is_not_utf8(contend: Command, models: ModelServer) -> None:
    piped = SimpleNamespace(buffer=BytesIO(b"\xff\xfe"), isatty=lambda: False)
    with patch("contend.cli.actions.ask.sys.stdin", piped):
        ended = contend.here("ask", "-", "-m", "openai:m")
    assert (ended.code, ended.err) == (2, "Error: The question on stdin is not UTF-8 text.\n")
    assert models.calls == []


@pytest.mark.parametrize("address", ["htp:/foo", "http://h\n/v1", "http://127.0.0.1:99999"])
def test_refuses_a_malformed_provider_address(contend: Command, address: str) -> None:
    ended = contend.here(*ASK, OPENAI_BASE_URL=address)
    assert ended.code == 2
    assert ended.err.startswith("Error: OPENAI_BASE_URL is not a valid address: ")
    assert ended.err.count("\n") == 1
