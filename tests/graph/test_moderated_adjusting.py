"""The moderator adds rounds or ends them, within the limits and with its reason."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import ValidationError

from contend.debates.exports.moderated import moderated_facts
from contend.graph.settings import ModeratedSettings
from tests.support.floor import asked_for, debate, floor_cast, told
from tests.support.scripted import Cast, Played, Sent

WHY = "Nobody has answered the point on audits."


def adjusting(given: Callable[[int], dict[str, Any] | str]) -> Cast:
    """Return a moderator whose block after the n-th summary has these fields or this text."""
    summaries = 0

    def summary(sent: Sent) -> str:
        nonlocal summaries
        summaries += 1
        fields = given(summaries)
        if isinstance(fields, str):
            return fields
        block = {"nonce": sent.nonce, "breach": "none", "ruling": "", **fields}
        return f"So much for this round.\n\n```json\n{json.dumps(block)}\n```"

    return floor_cast(moderator={"summary": summary})


def changes(played: Played) -> list[tuple[int, str]]:
    return [(t.round, t.text) for t in played.turns if t.phase == "adjustment"]


def rounds(played: Played) -> int:
    return sum(turn.phase == "summary" for turn in played.turns)


async def run(given: Callable[[int], dict[str, Any] | str], **changed: Any) -> Played:
    allowed = {"moderator_may_adjust": True, "round_count": 2, "max_round_count": 3}
    return await debate(adjusting(given), **allowed | changed)


def always(**fields: Any) -> Callable[[int], dict[str, Any]]:
    return lambda _: fields


async def test_rounds_are_added_up_to_the_limit() -> None:
    played = await run(always(adjust="extend", reason=WHY))
    assert rounds(played) == 3
    assert changes(played) == [(2, WHY)]
    assert (played.stop_reason, played.state["stop"].early) == ("max_rounds", False)
    order = told(played)
    assert order.index("moderator adjustment 2") == order.index("moderator summary 2") + 1
    (sent,) = (e for e in played.named("seat_complete") if e["metadata"]["phase"] == "adjustment")
    assert (sent["content"], sent["metadata"]["assessment"]["change"]) == (WHY, "extend")


async def test_finishing_before_an_added_round_counts_as_an_early_stop() -> None:
    cast = adjusting(always(adjust="extend", reason=WHY))
    limits = {"moderator_may_adjust": True, "round_count": 1, "max_round_count": 2}
    setup: dict[str, Any] = {**limits, "saver": InMemorySaver(), "pause": "each_round"}
    await debate(cast, **setup)
    paused = await debate(cast, Command(resume={"say": ""}), **setup)
    assert [shown["round"] for shown in paused.interrupts] == [1]
    played = await debate(cast, Command(resume={"finish": True}), **setup)
    assert changes(played) == [(1, WHY)]
    assert played.stop_reason == "user"
    assert played.state["stop"].early
    assert len(played.named("early_stop")) == 1
    assert played.state["trace"]["early_stopped"]


async def test_moderator_can_cut_rounds() -> None:
    played = await run(always(adjust="cut", reason=WHY), round_count=3)
    assert rounds(played) == 1
    assert changes(played) == [(1, WHY)]
    stop = played.state["stop"]
    assert (stop.reason, stop.evidence, stop.early) == ("moderator_stop", WHY, True)
    assert "ann closing 1" in told(played)


async def test_rounds_are_not_cut_below_the_minimum() -> None:
    played = await run(
        always(adjust="cut", reason=WHY), round_count=3, min_round_count=2, max_round_count=3
    )
    assert changes(played) == [(2, WHY)]


async def test_change_that_was_not_offered_is_ignored() -> None:
    # After the first of two rounds only a cut is possible, after the second only one more.
    played = await run(lambda number: {"adjust": ("extend", "cut")[number - 1], "reason": WHY})
    assert (rounds(played), changes(played)) == (2, [])
    assert played.degraded == []


async def test_adjusting_rounds_is_off_by_default() -> None:
    played = await debate(adjusting(always(adjust="cut", reason=WHY)), round_count=2)
    assert (rounds(played), changes(played)) == (2, [])
    asked = [s.user for s in played.cast.sent_to("moderator") if asked_for(s) == "summary"]
    assert not any("adjust" in text for text in asked)


@pytest.mark.parametrize(
    ("block", "times"),
    [
        ({"adjust": "perhaps", "reason": WHY}, 2),
        ({"adjust": "cut", "reason": " "}, 1),  # possible only after the first round
        ({}, 2),
        ("Only words.", 2),
    ],
)
async def test_unreadable_change_is_ignored_and_reported(block: Any, times: int) -> None:
    played = await run(lambda _: block)
    assert (rounds(played), changes(played)) == (2, [])
    reported = [each.why for each in played.state["degraded"] if "number of rounds" in each.why]
    assert len(reported) == times


@pytest.mark.parametrize("nothing", ["None.", "no", "", None])
async def test_no_change_may_be_written_in_several_ways(nothing: str | None) -> None:
    played = await run(always(adjust=nothing, reason=""))
    assert (rounds(played), played.degraded) == (2, [])


async def test_prompts_offer_possible_changes_and_count_the_added_round() -> None:
    played = await run(always(adjust="extend", reason=WHY))
    first, second, third = (
        s.user for s in played.cast.sent_to("moderator") if asked_for(s) == "summary"
    )
    assert "1 more round is planned" in first
    assert '`adjust` is "cut"' in first
    assert "up to 3 in all" in second
    assert '`adjust` is "extend"' in second
    assert "adjust" not in third.split("## Current phase")[1]
    assert "Round 3 of 3" in third
    assert WHY in third


async def test_record_and_summary_facts_show_the_change() -> None:
    record = (await run(always(adjust="extend", reason=WHY))).state["trace"]
    assert record["adjustments"] == [{"round": 2, "change": "extend", "text": WHY}]
    assert ("Rounds", f"one round added after round 2: {WHY}") in moderated_facts(record)


@pytest.mark.parametrize("wrong", [{"round_count": 6}, {"min_round_count": 4}])
def test_round_count_must_be_within_its_limits(wrong: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="min_round_count"):
        ModeratedSettings.model_validate({"moderator_may_adjust": True} | wrong)
    ModeratedSettings.model_validate(wrong)
