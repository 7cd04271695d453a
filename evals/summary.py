from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from contend.evals.arms import ARMS, GATED, GATED_PROTOCOL
from contend.evals.measures import (
    Calibration,
    Flips,
    Mean,
    Paired,
    Share,
    adjusted,
    calibrate,
    compare_paired,
    count_flips,
    mean_of,
    share,
)
from contend.evals.run_store import EvalResult

# Cheaper arms that a debate must beat to be worth its cost.
_REFERENCES = ("single", "self_consistency", "panel_vote")


@dataclass(frozen=True)
class ArmSummary:
    arm: str
    runs: int
    done: int
    failed: int
    not_applicable: int
    unreadable: int
    accuracy: Share
    by_topic: Mapping[str, Share]
    flips: Flips | None
    calibration: Calibration
    rubric: Mean
    rubric_agreement: Mean
    tokens: Mean
    calls: Mean
    seconds: Mean
    cost_usd: float | None
    without_cost: int
    undebated: Share | None  # for the gated arm: share of items not debated


@dataclass(frozen=True)
class ArmComparison:
    first: str
    second: str
    pair: Paired
    p_adjusted: float


def summarise(results: Iterable[EvalResult]) -> list[ArmSummary]:
    by_arm: dict[str, list[EvalResult]] = {}
    for result in results:
        by_arm.setdefault(result.arm, []).append(result)
    return [_summary(arm, by_arm[arm]) for arm in ARMS if arm in by_arm]


def _summary(arm: str, results: Sequence[EvalResult]) -> ArmSummary:
    done = [each for each in results if each.status == "done"]
    graded = [each for each in done if each.right is not None]
    costs = [each.cost_usd for each in done]
    known = [cost for cost in costs if cost is not None]
    return ArmSummary(
        arm=arm,
        runs=len(results),
        done=len(done),
        failed=sum(each.status == "failed" for each in results),
        not_applicable=sum(each.status == "not_applicable" for each in results),
        unreadable=sum(each.is_unreadable for each in done),
        accuracy=share(bool(each.right) for each in graded),
        by_topic=_by_topic(graded),
        flips=count_flips(
            [
                ([bool(draft.right) for draft in each.drafts], each.vote_right, bool(each.right))
                for each in graded
                if each.drafts
            ]
        ),
        calibration=calibrate(
            [
                (each.probability, each.truth == "yes")
                for each in done
                if each.probability is not None
            ]
        ),
        rubric=mean_of(each.rubric for each in done),
        rubric_agreement=mean_of(each.rubric_agreement for each in done),
        tokens=mean_of(each.tokens for each in done),
        calls=mean_of(float(each.calls) for each in done),
        seconds=mean_of(each.seconds for each in done),
        cost_usd=sum(known) if known else None,
        without_cost=len(costs) - len(known),
        undebated=share(not each.debated for each in done) if arm == GATED else None,
    )


def _by_topic(graded: Sequence[EvalResult]) -> dict[str, Share]:
    ordered = sorted(graded, key=lambda each: each.topic)
    groups = groupby(ordered, key=lambda each: each.topic)
    return {topic: share(bool(each.right) for each in group) for topic, group in groups}


def compare_arms(results: Mapping[tuple[str, str], EvalResult]) -> list[ArmComparison]:
    """Compare each arm with the simpler reference arms, and the gated arm with the ungated one."""
    right = graded_by_arm(results.values())
    arms = [arm for arm in ARMS if arm in right]
    pairs = [
        (first, second)
        for second in _REFERENCES
        for first in arms
        if second in right and arms.index(first) > arms.index(second)
    ]
    if GATED in right and GATED_PROTOCOL in right:
        pairs.append((GATED, GATED_PROTOCOL))
    found = [(a, b, compare_graded(right[a], right[b])) for a, b in pairs]
    known = [(a, b, pair) for a, b, pair in found if pair is not None]
    p_values = adjusted([pair.p_value for _, _, pair in known])
    return [ArmComparison(a, b, pair, p) for (a, b, pair), p in zip(known, p_values, strict=True)]


def graded_by_arm(results: Iterable[EvalResult]) -> dict[str, dict[str, bool]]:
    right: dict[str, dict[str, bool]] = {}
    for each in results:
        if each.status == "done" and each.right is not None:
            right.setdefault(each.arm, {})[each.item] = each.right
    return right


def compare_graded(first: Mapping[str, bool], second: Mapping[str, bool]) -> Paired | None:
    shared = [item for item in first if item in second]
    return compare_paired([(first[item], second[item]) for item in shared])
