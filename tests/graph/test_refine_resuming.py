"""Resuming an interrupted refine debate repeats no finished answer."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl, Runtime

from contend.graph.checkpoints.saver import checkpointer
from contend.graph.state import Turn
from tests.support.scripted import Cast, Played, Sent, play, refine_settings, refining_cast

pytestmark = pytest.mark.usefixtures("database")

DEBATERS = ("ann", "ben", "cyd")


class Crash(BaseException):
    """Simulates the death of the process; the application must not catch it."""


@asynccontextmanager
async def saver() -> AsyncIterator[Any]:
    async with checkpointer() as opened:
        yield opened


def transcript(played: Played) -> list[tuple[str, str, str | None]]:
    return [(turn.id, turn.text, turn.replies_to) for turn in played.turns]


def asked(cast: Cast) -> Counter[str]:
    return Counter(sent.model for sent in cast.sent)


async def run(cast: Cast, given: Any = "Split it?", control: RunControl | None = None) -> Played:
    settings = refine_settings(max_debate_rounds=1)
    async with saver() as opened:
        return await play(cast, given, saver=opened, settings=settings, control=control)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("victim", DEBATERS)
async def test_a_crash_in_one_of_three_answers_repeats_none_of_the_others(
    victim: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = await play(
        refining_cast(), "Split it?", settings=refine_settings(max_debate_rounds=1)
    )
    cast, crashed = refining_cast(), False
    calm = cast.say

    def is_fatal(sent: Sent) -> bool:
        return sent.model == victim and asked(cast)[victim] == number and not crashed

    def say(sent: Sent) -> str:
        nonlocal crashed
        if is_fatal(sent):
            crashed = True
            raise Crash
        return calm(sent)

    async def others_first(sent: Sent) -> None:
        if is_fatal(sent):
            await others_heard.wait()

    def announce(runtime: Runtime[Any], turn: Turn) -> None:
        heard.update({turn.seat} if turn.round == number else ())
        if heard == {*DEBATERS} - {victim}:
            others_heard.set()

    heard: set[str] = set()
    others_heard = asyncio.Event()
    monkeypatch.setattr("contend.nodes.propose.publish_turn", announce)
    cast.say, cast.before = say, others_first  # type: ignore[method-assign]
    with pytest.raises(Crash):
        await run(cast)
    assert crashed
    resumed = await run(cast, None)
    assert transcript(resumed) == transcript(undisturbed)
    assert asked(cast) == asked(undisturbed.cast)
    assert resumed.path[0] == "propose"


async def test_pause_lets_running_speakers_finish() -> None:
    control, cast = RunControl(), refining_cast()
    cast.before = lambda sent: control.request_drain() if sent.model == "ben" else None
    with pytest.raises(GraphDrained):
        await run(cast, control=control)
    assert asked(cast) == {"ann": 1, "ben": 1, "cyd": 1}
    cast.before = lambda _: None
    resumed = await run(cast, None)
    assert resumed.path[0] == "judge_continue"
    assert asked(cast) == {"ann": 2, "ben": 2, "cyd": 2, "judge": 3}
