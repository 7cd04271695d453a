"""A forum paused between two calls of one step repeats no finished call."""

from collections import Counter
from typing import Any

import pytest
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import Paused
from tests.support.scripted import (
    Cast,
    Played,
    Sent,
    asked_for,
    concedes,
    forum_cast,
    forum_settings,
    play,
)


def asked(cast: Cast) -> Counter[tuple[str, str]]:
    return Counter((sent.model, asked_for(sent)) for sent in cast.sent)


def transcript(played: Played) -> list[tuple[str, str]]:
    return [(turn.id, turn.text) for turn in played.turns]


async def run(cast: Cast, given: Any, control: RunControl | None = None, **changes: Any) -> Played:
    settings = forum_settings(max_rounds=3, **changes)
    async with checkpointer() as opened:
        return await play(cast, given, saver=opened, settings=settings, control=control)


CASES: dict[str, tuple[dict[str, Any], str, set[str]]] = {
    "the verdict before the answer": ({}, "verdict", {"final", "score"}),
    "a conviction before it is doubted": (
        {"judge_mode": "self_convergence"},
        "conviction",
        {"conviction_again", "final", "score"},
    ),
    "the judge's word before the next round": ({}, "continue", {"verdict", "final", "score"}),
}


@pytest.mark.parametrize("case", CASES)
async def test_pause_starts_no_further_call(case: str) -> None:
    changes, last, unasked = CASES[case]
    lines: Any = {"ben": {"conviction": concedes("Ann"), "conviction_again": concedes("Ann")}}
    undisturbed = await play(
        forum_cast(**lines), "Split it?", settings=forum_settings(max_rounds=3, **changes)
    )
    control, cast = RunControl(), forum_cast(**lines)

    def pause(sent: Sent) -> None:
        if asked_for(sent) == last:
            control.request_drain()

    cast.before = pause
    with pytest.raises((GraphDrained, Paused)):
        await run(cast, "Split it?", control, **changes)
    assert last in {what for _, what in asked(cast)}
    assert not unasked & {what for _, what in asked(cast)}
    cast.before = lambda _: None
    resumed = await run(cast, None, **changes)
    assert transcript(resumed) == transcript(undisturbed)
    assert asked(cast) == asked(undisturbed.cast)
