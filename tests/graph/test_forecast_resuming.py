"""Resuming an interrupted forecast: no finished call is repeated or mixed up."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from langgraph.runtime import RunControl

from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import ModelFailed, Paused
from tests.support.forecasting import (
    RESUME,
    arguing,
    argument_block,
    asked_for,
    fenced,
    forecasted,
    judging,
    panel,
    round_of,
    scored_role,
    scores,
)
from tests.support.scripted import Cast, Played, Sent

Call = tuple[str, str, int, str]


class Crash(BaseException):
    """Simulates the death of the process; the application must not catch it."""


def which(sent: Sent) -> Call:
    return sent.model, asked_for(sent), round_of(sent), scored_role(sent)


def mixed_panel() -> Cast:
    """Return a panel in which two roles omit their numbers and one argument is too weak."""

    def wordy(role: str, yes: int) -> Any:
        def say(sent: Sent) -> str:
            if not sent.schema:
                return f"The {role} gives no numbers."
            entries = [("yes", yes), ("no", 100 - yes)]
            numbers = [{"outcome": o, "probability": p} for o, p in entries]
            form = {"outcome": "yes", "probabilities": numbers, "confidence": 0.5}
            return json.dumps(form)

        return say

    def weak(sent: Sent) -> dict[str, Any]:
        feeble = scored_role(sent) == "historian" and round_of(sent) == 1
        return scores(0.1, 0.1, 0.1) if feeble and "once more" not in sent.user else scores()

    def historian(sent: Sent) -> str:
        if asked_for(sent) == "stronger":
            sent = Sent(sent.model, sent.messages)
            return arguing("historian", lambda block: block | {"point": "once more"})(sent).replace(
                "in round 0", "once more"
            )
        return arguing("historian")(sent)

    return panel(
        optimist=wordy("optimist", 80),
        contrarian=wordy("contrarian", 30),
        historian=historian,
        judge=judging(weak),
    )


def transcript(played: Played) -> list[tuple[str, str, Any]]:
    return [
        (turn.id, turn.text, turn.assessment.model_dump() if turn.assessment else None)
        for turn in played.turns
    ]


async def run(cast: Cast, given: Any = None, control: RunControl | None = None) -> Played:
    async with checkpointer() as saver:
        return await forecasted(cast, given, saver=saver, control=control)


ANEW_SCORED = "r3.score.judge.r3.propose.judge.2"
CRASHES: list[Call] = [
    ("optimist", "argument", 1, ""),
    ("judge", "argument", 1, ""),
    ("contrarian", "numbers", 0, ""),
    ("judge", "score", 1, "pessimist"),
    ("historian", "stronger", 1, ""),
    ("judge", "score", 2, "judge"),
    ("judge", "argument", 3, ""),
    ("judge", "score", 3, "contrarian"),
    ("judge", "verdict", 0, ""),
]


@pytest.mark.parametrize("victim", CRASHES, ids=lambda call: "-".join(map(str, call)))
async def test_a_crash_repeats_no_finished_call(victim: Call) -> None:
    undisturbed = await forecasted(mixed_panel())
    expected = Counter(which(sent) for sent in undisturbed.cast.sent)
    assert expected.total() == 31 + 6 + 2 + 2  # two are asked what their closing refers to
    cast, crashed = mixed_panel(), False
    calm = cast.say

    async def others_first(sent: Sent) -> None:
        while which(sent) == victim and not crashed:
            before = len(cast.sent)
            await asyncio.sleep(0.5)
            if len(cast.sent) == before:
                return

    def say(sent: Sent) -> str:
        nonlocal crashed
        if which(sent) == victim and not crashed:
            crashed = True
            raise Crash
        return calm(sent)

    cast.say, cast.before = say, others_first  # type: ignore[method-assign]
    with pytest.raises(Crash):
        await run(cast)
    resumed = await run(cast, RESUME)
    assert transcript(resumed) == transcript(undisturbed)
    paid = Counter(which(sent) for sent in cast.sent)
    assert paid == expected
    same = ("probability_distribution", "debate_log", "consensus_score", "disagreement_map")
    for part in same:
        assert resumed.state["forecast"][part] == undisturbed.state["forecast"][part]


async def test_calls_that_ended_in_another_order_are_not_mixed_up() -> None:
    """The contrarian is asked for its numbers before the optimist has spoken at all."""
    undisturbed = await forecasted(mixed_panel())
    cast, crashed = mixed_panel(), False
    calm = cast.say
    early, asked = ("contrarian", "numbers", 0, ""), asyncio.Event()

    async def contrarian_first(sent: Sent) -> None:
        if which(sent) == ("optimist", "argument", 1, ""):
            await asked.wait()
            await asyncio.sleep(0.5)  # until it is kept

    def say(sent: Sent) -> str:
        nonlocal crashed
        if which(sent) == ("optimist", "numbers", 0, "") and not crashed:
            crashed = True
            raise Crash
        if which(sent) == early:
            asked.set()
        return calm(sent)

    cast.say, cast.before = say, contrarian_first  # type: ignore[method-assign]
    with pytest.raises(Crash):
        await run(cast)
    resumed = await run(cast, RESUME)
    assert transcript(resumed) == transcript(undisturbed)
    assert Counter(map(which, cast.sent)) == Counter(map(which, undisturbed.cast.sent))


async def test_crash_during_a_repeated_judge_argument_repeats_no_call() -> None:
    """The pessimist's closing is replaced while the judge answers it."""

    def weak_first(sent: Sent) -> dict[str, Any]:
        weak = scored_role(sent) == "pessimist" and round_of(sent) == 3
        return scores(0, 0, 0) if weak and "once more" not in sent.user else scores()

    def pessimist(sent: Sent) -> str:
        if asked_for(sent) == "stronger":
            return fenced(sent, argument_block("pessimist", 3) | {"point": "Anew."}, "once more")
        return arguing("pessimist")(sent)

    def cast() -> Cast:
        return panel(pessimist=pessimist, judge=judging(weak_first))

    undisturbed = await forecasted(cast())
    assert len(undisturbed.cast.sent) == 31 + 2 + 2
    assert [turn.id for turn in undisturbed.turns][-3:-1] == ["r3.propose.judge.2", ANEW_SCORED]
    crashing, crashed = cast(), list[Call]()
    calm = crashing.say

    def say(sent: Sent) -> str:
        about = which(sent)
        anew = about == ("judge", "argument", 3, "") and "Anew." in sent.user
        again = about == ("judge", "score", 3, "judge") and about in map(which, crashing.sent)
        if (anew or again) and about not in crashed:
            crashed.append(about)
            raise Crash
        return calm(sent)

    crashing.say = say  # type: ignore[method-assign]
    with pytest.raises(Crash):
        await run(crashing)
    with pytest.raises(Crash):
        await run(crashing, RESUME)
    resumed = await run(crashing, RESUME)
    assert transcript(resumed) == transcript(undisturbed)
    assert Counter(map(which, crashing.sent)) == Counter(map(which, undisturbed.cast.sent))


async def test_forecast_restarts_after_every_role_failed() -> None:
    cast, calm = panel(), panel()

    def down(_: Sent) -> str:
        raise ConnectionError("no route to the model")

    cast.say = down  # type: ignore[method-assign, assignment]
    async with checkpointer() as saver:
        with pytest.raises(ModelFailed, match="no route to the model"):
            await forecasted(cast, saver=saver, max_retries=0)
        resumed = await forecasted(calm, RESUME, saver=saver, max_retries=0)
    assert len(calm.sent) == 31
    assert not resumed.state["forecast"]["report"]["partial"]


async def test_pause_lets_running_speakers_finish() -> None:
    control, cast = RunControl(), panel()

    def pause(sent: Sent) -> None:
        if sent.model == "historian" and round_of(sent) == 1:
            control.request_drain()

    cast.before = pause
    with pytest.raises(Paused):  # the scores of these arguments are not begun
        await run(cast, control=control)
    assert Counter(sent.model for sent in cast.sent) == dict.fromkeys(
        ("optimist", "pessimist", "contrarian", "historian", "judge"), 1
    )
    cast.before = lambda _: None
    resumed = await run(cast, RESUME)
    assert resumed.path[0] == "propose"
    assert len(cast.sent) == 31
