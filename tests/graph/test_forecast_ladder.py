"""Forecasts with failing speakers: gaps are reported and no number is made up."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from contend.graph.errors import ModelFailed
from contend.graph.forecast_contract.result import DebateResult
from contend.graph.forecast_contract.terms import ROLES
from tests.support.forecasting import (
    YES,
    arguing,
    asked_for,
    fenced,
    forecasted,
    judging,
    panel,
    round_of,
    verdict,
)
from tests.support.scripted import Played, Sent

QUICK = {"max_retries": 0}


def result_of(played: Played) -> DebateResult:
    return DebateResult.model_validate_json(json.dumps(played.state["forecast"]))


def gaps(result: DebateResult) -> list[tuple[str, str | None, int | None]]:
    return [(gap.what, gap.role, gap.round) for gap in result.report.gaps]


def failing(calm: Callable[[Sent], str], fails: Callable[[Sent], bool]) -> Callable[[Sent], str]:
    """Return a speaker whose provider refuses some calls."""

    def say(sent: Sent) -> str:
        if fails(sent):
            raise ConnectionError("no route to the model")
        return calm(sent)

    return say


def filling(answer: Any) -> Callable[[Sent], str]:
    """Return a speaker that fills every form with this answer."""
    return lambda _: json.dumps(answer)


def asks(played: Played, model: str, what: str) -> list[Sent]:
    return [sent for sent in played.cast.sent_to(model) if asked_for(sent) == what]


class TestRolesThatCannotSpeak:
    async def test_role_that_never_speaks_is_reported_as_a_gap(self) -> None:
        cast = panel(pessimist=failing(arguing("pessimist"), lambda _: True))
        played = await forecasted(cast, **QUICK)
        result = result_of(played)
        assert result.report.partial
        assert gaps(result) == [
            *(("argument", "pessimist", number) for number in (1, 2, 3)),
            ("assessment", "pessimist", None),
        ]
        assert "no route to the model" in result.report.gaps[0].why
        yes = result.probability_distribution[0]
        assert [each.role for each in yes.role_assessments] == [
            role for role in ROLES if role != "pessimist"
        ]
        # Of 0.8, 0.5, 0.6 and 0.7; nobody stands in for the fifth.
        assert yes.consensus_probability == pytest.approx(0.65)
        assert yes.probability == pytest.approx(0.6 * 0.7 + 0.4 * 0.65)
        assert result.report.confidence == pytest.approx((4 * 0.6 + 0.8) / 5 * 13 / 16)
        assert result.metadata.total_arguments == 12
        whats = {entry.what for entry in played.degraded}
        assert whats == {"failed", "sat_out"}

    async def test_role_that_fails_later_keeps_its_last_probabilities(self) -> None:
        cast = panel(optimist=failing(arguing("optimist"), lambda sent: round_of(sent) == 3))
        result = result_of(await forecasted(cast, **QUICK))
        assert gaps(result) == [("argument", "optimist", 3), ("latest_assessment", "optimist", 3)]
        assert result.report.gaps[1].why == "its last readable probabilities are those of round 2"
        first = result.probability_distribution[0].role_assessments[0]
        assert (first.role, first.probability) == ("optimist", YES["optimist"][1])
        assert result.report.closing_references.of == 4

    async def test_forecast_fails_if_every_role_fails(self) -> None:
        silent = {role: failing(arguing(role), lambda _: True) for role in ROLES}
        with pytest.raises(ModelFailed, match="no route to the model") as failed:
            await forecasted(panel(**silent), **QUICK)
        assert len([e for e in failed.value.degraded if e.what == "sat_out"]) == 5
        assert str(failed.value).count("Optimist (scripted:optimist)") == 1

    async def test_rounds_end_if_every_role_fails_in_a_later_round(self) -> None:
        def later(sent: Sent) -> bool:
            return asked_for(sent) == "argument" and round_of(sent) == 2

        cast = panel(**{role: failing(arguing(role), later) for role in ROLES if role != "judge"})
        cast.lines["judge"] = failing(judging(), later)
        played = await forecasted(cast, **QUICK)
        assert played.stop_reason == "failed"
        result = result_of(played)
        assert ("rounds", None, None) in gaps(result)
        yes = result.probability_distribution[0]
        assert yes.consensus_probability == pytest.approx(0.52)  # of round 1
        assert yes.judge_probability == pytest.approx(0.7)


class TestVerdict:
    async def test_missing_verdict_leaves_the_probabilities_of_the_roles(self) -> None:
        fails = failing(judging(), lambda sent: asked_for(sent) == "verdict")
        played = await forecasted(panel(judge=fails), **QUICK)
        result = result_of(played)
        yes = result.probability_distribution[0]
        assert yes.judge_probability is None
        assert yes.probability == pytest.approx(0.6)
        assert gaps(result) == [("verdict", "judge", None)]
        assert "no route to the model" in result.report.gaps[0].why
        assert result.key_insights == ()
        answer = played.state["final_answer"]
        assert answer.startswith("There is no verdict by the judge: Judge (scripted:judge): ")
        assert answer.endswith("The roles' own numbers give: yes 60%, no 40%.")

    async def test_verdict_without_numbers_is_asked_for_them(self) -> None:
        form = {
            "outcome": "yes",
            "probabilities": [
                {"outcome": "yes", "probability": 0.9},
                {"outcome": "no", "probability": 0.1},
            ],
            "confidence": 0.5,
        }
        judge = judging(last=lambda _: "It opens.")

        def say(sent: Sent) -> str:
            return json.dumps(form) if sent.schema else judge(sent)

        result = result_of(await forecasted(panel(judge=say)))
        assert result.probability_distribution[0].judge_probability == pytest.approx(0.9)
        assert gaps(result) == [("key_insights", "judge", None)]
        assert result.metadata.sonnet_calls == 32

    async def test_insights_without_a_real_point_are_dropped(self) -> None:
        def last(sent: Sent) -> str:
            given = verdict()
            more = [
                {"insight": "Made up.", "point": "X9", "impact": "high", "outcomes": []},
                {"insight": "Odd.", "point": "O1", "impact": "enormous", "outcomes": []},
                {"insight": "Good.", "point": "o1", "impact": "LOW", "outcomes": ["yes", "ufo"]},
            ]
            return fenced(sent, given | {"insights": more}, "It opens.")

        result = result_of(await forecasted(panel(judge=judging(last=last))))
        (insight,) = result.key_insights
        assert (insight.insight, insight.source_role, insight.round) == ("Good.", "optimist", 1)
        assert (insight.impact, insight.affected_outcomes) == ("low", ("yes",))
