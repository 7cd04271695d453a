"""Disagreements between roles: the judge's topics, and disputed outcomes."""

import json
from typing import Any

import pytest

from contend.graph.forecast_contract.result import DebateResult, Disagreement
from tests.support.forecasting import (
    OUTCOMES,
    QUESTION,
    arguing,
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
from tests.support.scripted import Cast, Played, Sent

TOPIC = {"topic": "Will the steel come in time?", "points": ["O1", "O3", "P3"], "resolved": False}


def result_of(played: Played) -> DebateResult:
    return DebateResult.model_validate_json(json.dumps(played.state["forecast"]))


def seeing(*disputes: dict[str, Any]) -> Cast:
    """Return a panel whose judge names these disputes and scores roles differently."""

    def score(sent: Sent) -> dict[str, Any]:
        return scores(*[0.8 if scored_role(sent) == "optimist" else 0.5] * 3)

    def last(sent: Sent) -> str:
        return fenced(sent, verdict() | {"disagreements": list(disputes)}, "It will open.")

    return panel(judge=judging(score, last))


async def disagreements(cast: Cast | None = None, given: Any = None) -> tuple[Disagreement, ...]:
    return result_of(await forecasted(cast, given)).disagreement_map


async def test_the_judge_names_the_topics() -> None:
    (steel,) = await disagreements(seeing(TOPIC))
    assert (steel.topic, steel.resolved) == ("Will the steel come in time?", False)
    # The latest of a role's points, and its confidence of 0.6 times the score of the argument.
    assert [each.model_dump() for each in steel.positions] == [
        {"role": "optimist", "stance": "The optimist's point of round 3.", "strength": 0.48},
        {"role": "pessimist", "stance": "The pessimist's point of round 3.", "strength": 0.3},
    ]


async def test_a_topic_needs_two_roles() -> None:
    (opens,) = await disagreements(seeing(TOPIC | {"points": ["O1", "O2"]}))
    assert opens.topic.startswith("It opens: ")


@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False), (True, True)])
async def test_a_topic_named_twice_is_resolved_only_if_both_entries_are(
    first: bool, second: bool
) -> None:
    again = {"topic": " will the STEEL come “in time”", "points": ["P2", "H1"], "resolved": second}
    (steel,) = await disagreements(seeing(TOPIC | {"resolved": first}, again))
    assert (steel.topic, steel.resolved) == (TOPIC["topic"], first and second)
    assert {each.role: each.stance for each in steel.positions} == {
        "optimist": "The optimist's point of round 3.",
        "pessimist": "The pessimist's point of round 3.",
        "historian": "The historian's point of round 1.",
    }


@pytest.mark.parametrize(
    "topics",
    [
        ("Growth of 3.5 or more", "Growth of 35 or more"),
        ("Growth of 2", "Growth of -2"),
        ("Is it > 2?", "Is it < 2?"),
        ("???", "!!!"),
    ],
)
async def test_topics_with_different_meanings_are_not_merged(topics: tuple[str, str]) -> None:
    found = await disagreements(seeing(*(TOPIC | {"topic": topic} for topic in topics)))
    assert [each.topic for each in found] == list(topics)


async def test_without_a_topic_the_most_distant_arguments_name_it() -> None:
    (opens,) = await disagreements()
    assert opens.topic == (
        "It opens: “The optimist's point of round 1.” or “The pessimist's point of round 1.”"
    )
    assert not opens.resolved
    assert [(each.role, each.stance) for each in opens.positions[:2]] == [
        ("optimist", "80%: The optimist's point of round 3."),
        ("pessimist", "40%: The pessimist's point of round 3."),
    ]


async def test_lists_a_disputed_outcome_in_addition_to_the_topics() -> None:
    weather = TOPIC | {"topic": "Is it cold?", "points": ["H1", "J1"], "resolved": True}
    cold, opens = await disagreements(seeing(weather))
    assert (cold.topic, cold.resolved) == ("Is it cold?", True)
    assert opens.topic.startswith("It opens: ")


async def test_lists_each_disputed_outcome_of_three() -> None:
    def three(block: dict[str, Any]) -> dict[str, Any]:
        return block | {"probabilities": block["probabilities"] | {"later": 0.0}}

    def judge(sent: Sent) -> str:
        if asked_for(sent) == "argument":
            return arguing("judge", three)(sent)
        return judging()(sent)

    later = {"id": "later", "label": "It opens later", "description": ""}
    given = {"question": QUESTION, "request": request(outcomes=[*OUTCOMES, later])}
    roles = ("optimist", "pessimist", "contrarian", "historian")
    cast = panel(judge=judge, **{role: arguing(role, three) for role in roles})
    found = await disagreements(cast, given)
    assert [each.topic.split(":")[0] for each in found] == ["It opens", "It does not"]


async def test_a_role_that_stops_giving_a_number_does_not_settle_an_outcome() -> None:
    def silent_in_the_end(sent: Sent) -> str:
        if sent.schema:
            return "{}"
        some = {"yes": 0.9} if round_of(sent) == 1 else {"no": 0.6}
        return arguing("optimist", lambda block: block | {"probabilities": some})(sent)

    def agreeing(role: str) -> Any:
        return arguing(role, lambda block: block | {"probabilities": {"yes": 0.4, "no": 0.6}})

    def judge(sent: Sent) -> str:
        return (agreeing("judge") if asked_for(sent) == "argument" else judging())(sent)

    roles = ("optimist", "pessimist", "historian", "judge")
    agreed = {role: agreeing(role) for role in ("pessimist", "historian")}
    cast = panel(optimist=silent_in_the_end, judge=judge, **agreed)
    result = result_of(await forecasted(cast, roles=roles, max_rounds=2))
    (opens,) = result.disagreement_map
    assert opens.topic.startswith("It opens: ")
    assert [each.role for each in opens.positions] == ["pessimist", "historian", "judge"]
    assert not opens.resolved
