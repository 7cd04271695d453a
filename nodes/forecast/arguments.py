from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from contend.graph.forecast_contract.request import PredictionContext
from contend.graph.forecast_contract.terms import point_prefixes
from contend.graph.readings import ArgumentReading, PastEvent, ScoreReading, VerdictReading
from contend.graph.settings.forecast import request_of
from contend.graph.state import DebateState, Turn, turns_of
from contend.nodes.forecast.numbers import Distribution, consensus

FEWEST_PRECEDENTS = 2
GOOD_ENOUGH, QUALITY_GOAL = 0.4, 0.8


@dataclass(frozen=True)
class ScoredArgument:
    turn: Turn
    reading: ArgumentReading
    score: ScoreReading | None
    point_id: str  # the id by which others cite its point

    @property
    def role(self) -> str:
        return self.turn.role

    @property
    def composite(self) -> float | None:
        return self.score.composite if self.score else None


def prefixes_of(state: DebateState) -> dict[str, str]:
    return point_prefixes(seat.role for seat in state["seats"])


def context_of(state: DebateState) -> PredictionContext:
    return request_of(state).prediction_context


def all_arguments(state: DebateState) -> list[ScoredArgument]:
    scores = {
        turn.assessment.argument: turn.assessment
        for turn in turns_of(state, "score")
        if isinstance(turn.assessment, ScoreReading)
    }
    prefixes = prefixes_of(state)
    return [
        ScoredArgument(
            turn, turn.assessment, scores.get(turn.id), f"{prefixes[turn.role]}{turn.round}"
        )
        for turn in turns_of(state, "propose")
        if isinstance(turn.assessment, ArgumentReading)
    ]


def kept_arguments(state: DebateState) -> list[ScoredArgument]:
    """For each role and round, return the best argument or, if it is outdated, the new one."""
    kept: dict[tuple[int, str], ScoredArgument] = {}
    for said in all_arguments(state):
        key = (said.turn.round, said.role)
        before = kept.get(key)
        better = before is None or (said.composite or 0) > (before.composite or 0)
        if better or said.reading.anew:
            kept[key] = said
    return list(kept.values())


def of_round(arguments: Iterable[ScoredArgument], number: int) -> list[ScoredArgument]:
    return [said for said in arguments if said.turn.round == number]


def reach_goal(arguments: Iterable[ScoredArgument]) -> list[bool]:
    return [said.composite > GOOD_ENOUGH for said in arguments if said.composite is not None]


def misses_goal(arguments: Iterable[ScoredArgument], expected: int = 0) -> bool:
    """Return whether too few arguments are good, assuming `expected` further good arguments."""
    reached = [*reach_goal(arguments), *[True] * expected]
    return sum(reached) < QUALITY_GOAL * len(reached)


def stated_in(arguments: Iterable[ScoredArgument], number: int) -> dict[str, Distribution]:
    return {
        said.role: said.reading.stated.probabilities
        for said in of_round(arguments, number)
        if said.reading.stated.probabilities
    }


def latest_statements(arguments: Iterable[ScoredArgument]) -> dict[str, ScoredArgument]:
    return {said.role: said for said in arguments if said.reading.stated.probabilities}


@dataclass(frozen=True)
class Majority:
    outcome: str
    votes: int
    voters: int


def majority(state: DebateState, against: str) -> Majority | None:
    others = [said for said in kept_arguments(state) if said.role != against]
    latest = {said.role: said.reading.outcome for said in others if said.reading.outcome}
    votes = Counter(latest.values())
    stated_by_roles = [
        said.reading.stated.probabilities for said in latest_statements(others).values()
    ]
    mean = consensus(stated_by_roles, list(votes))
    if not votes:
        return None
    leading = max(votes, key=lambda outcome: (votes[outcome], mean.get(outcome, 0)))
    return Majority(leading, votes[leading], len(latest))


def verdict_of(state: DebateState) -> VerdictReading | None:
    read = [turn.assessment for turn in turns_of(state, "synthesize")]
    return next((each for each in reversed(read) if isinstance(each, VerdictReading)), None)


def verdict_numbers(state: DebateState) -> Distribution:
    verdict = verdict_of(state)
    return verdict.stated.probabilities if verdict else {}


def cited_precedents(state: DebateState) -> list[PastEvent]:
    """Return the Historian's distinct precedents, including those in replaced arguments."""
    events = (
        event
        for said in all_arguments(state)
        if said.role == "historian"
        for event in said.reading.precedents
    )
    return list({event.event.casefold(): event for event in events}.values())
