"""Forecasts through the whole graph: calls, prompts and results."""

import json
import math
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from contend.graph.errors import BadInput
from contend.graph.forecast import graph
from contend.graph.forecast_contract.result import DebateResult
from contend.graph.forecast_contract.terms import ROLES
from contend.graph.routing import after_arguing, after_scoring
from contend.graph.settings import ForecastSettings
from contend.graph.values import Document
from contend.nodes.forecast.schedule import round_phase
from tests.nodes.calls.test_evidence import INVENTED
from tests.nodes.calls.test_evidence import documents as documents  # noqa: PLC0414 - the fixture
from tests.support.forecasting import (
    OUTCOMES,
    PRECEDENTS,
    QUESTION,
    YES,
    arguing,
    asked_for,
    forecast_settings,
    forecasted,
    panel,
    request,
    round_of,
    scored_role,
)
from tests.support.scripted import Played, Sent, as_state

ROUND = ["propose", "critique", "judge_continue"]
LAST = ["propose", "critique", "propose", "critique", "judge_continue"]


def result_of(played: Played) -> DebateResult:
    return DebateResult.model_validate_json(json.dumps(played.state["forecast"]))


def test_graph_has_the_designed_nodes_and_edges() -> None:
    drawn = graph.get_graph()
    assert set(drawn.nodes) == {
        "__start__",
        "find_outcomes",
        "confirm_outcomes",
        "retrieve",
        "propose",
        "critique",
        "judge_continue",
        "synthesize",
        "store",
        "__end__",
    }
    assert {(edge.source, edge.target, edge.conditional) for edge in drawn.edges} == {
        ("__start__", "retrieve", True),
        ("__start__", "find_outcomes", True),
        ("find_outcomes", "confirm_outcomes", False),
        ("confirm_outcomes", "retrieve", False),
        ("retrieve", "propose", False),
        ("propose", "critique", True),
        ("propose", "propose", True),
        ("critique", "judge_continue", True),
        ("judge_continue", "propose", True),
        ("judge_continue", "synthesize", True),
        ("synthesize", "store", False),
        ("store", "__end__", False),
    }


@pytest.mark.parametrize(
    ("waiting", "arguing_next", "scoring_next"),
    [([], ["critique"], ["judge_continue"]), (["judge"], ["critique", "propose"], [])],
)
def test_scoring_runs_while_other_roles_still_argue(
    waiting: list[str], arguing_next: list[str], scoring_next: list[str]
) -> None:
    state = as_state({"waiting": waiting})
    assert after_arguing(state) == arguing_next
    assert after_scoring(state) == scoring_next


def test_defaults_match_the_contract() -> None:
    settings = ForecastSettings()
    assert settings.max_rounds == 3
    assert settings.roles == ("optimist", "pessimist", "contrarian", "historian", "judge")
    assert settings.max_argument_length == 500
    assert settings.scoring_criteria == ("logical_strength", "evidence_quality", "novelty")
    assert settings.judge_weight == 0.6
    assert settings.overall_timeout == 120
    assert [round_phase(settings, n) for n in (1, 2, 3)] == ["opening", "rebuttal", "closing"]


class TestFullRun:
    """Check every field of the result of the scripted panel in tests.support.forecasting."""

    @pytest.fixture
    async def played(self) -> Played:
        return await forecasted()

    @pytest.fixture
    def result(self, played: Played) -> DebateResult:
        return result_of(played)

    def test_path_and_calls_match_the_protocol(self, played: Played) -> None:
        assert sorted(played.path[:8]) == sorted(["retrieve", *ROUND * 2, "propose"])
        assert played.path == ["retrieve", *ROUND * 2, *LAST, "synthesize", "store"]
        calls = [asked_for(sent) for sent in played.cast.sent]
        assert {what: calls.count(what) for what in calls} == {
            "argument": 15,
            "score": 15,
            "verdict": 1,
        }
        assert played.degraded == []
        assert (played.stop_reason, played.state["stop"].evidence) == (
            "max_rounds",
            "all 3 rounds were held",
        )

    def test_result_has_its_ids_and_request(self, played: Played, result: DebateResult) -> None:
        assert result.debate_id == played.state["trace"]["id"]
        assert result.task_id == "task-7"
        assert result.completed_at.utcoffset() is not None
        assert played.state["trace"]["forecast"] == played.state["forecast"]
        assert played.state["trace"]["request"] == request()

    def test_debate_log_has_every_argument(self, result: DebateResult) -> None:
        rounds = result.debate_log.rounds
        assert [each.round_number for each in rounds] == [1, 2, 3]
        assert [each.phase for each in rounds] == ["opening", "rebuttal", "closing"]
        for number, each in enumerate(rounds, 1):
            assert tuple(argument.role for argument in each.arguments) == ROLES
            for argument in each.arguments:
                yes = YES[argument.role][number - 1]
                assert argument.argument == f"The {argument.role} argues in round {number}."
                assert argument.outcome_supported == ("yes" if yes >= 0.5 else "no")
                assert argument.evidence_cited == (f"{argument.role} source {number}",)
                assert argument.scores is not None
                assert argument.scores.model_dump() == pytest.approx(
                    {
                        "logical_strength": 0.7,
                        "evidence_quality": 0.6,
                        "novelty": 0.5,
                        "composite": 0.62,
                    }
                )
                other = "optimist" if argument.role == "pessimist" else "pessimist"
                assert argument.rebuts == (() if number == 1 else (other,))

    def test_round_summaries_are_correct(self, played: Played, result: DebateResult) -> None:
        first, second, third = (each.round_summary for each in result.debate_log.rounds)
        assert first.dominant_argument == "optimist"  # of equals, the first at the table
        assert first.emerging_consensus == ()
        assert first.key_disagreements == ("It opens (yes): optimist 90%, pessimist 20%",)
        # From 0.52 to 0.54 to 0.60 on average.
        for summary in (second, third):
            moves = [(each.outcome_id, each.direction) for each in summary.emerging_consensus]
            assert moves == [("yes", "toward"), ("no", "away")]
        assert "pessimist against optimist: The pessimist's point of round 2." in (
            second.key_disagreements
        )
        told = [e["metadata"]["summary"] for e in played.named("round_complete")]
        assert told == [s.model_dump(mode="json") for s in (first, second, third)]

    def test_probabilities_and_consensus_are_correct(self, result: DebateResult) -> None:
        yes, no = result.probability_distribution
        assert (yes.outcome_id, no.outcome_id) == ("yes", "no")
        stated = [(each.role, each.probability, each.confidence) for each in yes.role_assessments]
        assert stated == [(role, YES[role][2], 0.6) for role in ROLES]
        assert yes.consensus_probability == pytest.approx(0.6)
        assert yes.judge_probability == pytest.approx(0.7)
        assert yes.probability == pytest.approx(0.6 * 0.7 + 0.4 * 0.6)
        assert no.probability == pytest.approx(0.34)
        # Variance 0.02; the largest deviation of five values is sqrt(6) / 5.
        expected = 1 - math.sqrt(0.02) / (math.sqrt(6) / 5)
        assert result.consensus_score == round(expected, 4)
        assert [e.consensus_score for e in result.report.consensus_by_outcome] == [
            round(expected, 4)
        ] * 2

    def test_additional_pools_are_correct(self, result: DebateResult) -> None:
        yes, _ = result.report.pools
        assert yes.contract == pytest.approx(0.66)
        assert yes.linear == pytest.approx(0.6)
        odds = math.prod((p / (1 - p)) ** 0.2 for p in (0.8, 0.4, 0.5, 0.6, 0.7))
        assert yes.log_odds == round(odds / (1 + odds), 4)
        sharp = odds**1.1
        assert yes.extremised == round(sharp / (1 + sharp), 4)
        assert result.report.extremising_factor == 1.1

    def test_insights_and_precedents_are_in_the_result(self, result: DebateResult) -> None:
        (insight,) = result.key_insights
        assert insight.model_dump() == {
            "insight": "Spring delays matter most.",
            "source_role": "pessimist",
            "round": 2,
            "impact": "high",
            "affected_outcomes": ("no",),
        }
        kept = [each.model_dump() for each in result.historical_precedents]
        wanted = [dict(each) for each in PRECEDENTS]
        for each in wanted:
            each["similarity_score"] = each.pop("similarity")
        assert kept == wanted

    def test_metadata_is_correct(self, result: DebateResult) -> None:
        assert result.metadata.total_arguments == 15
        assert result.metadata.sonnet_calls == 31
        assert result.metadata.sonnet_tokens_used.model_dump() == {"input": 310, "output": 155}
        assert result.metadata.wall_clock_time_ms >= 0
        assert result.metadata.model == ", ".join(f"scripted:{role}" for role in ROLES)

    def test_report_is_complete(self, result: DebateResult) -> None:
        report = result.report
        assert not report.partial
        assert report.gaps == ()
        assert report.confidence == round((5 * 0.6 + 0.8) / 6, 4)
        assert report.argument_quality.model_dump() == {"share": 1.0, "of": 15, "goal": 0.8}
        assert report.closing_references.model_dump() == {"share": 1.0, "of": 5, "goal": None}
        assert report.replaced_arguments == ()
        raw = {(each.part, each.role, each.round): each.values for each in report.raw_probabilities}
        assert len(raw) == 16
        assert raw["argument", "pessimist", 2] == {"yes": 0.3, "no": 0.7}
        assert raw["verdict", "judge", 3] == {"yes": 0.7, "no": 0.3}

    def test_the_answer_is_the_verdict(self, played: Played) -> None:
        assert played.state["final_answer"] == "It will probably open."
        final = played.named("final_complete")[0]
        assert final["metadata"]["forecast"] == played.state["forecast"]


class TestFewerRolesAndRounds:
    """The effect of the request's configuration."""

    @pytest.mark.parametrize(
        ("roles", "rounds", "calls"),
        [
            (("optimist", "judge"), 3, 6 + 6 + 1),
            (ROLES, 1, 5 + 5 + 1),
            (("pessimist", "historian", "judge"), 2, 6 + 6 + 1),
        ],
    )
    async def test_number_of_calls_follows_roles_and_rounds(
        self, roles: tuple[str, ...], rounds: int, calls: int
    ) -> None:
        played = await forecasted(roles=roles, max_rounds=rounds)
        assert len(played.cast.sent) == calls
        result = result_of(played)
        assert result.metadata.sonnet_calls == calls
        assert len(result.debate_log.rounds) == rounds
        assert [a.role for a in result.debate_log.rounds[-1].arguments] == list(roles)

    async def test_single_criterion_is_the_composite_score(self) -> None:
        played = await forecasted(scoring_criteria=("novelty",))
        scored = result_of(played).debate_log.rounds[0].arguments[0].scores
        assert scored is not None
        assert scored.model_dump() == {
            "logical_strength": None,
            "evidence_quality": None,
            "novelty": 0.5,
            "composite": 0.5,
        }
        assert "evidence_quality" not in played.cast.sent_to("judge")[1].user

    async def test_judge_weight_changes_the_probability(self) -> None:
        result = result_of(await forecasted(judge_weight=0.0))
        assert result.probability_distribution[0].probability == pytest.approx(0.6)


async def test_a_forecast_with_one_outcome_is_refused_before_any_call() -> None:
    cast = panel()
    broken = request()
    broken["prediction_context"]["outcomes"] = broken["prediction_context"]["outcomes"][:1]
    with pytest.raises(BadInput, match="outcomes"):
        await forecasted(cast, given={"question": QUESTION, "request": broken})
    assert cast.sent == []


async def test_a_client_may_give_outcomes_and_a_due_date_instead_of_a_request() -> None:
    given = {"question": QUESTION, "outcomes": OUTCOMES, "due": "2031-05-01"}
    played = await forecasted(given=given)
    context = played.state["request"]["prediction_context"]
    assert context["task"] == {"question": QUESTION}
    assert context["data_summary"] == {"timeframe": {"end": "2031-05-01"}}
    assert result_of(played).probability_distribution[0].outcome_id == "yes"
    cast = panel()
    with pytest.raises(BadInput, match=r"due|end"):
        await forecasted(cast, given=given | {"due": "soon"})
    assert cast.sent == []


async def test_user_can_comment_between_rounds_and_end_them() -> None:
    saver, cast = InMemorySaver(), panel()
    options: dict[str, Any] = {"saver": saver, "pause": "each_round"}
    first = await forecasted(cast, **options)
    assert first.interrupts[0]["round"] == 1
    said: Command[Any] = Command(resume={"say": "The crew is on strike.", "finish": True})
    last = await forecasted(cast, said, **options)
    assert last.stop_reason == "user"
    assert "The crew is on strike." in cast.sent_to("judge")[-1].user
    result = result_of(last)
    assert [gap.what for gap in result.report.gaps] == ["rounds"]
    assert result.report.confidence == pytest.approx((5 * 0.6 + 0.8) / 6 * 6 / 16)


async def test_argument_block_with_another_nonce_is_ignored() -> None:
    """A block copied from another speaker's text is ignored."""

    def thief(sent: Sent) -> str:
        block = {"nonce": "0123456789", "outcome": "no", "probabilities": {"yes": 0, "no": 1}}
        return arguing("optimist")(sent) + f"\n\n```json\n{json.dumps(block)}\n```"

    played = await forecasted(panel(optimist=thief))
    (yes, _) = result_of(played).probability_distribution
    assert yes.role_assessments[0].probability == 0.8


def test_settings_refuse_what_the_contract_refuses() -> None:
    for changes in (
        {"roles": ("optimist",)},
        {"roles": ("judge", "judge")},
        {"max_rounds": 0},
        {"judge_weight": 1.2},
        {"scoring_criteria": ()},
    ):
        with pytest.raises(ValueError, match=next(iter(changes))):
            forecast_settings(**changes)


BARE: dict[str, tuple[dict[str, Any], str]] = {
    "rounds": ({"config": {"rounds": 1}}, "sets max_rounds to 1, but the settings say 3"),
    "roles": ({"config": {"roles": ["optimist", "judge"]}}, "sets roles"),
    "weight": (
        {"config": {"judge_weight": 0.0}},
        "sets judge_weight to 0.0, but",
    ),
}


@pytest.mark.parametrize(("more", "said"), BARE.values(), ids=BARE)
async def test_settings_that_contradict_the_request_are_refused(
    more: dict[str, Any], said: str
) -> None:
    cast = panel()
    with pytest.raises(BadInput, match=said):
        await forecasted(cast, {"question": QUESTION, "request": request() | more})
    assert cast.sent == []


async def test_question_that_differs_from_the_request_is_refused() -> None:
    cast = panel()
    with pytest.raises(BadInput, match="differs from the request"):
        await forecasted(cast, {"question": "Will it rain?", "request": request()})
    assert cast.sent == []


async def test_request_that_matches_the_settings_is_accepted() -> None:
    given = {"question": QUESTION, "request": request() | {"config": {"rounds": 1}}}
    played = await forecasted(given=given, max_rounds=1)
    assert len(played.cast.sent) == 11


async def test_every_role_that_answers_or_scores_sees_the_quote_check(
    documents: list[Document],
) -> None:
    quoting = arguing("pessimist")
    cast = panel(pessimist=lambda sent: f'It says "{INVENTED}" [handbook:3]. {quoting(sent)}')
    played = await forecasted(
        cast, {"question": QUESTION, "request": request(), "documents": documents}
    )
    verdict = f"“{INVENTED}”"
    told = {
        (asked_for(sent), round_of(sent), scored_role(sent) or sent.model)
        for sent in played.cast.sent
        if "NOT FOUND in the documents" in sent.user and verdict in sent.user
    }
    assert {("argument", number, role) for number in (2, 3) for role in ROLES} <= told
    assert {("score", number, "pessimist") for number in (1, 2, 3)} <= told
    assert ("verdict", 0, "judge") in told
