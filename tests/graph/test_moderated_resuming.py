"""Resuming an interrupted moderated debate repeats no finished call."""

import asyncio
from typing import Any

import pytest
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import ModelFailed
from tests.support.floor import (
    TOPIC,
    asked_for,
    debate,
    floor_cast,
    moderated_settings,
    with_block,
)
from tests.support.scripted import Cast, Played, Sent, play

CHECKED: dict[str, Any] = {
    "claims": with_block("Two.", claims=["One is so.", "Two is so."]),
    "check": with_block("Checked.", verdict="contradicted", source="", why="No."),
}


# Kinds of calls made at once -> how many others there are: two claims, three stages.
_AT_ONCE = {"check": 1, "stage": 2}


class Crash(BaseException):
    """Simulates the death of the process; the application must not catch it."""


async def run(cast: Cast, given: Any = TOPIC, **changes: Any) -> Played:
    usual: dict[str, Any] = {"round_count": 1, "fact_check": True}
    async with checkpointer() as opened:
        return await debate(cast, given, saver=opened, **usual | changes)


def transcript(played: Played) -> list[tuple[str, str, str | None]]:
    return [(turn.id, turn.text, turn.replies_to) for turn in played.turns]


def cast_that_checks() -> Cast:
    return floor_cast(checker=CHECKED)


async def undisturbed() -> Played:
    return await debate(cast_that_checks(), round_count=1, fact_check=True)


async def test_a_crash_at_any_call_repeats_none_that_was_finished() -> None:
    calm = await undisturbed()
    count = len(calm.cast.sent)
    # Every kind of call dies once; the last of each kind has the most behind it.
    last = {asked_for(sent): at for at, sent in enumerate(calm.cast.sent)}
    for at in sorted(last.values()):
        cast, crashed = cast_that_checks(), False

        def say(sent: Sent, cast: Cast = cast, at: int = at, speak: Any = cast.say) -> str:
            nonlocal crashed
            if len(cast.sent) == at and not crashed:
                crashed = True
                raise Crash
            return str(speak(sent))

        cast.say = say  # type: ignore[method-assign]
        thread = f"5f0c1f0e-0000-4000-8000-{at:012d}"
        with pytest.raises(Crash):
            await _on(thread, cast, TOPIC)
        resumed = await _on(thread, cast, None)
        assert crashed
        assert transcript(resumed) == transcript(calm), at
        # Only calls made at the same time as the one that died may be cut off by it.
        slack = _AT_ONCE.get(asked_for(calm.cast.sent[at]), 0)
        assert count <= len(cast.sent) <= count + slack, at


async def _on(thread: str, cast: Cast, given: Any) -> Played:
    settings = moderated_settings(round_count=1, fact_check=True)
    async with checkpointer() as opened:
        return await play(cast, given, saver=opened, settings=settings, thread=thread)


@pytest.mark.parametrize("sign", ["Score each of these statements", "Check this one claim"])
async def test_only_the_crashed_one_of_parallel_calls_is_repeated(sign: str) -> None:
    calm = await undisturbed()
    cast, asked, crashed = cast_that_checks(), 0, False
    others_done = asyncio.Event()
    speak = cast.say

    def say(sent: Sent) -> str:
        nonlocal crashed
        said = speak(sent)
        together = 3 if "Score" in sign else 2
        if sign in sent.user and sum(sign in s.user for s in cast.sent) == together - 1:
            others_done.set()
        return said

    async def gate(sent: Sent) -> None:
        nonlocal asked, crashed
        if sign not in sent.user or crashed:
            return
        asked += 1
        if asked == 1:
            await others_done.wait()
            await asyncio.sleep(0.5)  # langgraph writes what the others gave
            crashed = True
            raise Crash

    cast.before, cast.say = gate, say  # type: ignore[method-assign]
    with pytest.raises(Crash):
        await run(cast)
    resumed = await run(cast, None)
    assert crashed
    assert transcript(resumed) == transcript(calm)
    assert len(cast.sent) == len(calm.cast.sent)


async def test_pause_waits_for_the_current_turn_and_resumes_after_it() -> None:
    control, cast = RunControl(), cast_that_checks()
    cast.before = lambda sent: control.request_drain() if asked_for(sent) == "rebuttal" else None
    with pytest.raises(GraphDrained):
        await run(cast, control=control)
    cast.before = lambda _: None
    resumed = await run(cast, None)
    calm = await undisturbed()
    assert transcript(resumed) == transcript(calm)
    assert len(cast.sent) == len(calm.cast.sent)


async def test_failed_advocate_stops_the_debate_which_resumes_there() -> None:
    def fail(sent: Sent) -> str:
        raise ConnectionError("down")

    cast = floor_cast(checker=CHECKED, ben={"rebuttal": fail})
    with pytest.raises(ModelFailed, match="Ben"):
        await run(cast, max_retries=0)
    paid = len(cast.sent)
    healthy = cast_that_checks()
    resumed = await run(healthy, None)
    calm = await undisturbed()
    assert transcript(resumed) == transcript(calm)
    assert paid - 1 + len(healthy.sent) == len(calm.cast.sent)
