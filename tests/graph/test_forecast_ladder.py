"""A forecast whose speakers fail: what is absent is named, and no number is made up."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from contend.graph.errors import ModelFailed
from contend.graph.forecast_contract.result import DebateResult, Gap
from contend.graph.forecast_contract.terms import ROLES
from contend.nodes.forecast.calls import Filled, fill_once
from contend.nodes.forecast.schedule import Deadline
from tests.support.forecasting import (
    QUESTION,
    YES,
    arguing,
    argument_block,
    asked_for,
    fenced,
    forecasted,
    judging,
    panel,
    request,
    round_of,
    scored_role,
    scores,
    verdict,
)
from tests.support.scripted import Played, Sent

QUICK = {"max_retries": 0}


def result_of(played: Played) -> DebateResult:
    return DebateResult.model_validate_json(json.dumps(played.state["forecast"]))


def gaps(result: DebateResult) -> list[tuple[str, str | None, int | None]]:
    return [(gap.what, gap.role, gap.round) for gap in result.report.gaps]


def failing(calm: Callable[[Sent], str], fails: Callable[[Sent], bool]) -> Callable[[Sent], str]:
    """A speaker whose provider refuses some calls."""

    def say(sent: Sent) -> str:
        if fails(sent):
            raise ConnectionError("no route to the model")
        return calm(sent)

    return say


def filling(answer: Any) -> Callable[[Sent], str]:
    """What a speaker fills a form with."""
    return lambda _: json.dumps(answer)


def asks(played: Played, model: str, what: str) -> list[Sent]:
    return [sent for sent in played.cast.sent_to(model) if asked_for(sent) == what]


class TestRolesThatCannotSpeak:
    async def test_a_role_that_never_speaks_is_a_named_gap(self) -> None:
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

    async def test_a_role_lost_on_the_way_stands_by_its_last_numbers(self) -> None:
        cast = panel(optimist=failing(arguing("optimist"), lambda sent: round_of(sent) == 3))
        result = result_of(await forecasted(cast, **QUICK))
        assert gaps(result) == [("argument", "optimist", 3), ("latest_assessment", "optimist", 3)]
        assert result.report.gaps[1].why == "its last readable probabilities are those of round 2"
        first = result.probability_distribution[0].role_assessments[0]
        assert (first.role, first.probability) == ("optimist", YES["optimist"][1])
        assert result.report.closing_references.of == 4

    async def test_nobody_speaking_at_all_is_a_failure(self) -> None:
        silent = {role: failing(arguing(role), lambda _: True) for role in ROLES}
        with pytest.raises(ModelFailed, match="no route to the model") as failed:
            await forecasted(panel(**silent), **QUICK)
        assert len([e for e in failed.value.degraded if e.what == "sat_out"]) == 5
        assert str(failed.value).count("Optimist (scripted:optimist)") == 1

    async def test_nobody_speaking_in_a_later_round_ends_the_rounds(self) -> None:
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


class TestNumbers:
    async def test_a_role_with_missing_probabilities_counts_where_it_gave_some(self) -> None:
        """Three outcomes, one role that names only one of them, a judge in percentages to 103."""
        outcomes = [{"id": each, "label": each.upper()} for each in "abc"]
        given = request(outcomes=outcomes)
        stated = {
            "optimist": {"a": 0.6, "b": 0.3, "c": 0.1},
            "pessimist": {"a": 0.4, "b": 0.4, "c": 0.2},
            "judge": {"a": 0.8},
        }

        def role(name: str) -> Callable[[Sent], str]:
            def say(sent: Sent) -> str:
                if asked_for(sent) == "numbers":
                    return "still no numbers"
                block = {"outcome": "a", "probabilities": stated[name], "confidence": 0.5}
                return fenced(sent, block | {"point": "P."}, f"{name} speaks.")

            return say

        def judge(sent: Sent) -> str:
            match asked_for(sent):
                case "score":
                    return fenced(sent, scores(), "Sound.")
                case "verdict":
                    percent = {"a": 62, "b": 31, "c": 10}
                    return fenced(sent, {"probabilities": percent, "confidence": 70}, "A.")
            return role("judge")(sent)

        cast = panel(optimist=role("optimist"), pessimist=role("pessimist"), judge=judge)
        roles = ("optimist", "pessimist", "judge")
        played = await forecasted(
            cast, {"question": QUESTION, "request": given}, roles=roles, max_rounds=1
        )
        result = result_of(played)
        rows = {each.outcome_id: each for each in result.probability_distribution}
        assert {o: row.consensus_probability for o, row in rows.items()} == pytest.approx(
            {"a": 0.6, "b": 0.35, "c": 0.15}
        )
        assert {o: row.judge_probability for o, row in rows.items()} == pytest.approx(
            {"a": 62 / 103, "b": 31 / 103, "c": 10 / 103}, abs=1e-4
        )
        assert {o: row.probability for o, row in rows.items()} == pytest.approx(
            {"a": 0.578043, "b": 0.308253, "c": 0.113704}, abs=1e-4
        )
        assert [each.role for each in rows["b"].role_assessments] == ["optimist", "pessimist"]
        assert gaps(result) == [("probabilities", "judge", 1), ("confidence", "judge", None)]
        assert result.report.gaps[0].why == "no readable probability for b, c, asked twice"
        raw = {(each.part, each.role): each.values for each in result.report.raw_probabilities}
        assert raw["verdict", "judge"] == {"a": 62, "b": 31, "c": 10}
        assert raw["argument", "judge"] == {"a": 0.8}
        # Means 0.5, 0.35 and 0.15: an incomplete voice enters no pool of whole distributions.
        assert [each.linear for each in result.report.pools] == pytest.approx([0.5, 0.35, 0.15])
        assert len(asks(played, "judge", "numbers")) == 1
        # a: 0.6, 0.4, 0.8; b: 0.3, 0.4; c: 0.1, 0.2.
        by_outcome = [each.consensus_score for each in result.report.consensus_by_outcome]
        assert by_outcome == pytest.approx([1 - 0.163299 / 0.471405, 0.9, 0.9], abs=1e-4)
        assert result.consensus_score == pytest.approx(sum(by_outcome) / 3, abs=1e-4)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "given",
        [
            "It will open, I think.",
            "Probabilities: yes 90 %, no 90 %",
            '```json\n{"nonce": "0000000000", "probabilities": {"yes": 1, "no": 0}}\n```',
        ],
        ids=["no numbers", "no distribution", "another's nonce"],
    )
    async def test_unreadable_numbers_are_asked_for_once_more(self, given: str) -> None:
        form = {
            "outcome": "yes",
            "probabilities": [
                {"outcome": "yes", "probability": 75},
                {"outcome": "no", "probability": 25},
            ],
            "confidence": 0.4,
        }

        def optimist(sent: Sent) -> str:
            if asked_for(sent) == "references":
                return json.dumps({"refers_to": ["P1"]})
            return json.dumps(form) if sent.schema else given

        played = await forecasted(panel(optimist=optimist))
        result = result_of(played)
        assert not result.report.partial
        first = result.probability_distribution[0].role_assessments[0]
        assert (first.role, first.probability, first.confidence) == ("optimist", 0.75, 0.4)
        assert result.debate_log.rounds[0].arguments[0].outcome_supported == "yes"
        assert result.metadata.sonnet_calls == 35
        assert len(asks(played, "optimist", "numbers")) == 3
        assert given in asks(played, "optimist", "numbers")[0].user

    async def test_numbers_that_never_come_are_absent_and_not_uniform(self) -> None:
        def optimist(sent: Sent) -> str:
            return "{}" if sent.schema else "Surely it opens."

        result = result_of(await forecasted(panel(optimist=optimist)))
        for row in result.probability_distribution:
            assert "optimist" not in [each.role for each in row.role_assessments]
        kinds = {gap[0] for gap in gaps(result)}
        assert kinds == {"probabilities", "outcome_supported", "assessment", "references"}
        yes = result.probability_distribution[0]
        assert yes.consensus_probability == pytest.approx((0.4 + 0.5 + 0.6 + 0.7) / 4)

    async def test_words_are_read_where_there_is_no_block(self) -> None:
        words = "It opens.\nSupports: yes\nProbabilities: yes 70 %, no 30 %\nConfidence: 0.9"
        played = await forecasted(panel(optimist=words))
        first = result_of(played).probability_distribution[0].role_assessments[0]
        assert [first.probability, first.confidence] == pytest.approx([0.7, 0.9])
        assert asks(played, "optimist", "numbers") == []

    async def test_text_and_labels_are_read_without_a_second_call(self) -> None:
        def loosely(block: dict[str, Any]) -> dict[str, Any]:
            given = {"It opens": "70%", "NO ": "0.3"}
            return block | {"outcome": "it opens", "probabilities": given}

        played = await forecasted(panel(optimist=arguing("optimist", loosely)))
        result = result_of(played)
        assert result.probability_distribution[0].role_assessments[0].probability == 0.7
        assert result.debate_log.rounds[0].arguments[0].outcome_supported == "yes"
        assert asks(played, "optimist", "numbers") == []

    async def test_a_digit_repeated_without_end_is_no_number(self) -> None:
        def optimist(sent: Sent) -> str:
            return "{}" if sent.schema else f"Probabilities: yes {'9' * 400}, no 1"

        result = result_of(await forecasted(panel(optimist=optimist)))
        assert ("assessment", "optimist", None) in gaps(result)

    async def test_half_a_sign_in_a_block_breaks_nothing(self) -> None:
        odd = {"point": "The\udfff ice.", "evidence": ["\ud83d report"]}
        said = arguing("optimist", lambda block: block | odd)
        played = await forecasted(panel(optimist=said))
        assert not result_of(played).report.partial
        assert asks(played, "judge", "verdict")[0].user.count(": The ice.") == 3

    async def test_without_any_numbers_there_is_no_distribution(self) -> None:
        mute: dict[str, Any] = {
            role: (lambda sent: "{}" if sent.schema else "Who knows.") for role in ROLES
        }

        def judge(sent: Sent) -> str:
            if asked_for(sent) == "score" and not sent.schema:
                return fenced(sent, scores(), "Sound.")
            return "{}" if sent.schema else "Who knows."

        result = result_of(await forecasted(panel(**mute | {"judge": judge}), max_rounds=1))
        for row in result.probability_distribution:
            assert row.probability is None
            assert row.consensus_probability is None
            assert row.judge_probability is None
        assert result.consensus_score is None
        assert result.report.confidence is None
        assert all(each.log_odds is None for each in result.report.pools)


class TestVerdict:
    async def test_without_a_verdict_the_roles_stand_alone(self) -> None:
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

    async def test_a_verdict_in_words_is_asked_for_its_numbers(self) -> None:
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

    async def test_insights_need_a_point_that_was_made(self) -> None:
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


class TestScores:
    async def test_scores_that_cannot_be_read_are_absent_and_not_tried_again(self) -> None:
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

    async def test_a_judge_that_cannot_score_leaves_the_numbers_alone(self) -> None:
        fails = failing(judging(), lambda sent: asked_for(sent) == "score")
        result = result_of(await forecasted(panel(judge=fails), **QUICK))
        assert result.probability_distribution[0].probability == pytest.approx(0.66)
        assert [gap[0] for gap in gaps(result)] == ["scores"] * 15
        assert result.report.argument_quality.share is None
        assert all(
            each.round_summary.dominant_argument is None for each in result.debate_log.rounds
        )

    async def test_a_weak_argument_that_cannot_be_mended_is_tried_once(self) -> None:
        """Also in the last round, in which what is open is looked at twice."""

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

    async def test_scores_in_words_are_read(self) -> None:
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
    async def test_a_historian_with_too_few_is_asked_once(
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
        told = [entry.what for entry in played.degraded]
        assert told == ["no_precedents"] * missing


class TestReferences:
    @pytest.mark.parametrize(("named", "missing"), [(["P1", "H2"], 0), ([], 1)])
    async def test_a_closing_that_cites_nothing_is_asked_once(
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
    async def test_what_is_not_between_0_and_1_is_missing(self, given: Any) -> None:
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
    async def test_what_is_missing_when_the_time_is_up_is_named(self) -> None:
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

    async def test_one_that_hangs_in_every_round_costs_the_others_nothing(self) -> None:
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

    async def test_who_hangs_is_stood_in_for(self) -> None:
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

    async def test_a_form_that_hangs_is_filled_by_who_stands_in(self) -> None:
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
    async def test_a_verdict_that_never_comes_took_its_time(self) -> None:
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

    async def test_nobody_is_asked_twice_when_the_time_is_up(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        over = Deadline(at=asyncio.get_running_loop().time() - 1, due=1, in_all=120)

        async def too_late(*given: Any) -> Filled:
            filled: Filled = await fill_once(*given[:-1], over)  # type: ignore[call-arg]
            return filled

        monkeypatch.setattr("contend.nodes.forecast.argue.fill_once", too_late)
        cast = panel(optimist="Surely it opens.")
        played = await forecasted(cast, roles=("optimist", "judge"), max_rounds=1)
        result = result_of(played)
        (gap,) = (gap for gap in result.report.gaps if gap.what == "probabilities")
        assert gap.why == "no readable probability for yes, no, with no time left to ask again"
        assert result.metadata.sonnet_calls == len(cast.sent) == 5
        assert result.metadata.sonnet_tokens_used.input == 50

    async def test_calls_that_brought_nothing_are_counted(self) -> None:
        cast = panel(optimist="")
        played = await forecasted(cast, max_retries=1, retry_wait=0.01)
        metadata = result_of(played).metadata
        assert len(cast.sent) == 31
        assert metadata.sonnet_calls == 31
        assert metadata.sonnet_tokens_used.model_dump() == {"input": 310, "output": 155}
        assert metadata.total_arguments == 12

    async def test_a_gap_says_what_it_is_about(self) -> None:
        assert Gap(what="rounds", why="w").model_dump() == {
            "what": "rounds",
            "why": "w",
            "role": None,
            "round": None,
        }
