from collections import Counter
from typing import Any

from contend.graph.protocols.base import PromptCall, PromptValues, Strategy
from contend.graph.readings import Assessment
from contend.graph.settings import AdversarialSettings
from contend.graph.state import DebateState, turns_of
from contend.graph.stop_reasons import StopDecision, describe_rounds_used, stop
from contend.nodes.prompting.points import points_of


class AdversarialStrategy(Strategy[AdversarialSettings]):
    answering_role = "proposer"
    critic_role = "skeptic"
    writer_role = "synthesizer"
    critique_decides = True
    roles_for_people = frozenset({"proposer", "skeptic", "synthesizer", "judge"})

    def __init__(self, settings: AdversarialSettings) -> None:
        super().__init__(settings)
        self.rounds = settings.min_rounds, settings.max_rounds
        self.max_steps = 3 * settings.max_rounds + 10

    def calls_by_role(self) -> tuple[Counter[str], Counter[str]]:
        fewest = self.rounds[0] if self.settings.ready_respects_min_rounds else 1
        return self._calls(fewest), self._calls(self.rounds[1])

    def _calls(self, rounds: int) -> Counter[str]:
        return Counter(proposer=rounds, skeptic=rounds, synthesizer=1, judge=1)

    def settings_for_another_round(self, state: DebateState) -> dict[str, Any]:
        more = state["round"] + 1
        return {"max_rounds": more, "min_rounds": min(self.settings.min_rounds, more)}

    def prompt_values(self, call: PromptCall) -> PromptValues:
        return {"early_stop_score": lambda: f"{self.settings.early_stop_score:g}"}

    def stop_decision(self, state: DebateState) -> StopDecision | None:
        read = turns_of(state, "critique")[-1].assessment
        assessment = read if isinstance(read, Assessment) else None
        decision = stop_rule(assessment, state["round"], self.settings)
        if decision is None or decision.reason == "max_rounds":
            return decision
        evidence = decision.evidence + _unsettled_points(state)
        return decision.model_copy(update={"evidence": evidence})


def stop_rule(
    assessment: Assessment | None, round_number: int, settings: AdversarialSettings
) -> StopDecision | None:
    at_minimum = round_number >= settings.min_rounds
    score = assessment.score if assessment else None
    enough = score is not None and score >= settings.early_stop_score
    ready = assessment is not None and _counts_as_ready(assessment, settings.early_stop_score)
    none_critical = assessment is not None and assessment.none_critical

    if ready and (at_minimum or not settings.ready_respects_min_rounds):
        return stop("skeptic_ready", round_number, "the Skeptic found the answer ready")
    if enough and at_minimum and none_critical:
        return stop("score_reached", round_number, f"the Skeptic scored it {score:g} of 10")
    if round_number >= settings.max_rounds:
        return stop("max_rounds", round_number, describe_rounds_used(settings.max_rounds))
    if at_minimum and none_critical:
        return stop("no_critical_issues", round_number, "no critical objection is left")
    return None


def _counts_as_ready(assessment: Assessment, enough: float) -> bool:
    """Return whether the critique signals readiness and does not contradict itself."""
    critical = [point for point in assessment.points if point.severity == "critical"]
    left = any(point.status != "resolved" for point in critical) or assessment.unlisted_critical
    scores = (assessment.score, assessment.unstated_score)
    is_low = any(score is not None and score < enough for score in scores)
    return assessment.ready and not left and not is_low


def _unsettled_points(state: DebateState) -> str:
    critical = [point for point in points_of(state) if point.severity == "critical"]
    left = ", ".join(p.id for p in critical if p.status in ("open", "partial"))
    dropped = ", ".join(p.id for p in critical if p.status == "dropped")
    said = [f"still open: {left}"] if left else []
    said += [f"not raised again: {dropped}"] if dropped else []
    return f" (critical and {'; '.join(said)})" if said else ""


STRATEGY = AdversarialStrategy
