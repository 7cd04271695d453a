"""`contend replay`: play back a debate or rerun its code, without any model."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contend import prompts
from tests.cli.support import Command, change_database
from tests.support.model_server import ModelServer, Reply, openai_error
from tests.support.protocols import PROTOCOLS, ask_in, script_of


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Reply(""), models=None) as running:
        yield running


def _debate(contend: Command, models: ModelServer, protocol: str, *more: str) -> str:
    models.script = script_of(protocol)
    asked = contend(*ask_in(protocol), *more, "--json")
    assert asked.code in (0, 3), asked.err
    models.stop()  # from here on no model can be reached
    return str(asked.json["id"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_strict_replay_finds_no_differences(
    protocol: str, contend: Command, models: ModelServer
) -> None:
    debate = _debate(contend, models, protocol)
    replayed = contend("replay", debate, "--strict", "--json")
    assert replayed.json["differences"] == []
    assert replayed.json["calls"] == len(models.calls)
    assert replayed.code == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_events_are_played_back(
    protocol: str, contend: Command, models: ModelServer
) -> None:
    models.script = script_of(protocol)
    lines = contend(*ask_in(protocol), "--events").out.splitlines()
    events = [json.loads(line) for line in lines]
    models.stop()
    played = contend("replay", events[0]["debate_id"], "--events", "--speed", "1e9")
    assert _said(map(json.loads, played.out.splitlines())) == _said(events)


def _said(events: Iterable[dict[str, object]]) -> list[tuple[object, ...]]:
    """Return the events without times and chunks."""
    return [
        (event["event"], event["round"], event["content"], event["metadata"])
        for event in events
        if not str(event["event"]).endswith("_chunk")
    ]


def test_replay_shows_the_debate(contend: Command, models: ModelServer) -> None:
    debate = _debate(contend, models, "adversarial")
    shown = contend("replay", debate, "--speed", "1e9").out
    assert "no model is called" in shown
    assert "This is proposal 1: keep it together." in shown
    assert "Round 2" in shown
    assert f"contend show {debate[:8]}" in shown


def test_replay_streams_a_turn_whose_chunks_were_deleted(
    contend: Command, models: ModelServer
) -> None:
    debate = _debate(contend, models, "adversarial")
    change_database(contend, "DELETE FROM debate_events WHERE is_chunk")
    played = contend("replay", debate, "--events", "--speed", "1e9").out
    events = [json.loads(line) for line in played.splitlines()]
    first = [each for each in events if each["event"] == "proposer_chunk" and each["round"] == 1]
    assert "".join(each["content"] for each in first) == "This is proposal 1: keep it together."
    assert len(first) > 1
    assert [each["ts"] for each in events] == sorted(each["ts"] for each in events)


def test_strict_replay_reports_a_changed_prompt(
    contend: Command, models: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    debate = _debate(contend, models, "adversarial")
    prompt = tmp_path / "adversarial" / "skeptic.again.md"
    prompt.parent.mkdir()
    prompt.write_text(f"{prompts.load('adversarial/skeptic.again')} Please.", "utf-8")
    monkeypatch.setattr(prompts, "__path__", [*prompts.__path__, str(tmp_path)])
    prompts.load.cache_clear()
    replayed = contend("replay", debate, "--strict")
    prompts.load.cache_clear()
    assert replayed.code == 5
    assert "Round 2, critique: another prompt than the recorded one" in replayed.out
    assert "r2.critique.skeptic" in replayed.out
    assert "Round 1" not in replayed.out


def test_strict_replay_reports_a_changed_setting(contend: Command, models: ModelServer) -> None:
    debate = _debate(contend, models, "adversarial")
    fewer = "UPDATE debates SET settings = json_set(settings, '$.max_rounds', ?, '$.min_rounds', ?)"
    change_database(contend, fewer, 2, 2)
    replayed = contend("replay", debate, "--strict")
    assert replayed.code == 5
    assert "Round 2, judge_continue: round was 3 and is now 2" in replayed.out


def test_strict_replay_includes_user_comments(contend: Command, models: ModelServer) -> None:
    models.script = script_of("adversarial")
    paused = contend(*ask_in("adversarial"), "--pause", "each_round", "--json").json
    contend("resume", paused["id"], "--say", "Think of the cost.", "--quiet")
    contend("resume", paused["id"], "--finish", "--quiet")
    models.stop()
    replayed = contend("replay", paused["id"], "--strict", "--json")
    assert replayed.json["differences"] == []
    assert replayed.json["steps"] > 6


@pytest.mark.parametrize("options", [["--say", "Hello."], ["--finish"], []])
def test_strict_replay_of_a_failed_and_resumed_debate_succeeds(
    options: list[str], contend: Command, models: ModelServer
) -> None:
    script = script_of("adversarial")
    models.script = lambda request: (
        openai_error(400, "No.") if "This is critique 1" in request.user else script(request)
    )
    assert contend(*ask_in("adversarial"), "--quiet").code == 4
    models.script = script
    debate = contend("list", "--json").json[0]["id"]
    assert contend("resume", debate, *options, "--quiet").code == 0
    models.stop()
    replayed = contend("replay", debate, "--strict", "--json")
    assert replayed.json["differences"] == []


def test_strict_replay_of_a_debate_rated_later_succeeds(
    contend: Command, models: ModelServer
) -> None:
    script = script_of("adversarial")
    models.script = lambda request: (
        openai_error(400, "No.") if "You are the judge" in request.instructions else script(request)
    )
    asked = contend(*ask_in("adversarial"), "--json")
    assert (asked.code, asked.json["auto_score"]) == (0, None)
    models.script = script
    assert contend("rate", asked.json["id"], "--auto").code == 0
    models.stop()
    replayed = contend("replay", asked.json["id"], "--strict", "--json")
    assert replayed.json["differences"] == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_fork_is_played_from_the_beginning(
    protocol: str, contend: Command, models: ModelServer
) -> None:
    parent = _debate(contend, models, protocol)
    models.start()
    contend.env["OPENAI_BASE_URL"] = models.openai_url
    fork = contend("fork", parent, "--at", "1", "--json").json["id"]
    change_database(contend, "DELETE FROM debate_events WHERE is_chunk")
    quick = ["--events", "--speed", "1e9"]
    lines = [contend("replay", each, *quick).out.splitlines() for each in (parent, fork)]
    played = [list(map(json.loads, each)) for each in lines]
    # Seats that speak at once end in another order each time.
    assert sorted(_names(played[1])) == sorted(_names(played[0]))
    assert played[1][0]["event"] == "debate_start"
    rounds = [event["round"] for event in played[1] if event["event"] == "round_start"]
    assert rounds == sorted(rounds)
    times = [event["ts"] for event in played[1]]
    assert times == sorted(times)
    contend("delete", parent, "--yes")
    assert contend("replay", fork, *quick).out.splitlines() == lines[1]


def _names(events: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    of_a_run = ("resumed", "paused")
    return [
        (event["event"], event["round"] or 0, event["metadata"].get("turn", ""), event["content"])
        for event in events
        if event["event"] not in of_a_run
    ]


def test_without_a_recording_only_events_are_played(contend: Command, models: ModelServer) -> None:
    debate = _debate(contend, models, "adversarial")
    change_database(contend, "DELETE FROM debate_calls")
    refused = contend("replay", debate, "--strict")
    assert refused.code == 2
    assert "has no recording" in refused.err
    assert contend("replay", debate, "--speed", "1e9").code == 0


def test_recordings_contain_no_key_and_are_deleted_with_their_debate(
    contend: Command, models: ModelServer
) -> None:
    debate = _debate(contend, models, "adversarial")
    assert b"canary" not in (contend.home / "contend.db").read_bytes()
    assert contend("delete", debate, "--yes").code == 0
    refused = contend("replay", debate)
    assert refused.code == 2
