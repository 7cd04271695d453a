"""Pausing, crashing and resuming: no call is paid twice and all state is restored."""

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command

from contend.graph.adversarial import builder
from contend.graph.checkpoints.location import database_path
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import ModelFailed, Paused
from contend.graph.readings import Assessment, AutoScore, Point
from contend.graph.state import DebateState, Remark, Turn
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import Degradation, Retrieval, Seat, Usage
from contend.models.replies.critique import CritiqueBlock, CritiquePoint
from tests.support.model_server import ModelServer, Reply, openai_error
from tests.support.scripted import (
    THREAD,
    Lines,
    Played,
    Sent,
    full_cast,
    play,
    scripted_settings,
)

ROUND = ["propose", "critique", "judge_continue"]
END = ["synthesize", "score", "store"]
MAJOR = CritiquePoint(severity="major", status="open", text="No numbers.")
on_both_databases = pytest.mark.usefixtures("database")


@asynccontextmanager
async def saver() -> AsyncIterator[Any]:
    """Open a new saver on the test database, as a new process would."""
    async with checkpointer() as opened:
        yield opened


def transcript(state: DebateState) -> list[tuple[str, str]]:
    return [(turn.id, turn.text) for turn in state["turns"]]


def assert_types(state: DebateState) -> None:
    assert all(type(seat) is Seat for seat in state["seats"])
    assert type(state["retrieval"]) is Retrieval
    for turn in state["turns"]:
        assert type(turn) is Turn
        assert type(turn.usage) is Usage
        assert turn.started_at.tzinfo is not None
        if turn.phase == "critique":
            assert type(turn.assessment) is Assessment
            assert all(type(point) is Point for point in turn.assessment.points)


@on_both_databases
async def test_checkpoints_load_only_our_own_types() -> None:
    crafted = JsonPlusSerializer(allowed_msgpack_modules=True).dumps_typed(Remark(say="foreign"))
    async with checkpointer() as opened:
        assert not isinstance(opened.serde.loads_typed(crafted), Remark)
        ours = opened.serde.dumps_typed(Usage(input_tokens=1))
        assert opened.serde.loads_typed(ours) == Usage(input_tokens=1)


@on_both_databases
async def test_pause_each_round_resumes_with_full_state_on_a_new_saver() -> None:
    undisturbed = await play(full_cast(), saver=InMemorySaver(), min_rounds=1, max_rounds=2)
    cast = full_cast()
    settings: dict[str, Any] = {"min_rounds": 1, "max_rounds": 2, "pause": "each_round"}
    async with saver() as opened:
        first = await play(cast, saver=opened, **settings)
    assert first.path == ["retrieve", "propose", "critique"]
    (asked,) = first.interrupts
    assert asked["round"] == 1
    assert asked["stop"] is None
    assert [point["id"] for point in asked["points"]] == ["S1"]
    assert_types(first.state)
    async with saver() as opened:
        second = await play(cast, Command(resume={"say": ""}), saver=opened, **settings)
    assert second.path == ["judge_continue", "propose", "critique"]
    async with saver() as opened:
        third = await play(cast, Command(resume={"say": ""}), saver=opened, **settings)
    assert third.path == ["judge_continue", *END]
    assert_types(third.state)
    assert type(third.state["stop"]) is StopDecision
    assert type(third.state["auto_score"]) is AutoScore
    assert transcript(third.state) == transcript(undisturbed.state)
    assert len(cast.sent) == len(undisturbed.cast.sent)
    assert [sent.text for sent in cast.sent] == [sent.text for sent in undisturbed.cast.sent]


async def test_pause_before_synthesis_happens_once() -> None:
    opened = InMemorySaver()
    first = await play(full_cast(), saver=opened, max_rounds=3, pause="before_synthesis")
    assert first.path == ["retrieve", *ROUND, *ROUND, "propose", "critique"]
    assert first.interrupts[0]["stop"]["reason"] == "max_rounds"
    resumed: Command[Any] = Command(resume="Keep it short.")
    last = await play(full_cast(), resumed, saver=opened, max_rounds=3, pause="before_synthesis")
    assert last.path == ["judge_continue", *END]
    (told,) = last.cast.sent_to("synthesizer")
    assert "Keep it short." in told.user
    remark = next(turn for turn in last.turns if turn.phase == "remark")
    assert (remark.status, remark.role) == ("human", "user")
    assert last.state["trace"]["rounds"][2]["user"] == ["Keep it short."]


async def test_next_speakers_see_the_user_comment() -> None:
    opened, cast = InMemorySaver(), full_cast()
    await play(cast, saver=opened, pause="each_round")
    said: Command[Any] = Command(resume={"say": "We have no budget. {history}"})
    await play(cast, said, saver=opened, pause="each_round")
    for speaker in ("proposer", "skeptic"):
        later = cast.sent_to(speaker)[1].user
        assert "## The user added" in later
        assert "We have no budget. {history}" in later


async def test_user_can_end_the_rounds_at_a_pause() -> None:
    opened, cast = InMemorySaver(), full_cast()
    await play(cast, saver=opened, pause="each_round")
    ended = await play(cast, Command(resume={"finish": True}), saver=opened, pause="each_round")
    assert ended.path == ["judge_continue", *END]
    assert ended.stop_reason == "user"


async def drained_after(calls: int, cast_lines: dict[str, Lines]) -> tuple[Played, Played]:
    """Drain a debate during its n-th call, then resume it with a new saver."""
    control = RunControl()
    cast = full_cast(**cast_lines)
    say = cast.say

    def counting(sent: Sent) -> str:
        text = say(sent)
        if len(cast.sent) == calls:
            control.request_drain()
        return text

    cast.say = counting  # type: ignore[method-assign]
    stopped = Played(cast)
    async with saver() as opened:
        with pytest.raises((GraphDrained, Paused)):
            stopped = await play(cast, saver=opened, control=control, min_rounds=1, max_rounds=2)
    async with saver() as opened:
        return stopped, await play(cast, None, saver=opened, min_rounds=1, max_rounds=2)


@on_both_databases
@pytest.mark.parametrize("calls", range(1, 6))
async def test_drained_debate_resumes_after_the_last_paid_call(calls: int) -> None:
    undisturbed = await play(full_cast(), saver=InMemorySaver(), min_rounds=1, max_rounds=2)
    _, resumed = await drained_after(calls, {})
    assert transcript(resumed.state) == transcript(undisturbed.state)
    assert len(resumed.cast.sent) == len(undisturbed.cast.sent) == 6
    assert_types(resumed.state)


@on_both_databases
async def test_speech_is_not_paid_again_if_its_parsing_was_interrupted() -> None:
    """The Skeptic's speech is one call; the form that parses it is requested after the pause."""
    form = CritiqueBlock(ready=False, points=[MAJOR]).model_dump_json()
    skeptic: Lines = lambda sent: form if sent.schema else "I have my doubts."  # noqa: E731
    _, resumed = await drained_after(2, {"skeptic": skeptic})
    spoken = [sent.schema for sent in resumed.cast.sent_to("skeptic")]
    assert spoken == [None, CritiqueBlock]
    assert len(resumed.cast.sent_to("proposer")) == 1
    assert resumed.path == ["critique", "judge_continue", *END]


@on_both_databases
async def test_a_failed_debate_resumes_where_it_failed(server: ModelServer) -> None:
    cast, broken = full_cast(), True
    server.script = lambda request: openai_error(401, "no") if broken else "Saved.\n🔴 Cost."
    settings: dict[str, Any] = {"skeptic_model": "openai:m1", "min_rounds": 1, "max_rounds": 1}
    async with saver() as opened:
        with pytest.raises(ModelFailed):
            await play(cast, saver=opened, **settings)
    broken = False
    async with saver() as opened:
        resumed = await play(cast, None, saver=opened, **settings)
    assert resumed.path == ["critique", "judge_continue", *END]
    assert len(cast.sent_to("proposer")) == 1
    assert resumed.turns[1].text == "Saved.\n🔴 Cost."


async def test_state_of_an_earlier_release_without_waiting_seats_resumes() -> None:
    cast, settings = full_cast(), scripted_settings(min_rounds=1, max_rounds=1)
    graph = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["propose"])
    config: Any = {"configurable": {"thread_id": THREAD}}
    with cast.on_stage():
        await graph.ainvoke({"question": "Why?"}, config, context=settings)
        await graph.aupdate_state(config, {"waiting": []}, as_node="retrieve")
        ended = await graph.ainvoke(None, config, context=settings)
    assert [turn.seat for turn in ended["turns"]][:2] == ["proposer", "skeptic"]


@on_both_databases
async def test_degradations_survive_a_restart(server: ModelServer) -> None:
    replies = [Reply(status=500), Reply("Fine.")]
    server.script = lambda request: replies[min(request.index, 1)]
    settings: dict[str, Any] = {
        "proposer_model": "openai:m1",
        "retry_wait": 0.001,
        "pause": "each_round",
    }
    async with saver() as opened:
        await play(full_cast(), saver=opened, **settings)
    async with saver() as opened:
        again = await play(full_cast(), Command(resume={"finish": True}), saver=opened, **settings)
    assert [type(entry) for entry in again.degraded] == [Degradation]
    assert again.degraded[0].what == "retried"


def test_database_is_readable_only_by_its_owner() -> None:
    assert database_path().stat().st_mode & 0o077 == 0
    assert database_path().parent.stat().st_mode & 0o077 == 0


def test_reading_during_a_debate_keeps_the_write_ahead_log() -> None:
    read = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT * FROM kept')"
    with closing(sqlite3.connect(database_path())) as running:
        running.execute("PRAGMA journal_mode=WAL")
        running.execute("CREATE TABLE kept (turn)")
        running.commit()
        path = database_path()
        subprocess.run([sys.executable, "-c", f"{read}; c.close()", str(path)], check=True)
        assert path.with_name(f"{path.name}-wal").exists()
