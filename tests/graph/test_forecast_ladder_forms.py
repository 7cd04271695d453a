"""Forecasts with missing scores, precedents or references, or without enough time."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from contend.graph.forecast_contract.result import Gap
from contend.graph.forecast_contract.terms import ROLES
from contend.nodes.forecast.calls import FilledForm, fill_once
from contend.nodes.forecast.schedule import Deadline
from tests.graph.test_forecast_ladder import QUICK, asks, failing, gaps, result_of
from tests.support.forecasting import (
    YES,
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


class TestScores:
    async def test_unreadable_scores_are_missing_and_the_argument_is_not_repeated(self) -> None:
        def judge(sent: Sent) -> str:
            if asked_for(sent) == "score" and scored_role(sent) == "optimist":
                return "{}" if sent.schema else "Very good indeed."
            return judging()(sent)

        played = await forecasted(panel(judge=judge))
        result = result_of(played)
        assert gaps(result) == [("scores", "optimist", number) for number in (1, 2, 3)]
        assert all(each.arguments[0].scores is None for each in result.debate_log.rounds)
        assert result.report.argument_quality.of == 12
        assert result.debate_log.rounds[0].round_summary.dominant_argument == "pessimist"
        assert result.metadata.sonnet_calls == 34

    async def test_failed_scoring_does_not_change_the_probabilities(self) -> None:
        fails = failing(judging(), lambda sent: asked_for(sent) == "score")
        result = result_of(await forecasted(panel(judge=fails), **QUICK))
        assert result.probability_distribution[0].probability == pytest.approx(0.66)
        assert [gap[0] for gap in gaps(result)] == ["scores"] * 15
        assert result.report.argument_quality.share is None
        assert all(
            each.round_summary.dominant_argument is None for each in result.debate_log.rounds
        )

    async def test_weak_argument_that_cannot_be_replaced_is_retried_once(self) -> None:
        """The last round checks open arguments twice."""

        def weak(sent: Sent) -> dict[str, Any]:
            feeble = scored_role(sent) == "pessimist" and round_of(sent) == 3
            return scores(0, 0, 0) if feeble else scores()

        mute = failing(arguing("pessimist"), lambda sent: asked_for(sent) == "stronger")
        played = await forecasted(panel(pessimist=mute, judge=judging(weak)), **QUICK)
        assert [entry.what for entry in played.degraded] == ["failed", "sat_out"]
        result = result_of(played)
        assert result.report.gaps == ()
        closing = result.debate_log.rounds[2].arguments[1]
        assert closing.scores is not None
        assert closing.scores.composite == 0

    async def test_scores_in_plain_text_are_parsed(self) -> None:
        def judge(sent: Sent) -> str:
            if asked_for(sent) == "score":
                return "Fine.\nLogical strength: 0.9\nEvidence quality: 0.8\nNovelty: 0.2"
            return judging()(sent)

        result = result_of(await forecasted(panel(judge=judge)))
        scored = result.debate_log.rounds[0].arguments[0].scores
        assert scored is not None
        assert scored.composite == pytest.approx(0.72)


class TestPrecedents:
    @pytest.mark.parametrize(
        ("second", "missing"),
        [
            ([{"event": "E", "date": "1990", "outcome": "late", "relevance": "r"}], 1),
            ([], 1),
            (
                [
                    {"event": "E", "date": "1990", "outcome": "late", "relevance": "r"},
                    {"event": "F", "date": "1991", "outcome": "late", "relevance": "r"},
                ],
                0,
            ),
        ],
    )
    async def test_historian_with_too_few_precedents_is_asked_once_more(
        self, second: list[dict[str, Any]], missing: int
    ) -> None:
        undated = [{"event": "Some bridge", "date": "", "outcome": "late"}]
        calm = arguing("historian", lambda block: block | {"precedents": undated})

        def historian(sent: Sent) -> str:
            if asked_for(sent) == "precedents":
                return json.dumps({"precedents": [each | {"similarity": 0.4} for each in second]})
            return calm(sent)

        played = await forecasted(panel(historian=historian))
        result = result_of(played)
        assert len(asks(played, "historian", "precedents")) == 1
        assert len(result.historical_precedents) == len(second)
        assert [gap[0] for gap in gaps(result)] == ["historical_precedents"] * missing
        reported = [entry.what for entry in played.degraded]
        assert reported == ["no_precedents"] * missing


class TestReferences:
    @pytest.mark.parametrize(("named", "missing"), [(["P1", "H2"], 0), ([], 1)])
    async def test_closing_without_references_is_asked_once_more(
        self, named: list[str], missing: int
    ) -> None:
        alone = arguing("optimist", lambda block: block | {"refers_to": []})

        def optimist(sent: Sent) -> str:
            is_form = asked_for(sent) == "references"
            return json.dumps({"refers_to": named}) if is_form else alone(sent)

        played = await forecasted(panel(optimist=optimist))
        result = result_of(played)
        (asked,) = asks(played, "optimist", "references")
        assert "P1 pessimist" in asked.user
        assert gaps(result) == [("references", "optimist", 3)] * missing
        assert result.report.closing_references.share == 1 - 0.2 * missing


class TestConfidence:
    @pytest.mark.parametrize("given", [85, -0.1, 1.2, None, "high"])
    async def test_confidence_outside_0_to_1_is_missing(self, given: Any) -> None:
        cast = panel(optimist=arguing("optimist", lambda block: block | {"confidence": given}))
        result = result_of(await forecasted(cast, max_rounds=1))
        assert gaps(result) == [("confidence", "optimist", 1)]
        assert result.probability_distribution[0].role_assessments[0].confidence is None


class TestQualityGoal:
    @pytest.mark.parametrize(("second", "missing"), [(0.6, 0), (0.3, 1)])
    async def test_arguments_below_the_goal_are_asked_for_once_more(
        self, second: float, missing: int
    ) -> None:
        mediocre = ("optimist", "pessimist")

        def score(sent: Sent) -> dict[str, Any]:
            if scored_role(sent) not in mediocre:
                return scores()
            value = second if "Again," in sent.user else 0.4
            return scores(value, value, value)

        def role(name: str) -> Callable[[Sent], str]:
            def say(sent: Sent) -> str:
                if asked_for(sent) != "stronger":
                    return arguing(name)(sent)
                return fenced(sent, argument_block(name, 1), "Again, and better.")

            return say

        cast = panel(judge=judging(score), **{name: role(name) for name in mediocre})
        played = await forecasted(cast, max_rounds=1)
        result = result_of(played)
        assert [len(asks(played, name, "stronger")) for name in ROLES] == [1, 1, 0, 0, 0]
        assert result.report.argument_quality.share == (1.0 if not missing else 0.6)
        assert gaps(result) == [("argument_quality", None, None)] * missing


@pytest.mark.looptime
class TestTime:
    async def test_parts_missing_at_the_time_limit_are_reported(self) -> None:
        async def endless(sent: Sent) -> None:
            if sent.model == "pessimist" and round_of(sent) == 2:
                await asyncio.Event().wait()

        cast = panel()
        cast.before = endless
        played = await forecasted(cast, overall_timeout=9)
        assert played.stop_reason == "max_rounds"
        result = result_of(played)
        # Nobody else loses time to it, and the rounds are held.
        assert gaps(result) == [("argument", "pessimist", 2)]
        why = "it was due 5.2 s into the debate; overall_timeout is 9 s"
        assert result.report.gaps[0].why == why
        yes = result.probability_distribution[0]
        stated = {each.role: each.probability for each in yes.role_assessments}
        assert stated == {role: numbers[2] for role, numbers in YES.items()}
        assert [entry.what for entry in played.degraded] == ["out_of_time"]
        # What the call took before it was cut off, nobody said.
        assert result.metadata.sonnet_tokens_used.input == 290
        assert result.report.calls_without_usage == 1
        assert result.metadata.sonnet_calls == 30
        assert result.report.confidence == pytest.approx((5 * 0.6 + 0.8) / 6 * 15 / 16, abs=1e-4)

    async def test_role_that_hangs_in_every_round_does_not_affect_the_others(self) -> None:
        async def endless(sent: Sent) -> None:
            if sent.model == "pessimist":
                await asyncio.Event().wait()

        cast = panel()
        cast.before = endless
        result = result_of(await forecasted(cast, overall_timeout=9))
        assert len(result.debate_log.rounds) == 3
        assert gaps(result) == [
            *(("argument", "pessimist", number) for number in (1, 2, 3)),
            ("assessment", "pessimist", None),
        ]
        assert result.report.argument_quality.of == 12

    async def test_hanging_model_is_replaced_by_its_fallback(self) -> None:
        async def endless(sent: Sent) -> None:
            if sent.model == "pessimist":
                await asyncio.Event().wait()

        cast = panel(quick=arguing("pessimist"))
        cast.before = endless
        fallbacks = {"pessimist_fallbacks": ("scripted:quick",)}
        played = await forecasted(cast, overall_timeout=8, max_rounds=1, **fallbacks)
        assert not result_of(played).report.partial
        (turn,) = (t for t in played.turns if t.id == "r1.propose.pessimist")
        assert (turn.model, turn.status) == ("scripted:quick", "fallback_model")

    async def test_hanging_form_call_is_replaced_by_the_fallback(self) -> None:
        async def endless(sent: Sent) -> None:
            if sent.model == "pessimist" and sent.schema:
                await asyncio.Event().wait()

        entries = [{"outcome": "yes", "probability": 30}, {"outcome": "no", "probability": 70}]
        form = json.dumps({"outcome": "no", "probabilities": entries, "confidence": 0.5})
        cast = panel(pessimist="It will not open.", quick=form)
        cast.before = endless
        fallbacks = {"pessimist_fallbacks": ("scripted:quick",)}
        played = await forecasted(cast, overall_timeout=8, max_rounds=1, **fallbacks)
        assert not result_of(played).report.partial

    # The time a call took is read off the wall clock.
    @pytest.mark.looptime(False)
    async def test_time_waiting_for_a_missing_verdict_is_counted(self) -> None:
        async def endless(sent: Sent) -> None:
            if asked_for(sent) == "verdict":
                await asyncio.Event().wait()

        cast = panel()
        cast.before = endless
        roles = ("optimist", "judge")
        played = await forecasted(cast, overall_timeout=4, roles=roles, max_rounds=1)
        result = result_of(played)
        assert gaps(result) == [("verdict", "judge", None)]
        assert result.report.gaps[0].why == "it was due 4 s into the debate; overall_timeout is 4 s"
        assert result.metadata.wall_clock_time_ms >= 3900
        assert result.metadata.sonnet_calls == 5

    async def test_no_second_question_is_asked_after_the_time_limit(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        over = Deadline(at=asyncio.get_running_loop().time() - 1, due=1, in_all=120)

        async def too_late(*given: Any) -> FilledForm:
            filled: FilledForm = await fill_once(*given[:-1], over)  # type: ignore[call-arg]
            return filled

        monkeypatch.setattr("contend.nodes.forecast.argue.fill_once", too_late)
        cast = panel(optimist="Surely it opens.")
        played = await forecasted(cast, roles=("optimist", "judge"), max_rounds=1)
        result = result_of(played)
        (gap,) = (gap for gap in result.report.gaps if gap.what == "probabilities")
        assert gap.why == "no readable probability for yes, no, with no time left to ask again"
        assert result.metadata.sonnet_calls == len(cast.sent) == 5
        assert result.metadata.sonnet_tokens_used.input == 50

    async def test_calls_without_a_result_are_counted(self) -> None:
        cast = panel(optimist="")
        played = await forecasted(cast, max_retries=1, retry_wait=0.01)
        metadata = result_of(played).metadata
        assert len(cast.sent) == 31
        assert metadata.sonnet_calls == 31
        assert metadata.sonnet_tokens_used.model_dump() == {"input": 310, "output": 155}
        assert metadata.total_arguments == 12

    async def test_gap_has_optional_role_and_round(self) -> None:
        assert Gap(what="rounds", why="w").model_dump() == {
            "what": "rounds",
            "why": "w",
            "role": None,
            "round": None,
        }
