import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import fmean, pstdev

from contend.graph.forecast_contract.terms import DECIMALS, Direction
from contend.nodes.tolerance import is_above, is_below

Distribution = Mapping[str, float]  # probabilities by outcome id; a missing id was not stated

# How much the sum of a stated distribution may differ from 1.
SUM_TOLERANCE = 0.1
# Roles this far apart on an outcome disagree about it.
DISAGREEMENT = 0.2
# A mean that changes by less than this between two rounds counts as unchanged.
MOVEMENT = 0.01
# Probabilities are cut off here, so that odds stay finite.
LEAST_PROBABILITY = 0.001
_LEAST_FACTOR, _MOST_FACTOR = 0.25, 4.0
_LEAST_FOR_LOG_LOSS = 1e-6


def read_distribution(raw: Distribution, outcomes: Sequence[str]) -> dict[str, float] | None:
    """Convert fractions or percentages to probabilities; return None for anything else."""
    values = {outcome: raw[outcome] for outcome in outcomes if outcome in raw}
    if not values or any(not math.isfinite(v) or v < 0 for v in values.values()):
        return None
    whole = len(values) == len(outcomes)
    fractions = _as_fractions(values, whole=whole)
    # Do not scale an incomplete distribution, because that would be a guess at the rest.
    return normalised(fractions) if fractions and whole else fractions


def _as_fractions(values: Distribution, *, whole: bool) -> dict[str, float] | None:
    if _fits(values, whole=whole):
        return dict(values)
    fitting = [each for each in _with_percentages(values, whole=whole) if _fits(each, whole=whole)]
    exact = [each for each in fitting if math.isclose(sum(each.values()), 1)]
    return next((few[0] for few in (fitting, exact) if len(few) == 1), None)


def _with_percentages(values: Distribution, *, whole: bool) -> Iterator[dict[str, float]]:
    """Yield ways to read the values: all as percentages, or only those above 1 as percentages."""
    small = [value for value in values.values() if 0 < value <= 1]
    if whole or not small:
        yield {outcome: value / 100 for outcome, value in values.items()}
    if whole and small and 1 not in small:  # 1 may be one percent or certainty
        yield {o: value / 100 if value > 1 else value for o, value in values.items()}


def _fits(values: Distribution, *, whole: bool) -> bool:
    total, least = sum(values.values()), 1 - SUM_TOLERANCE if whole else 0.0
    in_range = not is_below(total, least) and not is_above(total, 1 + SUM_TOLERANCE)
    return in_range and max(values.values()) <= 1


def normalised(values: Distribution) -> dict[str, float]:
    total = sum(values.values())
    return {outcome: min(1.0, value / total) for outcome, value in values.items()}


def is_complete(values: Distribution, outcomes: Sequence[str]) -> bool:
    return all(outcome in values for outcome in outcomes)


def consensus(distributions: Sequence[Distribution], outcomes: Sequence[str]) -> dict[str, float]:
    stated = {o: [each[o] for each in distributions if o in each] for o in outcomes}
    return {outcome: fmean(values) for outcome, values in stated.items() if values}


def combine_with_judge(
    judge: Distribution, agreed: Distribution, judge_weight: float, outcomes: Sequence[str]
) -> dict[str, float]:
    """Average the judge's and the roles' probabilities. If an outcome lacks one, use the other."""
    pooled: dict[str, float] = {}
    for outcome in outcomes:
        if outcome in judge and outcome in agreed:
            pooled[outcome] = judge_weight * judge[outcome] + (1 - judge_weight) * agreed[outcome]
        elif outcome in judge or outcome in agreed:
            pooled[outcome] = judge.get(outcome, agreed.get(outcome, 0.0))
    return _normalised_if_complete(pooled, outcomes)


def _normalised_if_complete(values: Distribution, outcomes: Sequence[str]) -> dict[str, float]:
    # Do not normalize if an outcome is missing: a sum of 1 would mean that it cannot happen.
    if is_complete(values, outcomes) and sum(values.values()) > 0:
        return normalised(values)
    return dict(values)


def consensus_score(values: Sequence[float]) -> float | None:
    """Return 1 - std / largest possible std; None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    # The largest std: half of the values, or as near as possible, are 0 and the others 1.
    largest = math.sqrt((count // 2) * (count - count // 2)) / count
    return min(1.0, max(0.0, 1 - pstdev(values) / largest))


def mean_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def spread(distributions: Sequence[Distribution], outcome: str) -> float:
    stated = [each[outcome] for each in distributions if outcome in each]
    return round(max(stated) - min(stated), DECIMALS) if stated else 0.0


def movement(
    before: Mapping[str, Distribution], after: Mapping[str, Distribution], outcome: str
) -> Direction | None:
    both = [role for role in after if outcome in after[role] and outcome in before.get(role, {})]
    if not both:
        return None
    moved = fmean(after[role][outcome] - before[role][outcome] for role in both)
    if is_below(abs(moved), MOVEMENT):
        return None
    return "toward" if moved > 0 else "away"


def composite(scores: Mapping[str, float], weighting: Mapping[str, float]) -> float:
    """Return the weighted mean, computed in Decimal to avoid rounding errors."""
    weights = {name: Decimal(str(weighting[name])) for name in scores}
    total = sum(weights[name] * Decimal(str(score)) for name, score in scores.items())
    return round(float(total / sum(weights.values())), DECIMALS)


def rounded(values: Distribution) -> dict[str, float]:
    shown = {outcome: round(value, DECIMALS) for outcome, value in values.items()}
    if math.isclose(sum(values.values()), 1):
        largest = max(shown, key=shown.__getitem__)
        shown[largest] = round(shown[largest] + 1 - sum(shown.values()), DECIMALS)
    return shown


# --- alternative pools ---


def linear_pool(distributions: Sequence[Distribution], outcomes: Sequence[str]) -> dict[str, float]:
    whole = [each for each in distributions if is_complete(each, outcomes)]
    return _normalised_if_complete(consensus(whole, outcomes), outcomes)


def log_odds_pool(
    distributions: Sequence[Distribution], outcomes: Sequence[str]
) -> dict[str, float]:
    """Return the normalized geometric mean of the complete distributions."""
    whole = [each for each in distributions if is_complete(each, outcomes)]
    if not whole:
        return {}
    logs = {o: fmean(math.log(_bounded(each[o])) for each in whole) for o in outcomes}
    return normalised({outcome: math.exp(value) for outcome, value in logs.items()})


def extremised(pooled: Distribution, factor: float) -> dict[str, float]:
    if not pooled:
        return {}
    return normalised({o: _bounded(value) ** factor for o, value in pooled.items()})


def fitted_factor(resolved: Sequence[tuple[Distribution, str]]) -> float:
    def loss(factor: float) -> float:
        return fmean(log_loss(extremised(pooled, factor), came) for pooled, came in resolved)

    return round(_lowest(loss, _LEAST_FACTOR, _MOST_FACTOR), 3)


def _lowest(cost: Callable[[float], float], left: float, right: float) -> float:
    """Return where `cost` has its only minimum, by golden-section search."""
    golden = (math.sqrt(5) - 1) / 2
    while right - left > 1e-4:
        inner_left, inner_right = right - golden * (right - left), left + golden * (right - left)
        if cost(inner_left) <= cost(inner_right):
            right = inner_right
        else:
            left = inner_left
    return (left + right) / 2


def _bounded(probability: float) -> float:
    return min(1 - LEAST_PROBABILITY, max(LEAST_PROBABILITY, probability))


# --- accuracy of forecasts ---


def brier(forecast: Distribution, came: str) -> float:
    """Return half the sum of squared errors, so that two outcomes give the usual (p - y)²."""
    return sum((p - (outcome == came)) ** 2 for outcome, p in forecast.items()) / 2


def log_loss(forecast: Distribution, came: str) -> float:
    return -math.log(max(_LEAST_FOR_LOG_LOSS, forecast[came]))


@dataclass(frozen=True)
class CalibrationBin:
    """Forecasts with similar probabilities, and how often their outcomes came true."""

    low: float
    high: float
    count: int
    forecast: float | None
    observed: float | None


def calibration(
    resolved: Sequence[tuple[Distribution, str]], bins: int = 10
) -> list[CalibrationBin]:
    pairs = [(p, outcome == came) for forecast, came in resolved for outcome, p in forecast.items()]
    table = []
    for number in range(bins):
        inside = [pair for pair in pairs if min(bins - 1, int(pair[0] * bins)) == number]
        table.append(
            CalibrationBin(
                low=number / bins,
                high=(number + 1) / bins,
                count=len(inside),
                forecast=fmean(p for p, _ in inside) if inside else None,
                observed=fmean(came for _, came in inside) if inside else None,
            )
        )
    return table
