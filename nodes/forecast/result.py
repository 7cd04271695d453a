from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from contend.graph.forecast_contract import result as contract
from contend.graph.readings import ScoreReading
from contend.graph.settings import ForecastSettings
from contend.graph.settings.forecast import request_of
from contend.graph.state import DebateState
from contend.nodes.forecast import numbers
from contend.nodes.forecast.arguments import (
    QUALITY_GOAL,
    ScoredArgument,
    all_arguments,
    cited_precedents,
    context_of,
    kept_arguments,
    latest_statements,
    of_round,
    reach_goal,
    stated_in,
    verdict_numbers,
    verdict_of,
)
from contend.nodes.forecast.disagreements import disagreement_map, disputable, key_disagreements
from contend.nodes.forecast.gaps import gaps_of
from contend.nodes.forecast.schedule import round_phase
from contend.nodes.timing import spoken_by_models, total_usage, worked_ms

# The problems reported when a call is repeated.
_FURTHER_TRIES = ("retried", "fell_back")


def result_of(
    state: DebateState, settings: ForecastSettings, debate_id: str, completed_at: datetime
) -> contract.DebateResult:
    forecast = _Forecast(state, settings)
    report = forecast.report()
    return contract.DebateResult(
        debate_id=debate_id,
        task_id=request_of(state).task_id,
        completed_at=completed_at,
        debate_log=contract.DebateLog(rounds=forecast.rounds()),
        consensus_score=numbers.mean_known(
            [e.consensus_score for e in report.consensus_by_outcome]
        ),
        disagreement_map=disagreement_map(forecast.kept, forecast.outcomes, forecast.verdict),
        probability_distribution=forecast.distribution(),
        key_insights=forecast.insights(),
        historical_precedents=_precedents(state),
        metadata=_metadata(state, forecast.kept),
        report=report,
    )


def round_facts(state: DebateState, settings: ForecastSettings, number: int) -> dict[str, Any]:
    forecast = _Forecast(state, settings)
    arguments = of_round(forecast.kept, number)
    return {
        "phase": round_phase(settings, number),
        "summary": forecast.summary(number).model_dump(mode="json"),
        "scores": {each.role: each.composite for each in arguments if each.score is not None},
    }


class _Forecast:
    def __init__(self, state: DebateState, settings: ForecastSettings) -> None:
        context = context_of(state)
        self.state, self.settings, self.outcomes = state, settings, context.outcomes
        self.outcome_ids = context.outcome_ids
        self.kept = kept_arguments(state)
        self.latest = latest_statements(self.kept)
        self.stated = [each.reading.stated.probabilities for each in self.latest.values()]
        self.agreed = numbers.consensus(self.stated, self.outcome_ids)
        self.verdict, self.judge = verdict_of(state), verdict_numbers(state)
        weight = settings.judge_weight
        self.pooled = numbers.combine_with_judge(self.judge, self.agreed, weight, self.outcome_ids)

    def rounds(self) -> tuple[contract.Round, ...]:
        def place(argument: ScoredArgument) -> int:
            return self.settings.role_names.index(argument.role)

        return tuple(
            contract.Round(
                round_number=number,
                phase=round_phase(self.settings, number),
                arguments=tuple(
                    _argument(each) for each in sorted(of_round(self.kept, number), key=place)
                ),
                round_summary=self.summary(number),
            )
            for number in range(1, self.state["round"] + 1)
        )

    def summary(self, number: int) -> contract.RoundSummary:
        scored = [each for each in of_round(self.kept, number) if each.composite is not None]
        best = max(scored, key=lambda each: each.composite or 0, default=None)
        before, after = stated_in(self.kept, number - 1), stated_in(self.kept, number)
        moves = (
            (outcome, numbers.movement(before, after, outcome)) for outcome in self.outcome_ids
        )
        return contract.RoundSummary(
            dominant_argument=best.role if best else None,
            key_disagreements=tuple(
                key_disagreements(of_round(self.kept, number), disputable(self.outcomes))
            ),
            emerging_consensus=tuple(
                contract.EmergingConsensus(outcome_id=outcome, direction=direction)
                for outcome, direction in moves
                if direction
            ),
        )

    def distribution(self) -> tuple[contract.OutcomeForecast, ...]:
        pooled, judge, agreed = map(numbers.rounded, (self.pooled, self.judge, self.agreed))
        return tuple(
            contract.OutcomeForecast(
                outcome_id=outcome,
                probability=pooled.get(outcome),
                role_assessments=tuple(self._assessments(outcome)),
                judge_probability=judge.get(outcome),
                consensus_probability=agreed.get(outcome),
            )
            for outcome in self.outcome_ids
        )

    def _assessments(self, outcome: str) -> Iterator[contract.RoleAssessment]:
        for role in self.settings.role_names:
            given = self.latest[role].reading.stated if role in self.latest else None
            if given and outcome in given.probabilities:
                probability = numbers.rounded(given.probabilities)[outcome]
                yield contract.RoleAssessment(
                    role=role, probability=probability, confidence=given.confidence
                )

    def _pools(self) -> tuple[contract.Pools, ...]:
        linear = numbers.linear_pool(self.stated, self.outcome_ids)
        odds = numbers.log_odds_pool(self.stated, self.outcome_ids)
        sharp = numbers.extremised(odds, self.settings.extremising_factor)
        pooled, linear, odds, sharp = map(numbers.rounded, (self.pooled, linear, odds, sharp))
        return tuple(
            contract.Pools(
                outcome_id=outcome,
                contract=pooled.get(outcome),
                linear=linear.get(outcome),
                log_odds=odds.get(outcome),
                extremised=sharp.get(outcome),
            )
            for outcome in self.outcome_ids
        )

    def insights(self) -> tuple[contract.KeyInsight, ...]:
        by_point = {each.point_id: each for each in self.kept}
        return tuple(
            contract.KeyInsight(
                insight=each.insight,
                source_role=by_point[each.point].role,
                round=by_point[each.point].turn.round,
                impact=each.impact,
                affected_outcomes=each.outcomes,
            )
            for each in (self.verdict.insights if self.verdict else ())
        )

    def report(self) -> contract.Report:
        gaps = tuple(gaps_of(self.state, self.settings, self.kept))
        kept = {each.turn.id for each in self.kept}
        last = self.settings.max_rounds
        closing = of_round(self.kept, last) if last > 1 else []
        return contract.Report(
            partial=bool(gaps),
            confidence=self._confidence(),
            gaps=gaps,
            argument_quality=_goal(reach_goal(self.kept), QUALITY_GOAL),
            closing_references=_goal([bool(each.reading.refers_to) for each in closing]),
            consensus_by_outcome=tuple(self._consensus()),
            raw_probabilities=tuple(self._raw()),
            pools=self._pools(),
            extremising_factor=self.settings.extremising_factor,
            calls_without_usage=total_usage(self.state).without_usage,
            replaced_arguments=tuple(
                contract.Replaced(round=each.turn.round, argument=_argument(each))
                for each in all_arguments(self.state)
                if each.turn.id not in kept
            ),
            overlong_arguments=tuple(self._overlong()),
            own_roles=self.settings.own_roles,
            own_criteria=self.settings.own_criteria,
        )

    def _overlong(self) -> Iterator[contract.Overlong]:
        for each in self.kept:
            length = each.turn.length
            if length and each.turn.is_overlong:
                yield contract.Overlong(
                    role=each.role,
                    round=each.turn.round,
                    tokens=length.tokens,
                    limit=length.limit,
                )

    def _consensus(self) -> Iterator[contract.OutcomeConsensus]:
        for outcome in self.outcome_ids:
            score = numbers.consensus_score(
                [each[outcome] for each in self.stated if outcome in each]
            )
            yield contract.OutcomeConsensus(outcome_id=outcome, consensus_score=score)

    def _confidence(self) -> float | None:
        """Return the mean stated confidence, scaled by the fraction of complete distributions."""
        stated = [each.reading.stated for each in self.latest.values()]
        stated += [self.verdict.stated] if self.verdict else []
        mean = numbers.mean_known([each.confidence for each in stated])
        given = [each.reading.stated.probabilities for each in self.kept] + [self.judge]
        delivered = sum(numbers.is_complete(values, self.outcome_ids) for values in given)
        expected = len(self.settings.role_names) * self.settings.max_rounds + 1
        return None if mean is None else mean * delivered / expected

    def _raw(self) -> Iterator[contract.RawValues]:
        for each in self.kept:
            if values := each.reading.stated.raw:
                number = each.turn.round
                yield contract.RawValues(
                    role=each.role, round=number, part="argument", values=values
                )
        if self.verdict and (values := self.verdict.stated.raw):
            yield contract.RawValues(
                role="judge", round=self.state["round"], part="verdict", values=values
            )


def _argument(argument: ScoredArgument) -> contract.Argument:
    return contract.Argument(
        role=argument.role,
        argument=argument.turn.text,
        outcome_supported=argument.reading.outcome,
        evidence_cited=argument.reading.evidence,
        scores=_scores(argument.score),
        rebuts=argument.reading.rebuts,
    )


def _scores(score: ScoreReading | None) -> contract.Scores | None:
    if score is None or score.composite is None:
        return None
    return contract.Scores(**cast("dict[str, Any]", score.scores), composite=score.composite)


def _precedents(state: DebateState) -> tuple[contract.Precedent, ...]:
    return tuple(
        contract.Precedent(
            **each.model_dump(exclude={"similarity"}), similarity_score=each.similarity
        )
        for each in cited_precedents(state)
    )


def _metadata(state: DebateState, kept: list[ScoredArgument]) -> contract.ResultMetadata:
    turns = spoken_by_models(state)
    usage = total_usage(state)
    again = sum(entry.what in _FURTHER_TRIES for entry in state.get("degraded", []))
    asked_again = sum(getattr(turn.assessment, "asked_again", 0) for turn in turns)
    lost = sum(span.calls for span in state.get("spans", []))
    models = dict.fromkeys(turn.model for turn in turns if turn.model)
    return contract.ResultMetadata(
        total_arguments=len(kept),
        sonnet_tokens_used=contract.TokensUsed(
            input=usage.input_tokens, output=usage.output_tokens
        ),
        sonnet_calls=len(turns) + asked_again + lost + again,
        wall_clock_time_ms=worked_ms(state),
        model=", ".join(models),
    )


def _goal(reached: list[bool], goal: float | None = None) -> contract.Goal:
    return contract.Goal(
        share=numbers.mean_known([float(each) for each in reached]), of=len(reached), goal=goal
    )
