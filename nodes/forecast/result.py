"""The result of a forecast in its published form: computed from what was said, and from no more."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from contend.graph.contract.result import (
    Argument,
    DebateLog,
    DebateResult,
    Disagreement,
    EmergingConsensus,
    Goal,
    KeyInsight,
    OutcomeConsensus,
    OutcomeForecast,
    Pools,
    Position,
    Precedent,
    RawValues,
    Replaced,
    Report,
    ResultMetadata,
    RoleAssessment,
    Round,
    RoundSummary,
    Scores,
    TokensUsed,
)
from contend.graph.contract.terms import Role
from contend.graph.readings import ArgumentReading, ScoreReading, VerdictReading
from contend.graph.settings import ForecastSettings
from contend.graph.settings.forecast import request_of
from contend.graph.state import DebateState, Turn
from contend.graph.values import NO_USAGE
from contend.nodes.forecast.arguments import (
    Said,
    all_arguments,
    cited,
    context_of,
    kept_arguments,
    latest_statements,
    of_round,
    stated_in,
    verdict_numbers,
    verdict_of,
)
from contend.nodes.forecast.gaps import gaps_of
from contend.nodes.forecast.numbers import (
    DISAGREEMENT,
    Distribution,
    consensus,
    consensus_score,
    extremised,
    is_complete,
    linear_pool,
    log_odds_pool,
    mean_known,
    movement,
    spread,
    weighed,
)
from contend.nodes.forecast.schedule import round_phase
from contend.nodes.timing import worked_ms

GOOD_ENOUGH, QUALITY_GOAL = 0.4, 0.8
# What a repeated call reports.
_FURTHER_TRIES = ("retried", "fell_back")


def result_of(
    state: DebateState, settings: ForecastSettings, debate_id: str, completed_at: datetime
) -> DebateResult:
    """All of it, also of a debate that was cut short: what is missing is null and a gap."""
    context, kept = context_of(state), kept_arguments(state)
    scores = [
        OutcomeConsensus(outcome_id=o, consensus_score=consensus_score(_values(kept, o)))
        for o in context.outcome_ids
    ]
    return DebateResult(
        debate_id=debate_id,
        task_id=request_of(state).task_id,
        completed_at=completed_at,
        debate_log=DebateLog(rounds=_rounds(state, settings, kept)),
        consensus_score=mean_known([each.consensus_score for each in scores]),
        disagreement_map=_disagreements(state, kept),
        probability_distribution=_distribution(state, settings, kept),
        key_insights=_insights(state),
        historical_precedents=_precedents(state),
        metadata=_metadata(state, kept),
        report=_report(state, settings, kept, tuple(scores)),
    )


def round_facts(state: DebateState, settings: ForecastSettings, number: int) -> dict[str, Any]:
    """Return what viewers learn about a finished round."""
    kept = kept_arguments(state)
    return {
        "phase": round_phase(settings, number),
        "summary": _summary(state, kept, number).model_dump(mode="json"),
        "scores": {
            said.role: said.composite for said in of_round(kept, number) if said.score is not None
        },
    }


# --- the log ---


def _rounds(state: DebateState, settings: ForecastSettings, kept: list[Said]) -> tuple[Round, ...]:
    return tuple(
        Round(
            round_number=number,
            phase=round_phase(settings, number),
            arguments=tuple(_argument(said) for said in _in_order(kept, settings, number)),
            round_summary=_summary(state, kept, number),
        )
        for number in range(1, state["round"] + 1)
    )


def _in_order(kept: list[Said], settings: ForecastSettings, number: int) -> list[Said]:
    return sorted(of_round(kept, number), key=lambda said: settings.roles.index(_role(said)))


def _role(said: Said) -> Role:
    return cast("Role", said.role)


def _argument(said: Said) -> Argument:
    return Argument(
        role=_role(said),
        argument=said.turn.text,
        outcome_supported=said.reading.outcome,
        evidence_cited=said.reading.evidence,
        scores=_scores(said.score),
        rebuts=cast("tuple[Role, ...]", said.reading.rebuts),
    )


def _scores(score: ScoreReading | None) -> Scores | None:
    if score is None or score.composite is None:
        return None
    return Scores(**cast("dict[str, Any]", score.scores), composite=score.composite)


def _summary(state: DebateState, kept: list[Said], number: int) -> RoundSummary:
    arguments = of_round(kept, number)
    scored = [said for said in arguments if said.composite is not None]
    best = max(scored, key=lambda said: said.composite or 0, default=None)
    before, after = stated_in(kept, number - 1), stated_in(kept, number)
    moves = ((o, movement(before, after, o)) for o in context_of(state).outcome_ids)
    return RoundSummary(
        dominant_argument=_role(best) if best else None,
        key_disagreements=tuple(_contentions(state, arguments, after)),
        emerging_consensus=tuple(
            EmergingConsensus(outcome_id=outcome, direction=direction)
            for outcome, direction in moves
            if direction
        ),
    )


def _contentions(
    state: DebateState, arguments: list[Said], stated: Mapping[str, Distribution]
) -> Iterator[str]:
    """Yield where the roles' numbers differ most, and which roles contradict each other."""
    for outcome in context_of(state).outcomes:
        held = {role: values[outcome.id] for role, values in stated.items() if outcome.id in values}
        if held and max(held.values()) - min(held.values()) >= DISAGREEMENT:
            high, low = max(held, key=held.__getitem__), min(held, key=held.__getitem__)
            numbers = f"{high} {held[high]:.0%}, {low} {held[low]:.0%}"
            yield f"{outcome.label} ({outcome.id}): {numbers}"
    for said in arguments:
        if said.reading.rebuts:
            yield f"{said.role} against {', '.join(said.reading.rebuts)}: {said.reading.point}"


# --- the numbers ---


def _voices(kept: Iterable[Said]) -> list[Distribution]:
    return [said.reading.stated.probabilities for said in latest_statements(kept).values()]


def _values(kept: Iterable[Said], outcome: str) -> list[float]:
    return [voice[outcome] for voice in _voices(kept) if outcome in voice]


def _contract_pool(
    state: DebateState, settings: ForecastSettings, kept: list[Said]
) -> dict[str, float]:
    outcomes = context_of(state).outcome_ids
    agreed = consensus(_voices(kept), outcomes)
    return weighed(verdict_numbers(state), agreed, settings.judge_weight, outcomes)


def _distribution(
    state: DebateState, settings: ForecastSettings, kept: list[Said]
) -> tuple[OutcomeForecast, ...]:
    outcomes, judge = context_of(state).outcome_ids, verdict_numbers(state)
    agreed, final = consensus(_voices(kept), outcomes), _contract_pool(state, settings, kept)
    return tuple(
        OutcomeForecast(
            outcome_id=outcome,
            probability=final.get(outcome),
            role_assessments=_assessments(kept, settings, outcome),
            judge_probability=judge.get(outcome),
            consensus_probability=agreed.get(outcome),
        )
        for outcome in outcomes
    )


def _assessments(
    kept: list[Said], settings: ForecastSettings, outcome: str
) -> tuple[RoleAssessment, ...]:
    latest = latest_statements(kept)
    stated = {role: latest[role].reading.stated for role in settings.roles if role in latest}
    return tuple(
        RoleAssessment(
            role=role, probability=given.probabilities[outcome], confidence=given.confidence
        )
        for role, given in stated.items()
        if outcome in given.probabilities
    )


def _pools(state: DebateState, settings: ForecastSettings, kept: list[Said]) -> tuple[Pools, ...]:
    outcomes, voices = context_of(state).outcome_ids, _voices(kept)
    own, linear = _contract_pool(state, settings, kept), linear_pool(voices, outcomes)
    odds = log_odds_pool(voices, outcomes)
    sharp = extremised(odds, settings.extremising_factor)
    return tuple(
        Pools(
            outcome_id=outcome,
            contract=own.get(outcome),
            linear=linear.get(outcome),
            log_odds=odds.get(outcome),
            extremised=sharp.get(outcome),
        )
        for outcome in outcomes
    )


def _disagreements(state: DebateState, kept: list[Said]) -> tuple[Disagreement, ...]:
    """Outcomes on which the roles were far apart in some round.

    Resolved if they no longer are, and nobody has fallen silent about it.
    """
    latest = latest_statements(kept)
    rounds = [list(stated_in(kept, n).values()) for n in range(1, state["round"] + 1)]
    found = []
    for outcome in context_of(state).outcomes:
        if not any(spread(voices, outcome.id) >= DISAGREEMENT for voices in rounds):
            continue
        positions = tuple(
            Position(
                role=_role(said),
                stance=f"{said.reading.stated.probabilities[outcome.id]:.0%} for {outcome.label}",
                strength=said.reading.stated.confidence,
            )
            for said in latest.values()
            if outcome.id in said.reading.stated.probabilities
        )
        together = spread(_voices(kept), outcome.id) < DISAGREEMENT
        resolved = together and _spoke_of(kept, outcome.id) <= {each.role for each in positions}
        found.append(Disagreement(topic=outcome.label, positions=positions, resolved=resolved))
    return tuple(found)


def _spoke_of(kept: list[Said], outcome: str) -> set[str]:
    """The roles that ever gave an outcome a probability."""
    return {said.role for said in kept if outcome in said.reading.stated.probabilities}


# --- what was brought up ---


def _insights(state: DebateState) -> tuple[KeyInsight, ...]:
    verdict = verdict_of(state)
    by_point = {said.point_id: said for said in kept_arguments(state)}
    return tuple(
        KeyInsight(
            insight=each.insight,
            source_role=_role(by_point[each.point]),
            round=by_point[each.point].turn.round,
            impact=each.impact,
            affected_outcomes=each.outcomes,
        )
        for each in (verdict.insights if verdict else ())
    )


def _precedents(state: DebateState) -> tuple[Precedent, ...]:
    return tuple(
        Precedent(
            event=each.event,
            date=each.date,
            similarity_score=each.similarity,
            outcome=each.outcome,
            relevance=each.relevance,
        )
        for each in cited(state)
    )


# --- how whole it is ---


def _metadata(state: DebateState, kept: list[Said]) -> ResultMetadata:
    turns = [turn for turn in state.get("turns", []) if turn.status != "human"]
    spans = state.get("spans", [])
    usage = sum((turn.usage for turn in turns), sum((s.usage for s in spans), NO_USAGE))
    again = sum(entry.what in _FURTHER_TRIES for entry in state.get("degraded", []))
    lost = sum(span.calls for span in spans)
    models = dict.fromkeys(turn.model for turn in turns if turn.model)
    return ResultMetadata(
        total_arguments=len(kept),
        sonnet_tokens_used=TokensUsed(input=usage.input_tokens, output=usage.output_tokens),
        sonnet_calls=len(turns) + sum(_asked_again(turn) for turn in turns) + lost + again,
        wall_clock_time_ms=worked_ms(state),
        model=", ".join(models),
    )


def _asked_again(turn: Turn) -> int:
    match turn.assessment:
        case ArgumentReading() | ScoreReading() | VerdictReading() as read:
            return read.asked_again
    return 0


def _report(
    state: DebateState,
    settings: ForecastSettings,
    kept: list[Said],
    scores: tuple[OutcomeConsensus, ...],
) -> Report:
    gaps = tuple(gaps_of(state, settings, kept))
    return Report(
        partial=bool(gaps),
        confidence=_confidence(state, settings, kept),
        gaps=gaps,
        argument_quality=_quality(kept),
        closing_references=_references(settings, kept),
        consensus_by_outcome=scores,
        raw_probabilities=tuple(_raw(state, kept)),
        pools=_pools(state, settings, kept),
        extremising_factor=settings.extremising_factor,
        replaced_arguments=tuple(
            Replaced(round=said.turn.round, argument=_argument(said))
            for said in all_arguments(state)
            if said.turn.id not in {each.turn.id for each in kept}
        ),
    )


def _confidence(state: DebateState, settings: ForecastSettings, kept: list[Said]) -> float | None:
    """The mean of the stated ones, reduced by the share of numbers that never came."""
    outcomes, verdict = context_of(state).outcome_ids, verdict_of(state)
    stated = [said.reading.stated for said in latest_statements(kept).values()]
    stated += [verdict.stated] if verdict else []
    mean = mean_known([each.confidence for each in stated])
    given = [said.reading.stated.probabilities for said in kept] + [verdict_numbers(state)]
    delivered = sum(is_complete(values, outcomes) for values in given)
    expected = len(settings.roles) * settings.max_rounds + 1
    return None if mean is None else mean * delivered / expected


def _quality(kept: list[Said]) -> Goal:
    scored = [said.composite for said in kept if said.composite is not None]
    return Goal(share=_share_of(c > GOOD_ENOUGH for c in scored), of=len(scored), goal=QUALITY_GOAL)


def _references(settings: ForecastSettings, kept: list[Said]) -> Goal:
    """Whether closing arguments build on earlier points; there are none in a single round."""
    closing = of_round(kept, settings.max_rounds) if settings.max_rounds > 1 else []
    return Goal(share=_share_of(bool(said.reading.refers_to) for said in closing), of=len(closing))


def _share_of(truths: Iterable[bool]) -> float | None:
    return mean_known([float(truth) for truth in truths])


def _raw(state: DebateState, kept: list[Said]) -> Iterator[RawValues]:
    for said in kept:
        if values := said.reading.stated.raw:
            yield RawValues(role=_role(said), round=said.turn.round, part="argument", values=values)
    verdict = verdict_of(state)
    if verdict and verdict.stated.raw:
        yield RawValues(
            role="judge", round=state["round"], part="verdict", values=verdict.stated.raw
        )
