"""Exporting a debate as a cassette and replaying it without models."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contend import prompts
from contend.graph.errors import Paused
from tests.cli.support import Command, spoken
from tests.support.model_server import ModelServer, Reply
from tests.support.protocols import PROTOCOLS, ask_in, script_of

KEY = "sk-canary-0123456789abcdef"
CUT_OFF = {"OPENAI_BASE_URL": "http://127.0.0.1:9", "OPENAI_API_KEY": ""}


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Reply(""), models=None) as running:
        yield running


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer) -> Command:
    return Command(tmp_path / "home", models)


def _record(contend: Command, models: ModelServer, protocol: str = "adversarial") -> dict[str, Any]:
    models.script = script_of(protocol)
    record: dict[str, Any] = contend(*ask_in(protocol), "--json").json
    exported = contend("export", record["id"], "--format", "cassette", "-o", "tape.json")
    assert exported.code == 0, exported.err
    return record


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> str:
    with ModelServer(lambda _: Reply(""), models=None) as models:
        recorder = Command(tmp_path_factory.mktemp("recorder") / "home", models)
        _record(recorder, models)
        return _path(recorder).read_text("utf-8")


def _path(contend: Command) -> Path:
    return contend.home.parent / "tape.json"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_cassette_replays_on_another_machine_without_models(
    protocol: str, contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    record = _record(contend, models, protocol)
    assert KEY not in _path(contend).read_text("utf-8")
    assert str(contend.home) not in _path(contend).read_text("utf-8")
    elsewhere = Command(tmp_path / "elsewhere", models)
    paid = len(models.calls)
    played = elsewhere("ask", "--cassette", str(_path(contend)), "--json", **CUT_OFF)
    assert played.code == 0, played.err
    assert played.json["id"] != record["id"]
    assert spoken(played.json) == spoken(record)
    assert played.json["final_answer"] == record["final_answer"]
    assert len(models.calls) == paid
    strict = elsewhere("replay", played.json["id"], "--strict", **CUT_OFF)
    assert strict.code == 0, strict.out


def test_accepts_options_that_match_the_recording(
    contend: Command, models: ModelServer, tape: str
) -> None:
    _path(contend).write_text(tape, "utf-8")
    asked = ask_in("adversarial")
    played = contend(*asked, "--cassette", "tape.json", **CUT_OFF)
    assert played.code == 0, played.err
    assert "This is a recorded debate; no model is called." in played.out


OTHERS = {
    "question": (["ask", "Why?"], "The recording answers another question: 'Should a team"),
    "setting": (["ask", "-s", "max_rounds=4"], "other settings: max_rounds was 3, not 4."),
    "model": (["ask", "-m", "openai:other"], "judge_model was 'openai:m', not 'openai:other'"),
    "protocol": (
        ["ask", "-p", "forum"],
        "The recording uses the protocol adversarial, not forum.",
    ),
    "documents": (["ask", "--docs", "x"], "--docs cannot be combined with --cassette."),
    "check": (["ask", "--dry-run"], "--dry-run cannot be combined with --cassette."),
}


@pytest.mark.parametrize("case", OTHERS)
def test_options_that_differ_from_the_recording_are_refused(
    case: str, contend: Command, models: ModelServer, tape: str
) -> None:
    _path(contend).write_text(tape, "utf-8")
    options, said = OTHERS[case]
    refused = contend(*options, "--cassette", "tape.json")
    assert refused.code == 2
    assert said in " ".join(refused.err.split())
    assert not models.calls
    assert contend("list", "--json").json == []


def _change(text: str) -> str:
    document = json.loads(text)
    document["recording"]["calls"][0]["call"]["seconds"] = 99
    return json.dumps(document)


DAMAGED: dict[str, tuple[Callable[[str], str], str]] = {
    "cut off": (lambda text: text[: len(text) // 2], "tape.json is damaged."),
    "changed": (_change, "tape.json is damaged."),
    "newer": (lambda text: text.replace('cassette": 1', 'cassette": 2'), "by a newer release"),
    "other file": (lambda _: "{}", "tape.json is not a cassette."),
    "a list": (lambda _: "[]", "tape.json is not a cassette."),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_cassette_is_refused(case: str, contend: Command, tape: str) -> None:
    change, said = DAMAGED[case]
    _path(contend).write_text(change(tape), "utf-8")
    refused = contend("ask", "--cassette", "tape.json")
    assert refused.code == 2
    assert said in refused.err
    assert contend("list", "--json").json == []


def test_a_missing_cassette_is_refused(contend: Command) -> None:
    refused = contend("ask", "--cassette", "no.json")
    assert (refused.code, "Cannot read no.json" in refused.err) == (2, True)


def test_refuses_to_export_unfinished_steered_or_forked_debates(
    contend: Command, models: ModelServer
) -> None:
    models.script = script_of("adversarial")
    paused = contend(*ask_in("adversarial"), "--pause", "each_round", "--json").json["id"]
    unfinished = contend("export", paused, "--format", "cassette")
    assert "is not finished" in unfinished.err
    contend("resume", paused, "--say", "Mind the cost.", "--finish")
    assert "steered by a person" in contend("export", paused, "--format", "cassette").err
    whole = contend(*ask_in("adversarial"), "--json").json["id"]
    fork = contend("fork", whole, "--at", "1", "--json").json["id"]
    assert "is a fork" in contend("export", fork, "--format", "cassette").err


def test_a_prompt_changed_since_the_recording_is_reported(
    contend: Command, models: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _record(contend, models)
    prompt = tmp_path / "adversarial" / "skeptic.again.md"
    prompt.parent.mkdir()
    prompt.write_text(f"{prompts.load('adversarial/skeptic.again')} Please.", "utf-8")
    monkeypatch.setattr(prompts, "__path__", [*prompts.__path__, str(tmp_path)])
    prompts.load.cache_clear()
    played = contend("ask", "--cassette", "tape.json", **CUT_OFF)
    prompts.load.cache_clear()
    assert played.code == 4
    assert "no answer for this call: r2.critique.skeptic" in played.err
    assert "another version of Contend" in played.err


def test_a_paused_cassette_debate_resumes_from_its_recording(
    contend: Command, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = _record(contend, models)

    def stop(self: Any, given: Any) -> Any:
        raise Paused

    with monkeypatch.context() as patched:
        patched.setattr("contend.debates.run._Run._stream", stop)
        assert contend("ask", "--cassette", "tape.json", **CUT_OFF).code == 3
    (paused,) = [each for each in contend("list", "--json").json if each["status"] == "paused"]
    resumed = contend("resume", paused["id"], "--json", **CUT_OFF)
    assert resumed.code == 0, resumed.err
    assert spoken(resumed.json) == spoken(record)
