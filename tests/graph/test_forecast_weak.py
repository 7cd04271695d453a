"""Weak arguments of a forecast are repeated once and the better version is kept."""

import json
import re
from typing import Any

import pytest

from tests.graph.test_forecast import result_of
from tests.nodes.calls.test_evidence import documents as documents  # noqa: PLC0414 - the fixture
from tests.support.forecasting import (
    PRECEDENTS,
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
from tests.support.scripted import Sent


async def test_weak_argument_is_repeated_and_the_better_version_is_kept() -> None:
    def weak_first(sent: Sent) -> dict[str, Any]:
        weak = scored_role(sent) == "pessimist" and round_of(sent) == 1
        better = "second try" in sent.user
        return scores(0.5, 0.5, 0.5) if better else scores(0.1, 0.1, 0.3) if weak else scores()

    def pessimist(sent: Sent) -> str:
        if asked_for(sent) == "stronger":
            block = {"outcome": "no", "probabilities": {"yes": 0.3, "no": 0.7}, "confidence": 0.5}
            return fenced(sent, block | {"point": "Better."}, "A second try.".lower())
        return arguing("pessimist")(sent)

    played = await forecasted(panel(pessimist=pessimist, judge=judging(weak_first)))
    result = result_of(played)
    kept = result.debate_log.rounds[0].arguments[1]
    assert (kept.role, kept.argument) == ("pessimist", "a second try.")
    assert kept.scores is not None
    assert kept.scores.composite == pytest.approx(0.5)
    (replaced,) = result.report.replaced_arguments
    assert replaced.argument.argument == "The pessimist argues in round 1."
    assert replaced.argument.scores is not None
    assert replaced.argument.scores.composite == pytest.approx(0.14)
    assert result.metadata.total_arguments == 15
    assert result.metadata.sonnet_calls == 33
    (told,) = played.degraded
    assert (told.what, told.seat, told.round) == ("argued_again", "pessimist", 1)
    assert told.why == "scored 0.14, so it was argued again; the second version stands"
    rebuttal = next(s for s in played.cast.sent_to("optimist") if round_of(s) == 2)
    assert "P1 pessimist, no 70%: Better." in rebuttal.user
    again = next(s for s in played.cast.sent_to("pessimist") if asked_for(s) == "stronger")
    assert "The pessimist argues in round 1." in again.user
    assert "Sound." in again.user


@pytest.mark.parametrize(("score", "good"), [(0.2, 0.8), (0.4, 0.8), (0.41, 1.0)])
async def test_scores_at_the_limits_are_handled_exactly(score: float, good: float) -> None:
    def of_optimist(sent: Sent) -> dict[str, Any]:
        return scores(score, score, score) if scored_role(sent) == "optimist" else scores()

    played = await forecasted(panel(judge=judging(of_optimist)))
    assert not any(asked_for(sent) == "stronger" for sent in played.cast.sent)
    assert result_of(played).report.argument_quality.share == good


async def test_numbers_have_at_most_four_decimals() -> None:
    def third(block: dict[str, Any]) -> dict[str, Any]:
        return block | {"probabilities": {"yes": 1 / 3, "no": 2 / 3}, "confidence": 1 / 3}

    cast = panel(optimist=arguing("optimist", third), judge=judging(lambda _: scores(1 / 3)))
    forecast = (await forecasted(cast)).state["forecast"]
    del forecast["report"]["raw_probabilities"]  # as they were written
    del forecast["completed_at"]
    written = re.findall(r"\d\.\d+", json.dumps(forecast))
    assert written
    assert max(map(len, written)) == len("0.1234")


async def test_a_second_version_that_is_worse_does_not_replace_the_first() -> None:
    def worse(sent: Sent) -> dict[str, Any]:
        if scored_role(sent) != "pessimist" or round_of(sent) != 1:
            return scores()
        return scores(0, 0, 0) if "again" in sent.user.split("Score this")[0] else scores(0.1, 0, 0)

    def pessimist(sent: Sent) -> str:
        if asked_for(sent) == "stronger":
            return fenced(sent, {"outcome": "no", "probabilities": {"no": 1}}, "once again")
        return arguing("pessimist")(sent)

    played = await forecasted(panel(pessimist=pessimist, judge=judging(worse)))
    result = result_of(played)
    assert result.debate_log.rounds[0].arguments[1].argument == "The pessimist argues in round 1."
    (replaced,) = result.report.replaced_arguments
    assert replaced.argument.argument == "once again"
    quality = result.report.argument_quality
    assert quality.share == round(14 / 15, 4)


@pytest.mark.parametrize(("second", "missing"), [(0.5, 0), (0.05, 1)])
async def test_references_are_missing_only_if_the_kept_version_has_none(
    second: float, missing: int
) -> None:
    def optimist(sent: Sent) -> str:
        if asked_for(sent) == "references":
            return json.dumps({"refers_to": []})
        if asked_for(sent) == "stronger":
            return fenced(sent, argument_block("optimist", 3) | {"refers_to": ["P1"]}, "retried")
        block = argument_block("optimist", round_of(sent))
        cited: dict[str, Any] = {"refers_to": []} if round_of(sent) == 3 else {}
        return fenced(sent, block | cited, "The optimist argues.")

    def score(sent: Sent) -> dict[str, Any]:
        if scored_role(sent) != "optimist" or round_of(sent) != 3:
            return scores()
        return scores(*[second if "retried" in sent.user else 0.1] * 3)

    report = result_of(await forecasted(panel(optimist=optimist, judge=judging(score)))).report
    replaced = report.replaced_arguments[0].argument.argument
    assert replaced == ("retried" if missing else "The optimist argues.")
    assert [each.what for each in report.gaps] == ["references"] * missing
    assert report.closing_references.share == 1 - 0.2 * missing


async def test_a_judge_that_answered_a_replaced_argument_argues_again() -> None:
    """The pessimist's closing is replaced while the judge answers it."""

    def weak_first(sent: Sent) -> dict[str, Any]:
        weak = scored_role(sent) == "pessimist" and round_of(sent) == 3
        if weak and "a second try" not in sent.user:
            return scores(0.1, 0.1, 0.1)
        # Scored lower than what it replaces, and yet it stands.
        return scores(0.3, 0.3, 0.3) if "hears better" in sent.user else scores()

    def pessimist(sent: Sent) -> str:
        if asked_for(sent) == "stronger":
            block = {"outcome": "no", "probabilities": {"yes": 0.3, "no": 0.7}, "confidence": 0.5}
            more = {"point": "Better.", "refers_to": ["O1"]}
            return fenced(sent, block | more, "a second try")
        return arguing("pessimist")(sent)

    calm = judging(weak_first)

    def judge(sent: Sent) -> str:
        if asked_for(sent) == "argument" and "Better." in sent.user:
            return fenced(sent, argument_block("judge", 3, yes=0.35), "The judge hears better.")
        return calm(sent)

    played = await forecasted(panel(pessimist=pessimist, judge=judge))
    result = result_of(played)
    closing = result.debate_log.rounds[2].arguments
    assert closing[4].argument == "The judge hears better."
    assert closing[4].scores is not None
    assert closing[4].scores.composite == pytest.approx(0.3)
    replaced = [each.argument.argument for each in result.report.replaced_arguments]
    assert replaced == ["The pessimist argues in round 3.", "The judge argues in round 3."]
    yes = {e.role: e.probability for e in result.probability_distribution[0].role_assessments}
    assert yes["judge"] == 0.35
    assert result.metadata.sonnet_calls == 31 + 2 + 2
    assert result.metadata.total_arguments == 15
    told = [(entry.what, entry.seat) for entry in played.degraded]
    assert told == [("argued_again", "pessimist"), ("argued_anew", "judge")]


async def test_historian_keeps_precedents_of_its_replaced_argument() -> None:
    def weak_first(sent: Sent) -> dict[str, Any]:
        weak = scored_role(sent) == "historian" and "a second try" not in sent.user
        return scores(0, 0, 0) if weak and round_of(sent) == 1 else scores()

    def historian(sent: Sent) -> str:
        if asked_for(sent) == "stronger":
            block = {"outcome": "no", "probabilities": {"yes": 0.3, "no": 0.7}, "confidence": 0.5}
            return fenced(sent, block, "a second try")
        return arguing("historian")(sent)

    result = result_of(await forecasted(panel(historian=historian, judge=judging(weak_first))))
    assert [each.event for each in result.historical_precedents] == [
        each["event"] for each in PRECEDENTS
    ]
    assert result.report.gaps == ()
