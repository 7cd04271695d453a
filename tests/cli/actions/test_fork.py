"""`contend fork`: continue a stored debate differently, as a new debate."""

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contend.debates.history import opened_graph, read_history
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.graph.errors import DatabaseUnavailable
from contend.graph.state import DebateState
from tests.cli.support import Command, spoken
from tests.support.model_server import ModelServer, Reply, openai_error
from tests.support.protocols import PROTOCOLS, ask_in, script_of


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Reply(""), models=None) as running:
        yield running


def _debate(contend: Command, models: ModelServer, protocol: str) -> dict[str, Any]:
    models.script = script_of(protocol)
    record: dict[str, Any] = contend(*ask_in(protocol), "--json").json
    return record


def _until(record: dict[str, Any], last_round: int) -> list[tuple[str, str]]:
    after = {"synthesize", "score", "verdict"}
    turns = [t for t in record["turns"] if t["round"] <= last_round and t["phase"] not in after]
    return spoken({"turns": turns})


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fork_shares_earlier_rounds_without_new_calls(
    protocol: str, contend: Command, models: ModelServer
) -> None:
    parent = _debate(contend, models, protocol)
    before = contend("export", parent["id"], "--format", "json").out
    paid = len(models.calls)
    forked = contend("fork", parent["id"], "--at", "1", "--json")
    assert forked.code == 0, forked.err
    assert forked.json["id"] != parent["id"]
    assert _until(forked.json, 1) == _until(parent, 1)
    assert spoken(forked.json) == spoken(parent)
    shared = len(_until(parent, 1))
    assert len(models.calls) - paid <= paid - shared
    assert contend("export", parent["id"], "--format", "json").out == before


def test_fork_uses_another_skeptic_from_round_three_on(
    contend: Command, models: ModelServer
) -> None:
    parent = _debate(contend, models, "adversarial")
    paid = len(models.calls)
    forked = contend(
        "fork", parent["id"], "--at", "2", "--set", "skeptic_model=openai:other", "--json"
    ).json
    assert [call.request.model for call in models.calls[paid:]] == ["m", "other", "m", "m"]
    used = {turn["round"]: turn["model"] for turn in forked["turns"] if turn["role"] == "skeptic"}
    assert used == {1: "openai:m", 2: "openai:m", 3: "openai:other"}


def test_fork_can_add_rounds_after_the_last_one(contend: Command, models: ModelServer) -> None:
    parent = _debate(contend, models, "adversarial")
    assert parent["stop_reason"] == "max_rounds"
    more = ["--set", "max_rounds=4", "--set", "min_rounds=4"]
    forked = contend("fork", parent["id"], "--at", "3", *more, "--json").json
    assert max(turn["round"] for turn in forked["turns"]) == 4


def test_a_fork_begins_with_its_own_settings(
    contend: Command, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEND_HOME", str(contend.home))
    parent = _debate(contend, models, "adversarial")
    more = ["--set", "max_rounds=4", "--set", "skeptic_model=openai:other"]
    forked = contend("fork", parent["id"], "--at", "2", *more, "--json").json
    with closing(open_repository()) as records:
        first = asyncio.run(_first_state(records.find(forked["id"])))
    kept = first["settings"]
    assert (kept["max_rounds"], kept["skeptic_model"]) == (4, "openai:other")


async def _first_state(fork: StoredDebate) -> DebateState:
    async with opened_graph(fork) as graph:
        return (await read_history(graph, fork.id))[0].state


def test_an_edited_critique_ends_the_debate_earlier(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    parent = _debate(contend, models, "adversarial")
    turn = next(each for each in parent["turns"] if each["id"] == "r1.critique.skeptic")
    assert parent["stop"]["round"] == 3
    text = tmp_path / "reply.md"
    block = {"nonce": _nonce(contend, parent["id"]), "ready": True, "score": 9, "points": []}
    text.write_text(f"All is well.\n\n```json\n{json.dumps(block)}\n```", "utf-8")
    paid = len(models.calls)
    forked = contend("fork", parent["id"], "--edit", turn["id"], "--text-file", str(text), "--json")
    assert forked.code == 0, forked.err
    critique = next(each for each in forked.json["turns"] if each["id"] == turn["id"])
    assert (critique["text"], critique["status"]) == ("All is well.", "human")
    assert forked.json["stop"] == {**forked.json["stop"], "reason": "skeptic_ready", "round": 1}
    assert len(models.calls) - paid == 2, "the answer and its score"
    assert contend("replay", forked.json["id"], "--strict").code == 0


def _nonce(contend: Command, debate: str) -> str:
    """Return the nonce in the text that the editor shows."""
    shown = contend("fork", debate, "--edit", "r1.critique.skeptic", EDITOR="sh -c 'cat $0 >seen'")
    assert "was not changed" in shown.err
    seen = (contend.home.parent / "seen").read_text("utf-8")
    found = re.search(r'"nonce": "(\w+)"', seen)
    assert found
    return found[1]


def test_an_editor_that_fails_changes_nothing(contend: Command, models: ModelServer) -> None:
    parent = _debate(contend, models, "adversarial")
    refused = contend("fork", parent["id"], "--edit", "r1.propose.proposer", EDITOR="false")
    assert refused.code == 2
    assert "Set EDITOR to your editor, or use --text-file." in refused.err


def test_edit_that_removes_the_control_block_is_refused(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    parent = _debate(contend, models, "adversarial")
    text = tmp_path / "reply.md"
    text.write_text("Who knows?", "utf-8")
    edit = ["--edit", "r1.critique.skeptic", "--text-file", str(text)]
    refused = contend("fork", parent["id"], *edit)
    assert refused.code == 2
    assert "Keep the block at the end" in refused.err
    assert len(contend("list", "--json").json) == 1


@pytest.mark.parametrize("protocol", ["forum", "refine"])
def test_parallel_answers_beside_an_edited_turn_are_not_paid_again(
    protocol: str, contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    parent = _debate(contend, models, protocol)
    first = parent["turns"][0]
    text = tmp_path / "reply.md"
    text.write_text(f"{first['text']} And more.", "utf-8")
    paid = len(models.calls)
    edit = ["--edit", first["id"], "--text-file", str(text)]
    forked = contend("fork", parent["id"], *edit, "--json")
    assert forked.code == 0, forked.err
    assert len(models.calls) - paid == paid - 3
    assert forked.json["turns"][0]["text"].endswith("And more.")


def test_fork_accepts_a_comment(contend: Command, models: ModelServer) -> None:
    parent = _debate(contend, models, "adversarial")
    at = ["--at", "1", "--say", "Think of the cost."]
    paid = len(models.calls)
    forked = contend("fork", parent["id"], *at, "--json").json
    assert "Think of the cost." in models.calls[paid].request.text
    remarks = [turn["text"] for turn in forked["turns"] if turn["phase"] == "remark"]
    assert remarks == ["Think of the cost."]


def test_refuses_a_comment_that_no_speaker_would_see(contend: Command, models: ModelServer) -> None:
    parent = _debate(contend, models, "adversarial")
    refused = contend("fork", parent["id"], "--at", "3:synthesize", "--say", "Hello.")
    assert (refused.code, "Leave out --say" in refused.err) == (2, True)
    assert len(contend("list", "--json").json) == 1


def test_fork_ignores_the_finish_request_of_its_parent(
    contend: Command, models: ModelServer
) -> None:
    script = script_of("adversarial")
    models.script = lambda request: (
        openai_error(400, "No.") if "This is critique 1" in request.user else script(request)
    )
    assert contend(*ask_in("adversarial"), "--quiet").code == 4
    models.script = script
    parent = contend("list", "--json").json[0]["id"]
    ended = contend("resume", parent, "--finish", "--json").json
    assert (ended["stop_reason"], ended["total_rounds"]) == ("user", 2)
    forked = contend("fork", parent, "--at", "1", "--json").json
    assert (forked["stop_reason"], forked["total_rounds"]) == ("max_rounds", 3)


def test_shared_turns_can_be_edited_only_in_the_parent(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    parent = _debate(contend, models, "adversarial")["id"]
    fork = contend("fork", parent, "--at", "1", "--json").json["id"]
    (tmp_path / "new.md").write_text("Another answer.", "utf-8")
    edit = ["--edit", "r1.propose.proposer", "--text-file", str(tmp_path / "new.md")]
    refused = contend("fork", fork, *edit)
    assert f"shared with debate {parent[:8]}; fork that one" in refused.err
    assert contend("fork", parent, *edit, "--quiet").code == 0


def test_fork_that_cannot_be_stored_leaves_nothing_behind(
    contend: Command, models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = _debate(contend, models, "adversarial")["id"]

    def full(*_: object, **__: object) -> None:
        raise DatabaseUnavailable("The disk is full")

    monkeypatch.setattr(Repository, "start", full)
    assert contend("fork", parent, "--at", "1").code == 2
    assert len(contend("list", "--json").json) == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--at", "9"], "There is no such place in the debate. It has: "),
        (["--at", "1:applause"], "There is no such place"),
        (["--at", "soon"], "not in the form ROUND or ROUND:PHASE"),
        ([], "either --at ROUND[:PHASE] or --edit TURN"),
        (["--at", "1", "--edit", "r1.propose.proposer"], "either --at"),
        (["--at", "1", "--text-file", "x"], "--text-file works only with --edit"),
        (["--edit", "r9.propose.proposer", "--text-file", "x"], "There is no turn 'r9."),
        (["--edit", "r1.propose.proposer", "--text-file", "missing"], "Cannot read missing"),
        (["--at", "1", "--set", "max_round=4"], "max_rounds"),
        (["--at", "1", "--set", "max_rounds=many"], "max_rounds"),
    ],
)
def test_bad_input_changes_nothing(
    options: list[str], problem: str, contend: Command, models: ModelServer
) -> None:
    parent = _debate(contend, models, "adversarial")
    paid = len(models.calls)
    refused = contend("fork", parent["id"], *options)
    assert refused.code == 2
    assert problem in refused.err
    assert len(models.calls) == paid
    assert len(contend("list", "--json").json) == 1


def test_tree_shows_a_debate_and_its_forks(contend: Command, models: ModelServer) -> None:
    parent = _debate(contend, models, "adversarial")["id"]
    child = contend("fork", parent, "--at", "1", "--json").json["id"]
    grandchild = contend("fork", child, "--at", "2", "--json").json["id"]
    drawn = contend("tree", grandchild).out.splitlines()
    assert [re.sub(r"[^0-9a-f]*([0-9a-f]{8}).*", r"\1", line) for line in drawn] == [
        parent[:8],
        child[:8],
        grandchild[:8],
    ]
    assert "after 1:judge_continue" in drawn[1]
    shown = contend("tree", parent, "--json").json
    assert shown["forks"][0]["forks"][0]["id"] == grandchild
    contend("delete", parent, "--yes")
    assert contend("tree", child, "--json").json["status"] == "deleted"


@pytest.mark.parametrize("protocol", [each for each in PROTOCOLS if each != "forecast"])
def test_a_finished_debate_is_continued_with_a_further_question(
    protocol: str, contend: Command, models: ModelServer
) -> None:
    parent = _debate(contend, models, protocol)
    before = contend("export", parent["id"], "--format", "json").out
    paid, last = len(models.calls), parent["turns"][-1]["round"]
    followed = contend("ask", "--continue", parent["id"], "And if the team doubles?", "--json")
    assert followed.code == 0, followed.err
    (remark,) = [turn for turn in followed.json["turns"] if turn["phase"] == "remark"]
    assert remark["text"] == "And if the team doubles?"
    rounds = {turn["round"] for turn in followed.json["turns"]}
    assert max(rounds) == last + 1, "one more round"
    before_it = spoken(followed.json)[: followed.json["turns"].index(remark)]
    assert before_it == spoken(parent)[: len(before_it)], "the transcript is shared"
    assert remark["round"] == last + 1
    assert any("And if the team doubles?" in call.request.text for call in models.calls[paid:])
    assert contend("export", parent["id"], "--format", "json").out == before
    assert contend("tree", followed.json["id"], "--json").json["id"] == parent["id"]
    played = contend("replay", followed.json["id"], "--events", "--speed", "100000").out
    events = [json.loads(line) for line in played.splitlines()]
    starts = [each["round"] for each in events if each["event"] == "round_start"]
    assert starts == sorted(set(starts))
    assert starts[-1] == last + 1
    stops = [each for each in events if each["metadata"].get("decision") == "stop"]
    assert len(stops) == 1
    assert contend("replay", followed.json["id"], "--strict").code == 0


def test_what_cannot_be_continued_is_refused(contend: Command, models: ModelServer) -> None:
    forecast = _debate(contend, models, "forecast")["id"]
    refused = contend("ask", "--continue", forecast, "And then?")
    assert (refused.code, "forecast debate cannot be continued" in refused.err) == (2, True)
    models.script = script_of("adversarial")
    paused = contend(*ask_in("adversarial"), "--pause", "each_round", "--json").json["id"]
    unfinished = contend("ask", "--continue", paused, "And then?")
    assert f"contend resume {paused[:8]}" in unfinished.err
    assert "Missing argument" in contend("ask", "--continue", paused).err
    for option in (["--docs", "x"], ["-p", "forum"], ["--seat", "a=b"]):
        mixed = contend("ask", "--continue", paused, "And then?", *option)
        assert (mixed.code, "cannot be combined with --continue" in mixed.err) == (2, True)
    assert len(contend("list", "--json").json) == 2
