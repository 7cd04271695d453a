from typing import Literal

from contend.graph.values import Value

StopReason = Literal[
    "skeptic_ready",
    "score_reached",
    "no_critical_issues",
    "max_rounds",
    "judge_stop",
    "moderator_stop",
    "one_left",
    "converged",
    "drafts_agree",
    "user",
    "failed",
    "timeout",
    "budget",
]


class StopDecision(Value):
    """The reason why the rounds ended."""

    reason: StopReason
    round: int
    evidence: str
    early: bool | None = None  # whether more rounds were allowed; None in debates from release 0.1
    calls_saved: int | None = None  # the fewest calls saved, if the first answers agreed


def stop(reason: StopReason, round_number: int, evidence: str) -> StopDecision:
    return StopDecision(reason=reason, round=round_number, evidence=evidence)


def describe_rounds_used(rounds: int) -> str:
    return f"all {rounds} rounds were used" if rounds > 1 else "the one round was used"
