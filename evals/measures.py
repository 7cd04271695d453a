"""Computes the statistics of evals with scipy; every result includes its sample size n."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from contend.graph.errors import BadInput
from contend.nodes.forecast.numbers import CalibrationBin, brier, calibration, log_loss

CONFIDENCE = 0.95
# With fewer items a difference says more about the items than about the arms.
ENOUGH_ITEMS = 30
SIGNIFICANT = 0.05
_RESAMPLES, _SEED = 5000, 20260101


def _scipy_stats() -> Any:
    try:
        return import_module("scipy.stats")
    except ImportError as error:
        raise BadInput("This needs scipy. Install it with: pip install 'contend[evals]'") from error


@dataclass(frozen=True)
class Share:
    """The proportion count / n with its Wilson interval; `value` is None if n is 0."""

    count: int
    n: int
    low: float = 0.0
    high: float = 1.0

    @property
    def value(self) -> float | None:
        return self.count / self.n if self.n else None


@dataclass(frozen=True)
class Paired:
    n: int
    only_first: int
    only_second: int
    p_value: float  # of McNemar's exact test
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Mean:
    n: int
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Flips:
    """Counts of correct and changed answers; a tied vote of the drafts counts as wrong."""

    n: int
    right_to_wrong: int
    wrong_to_right: int
    vote_right: int
    any_right: int
    final_right: int

    @property
    def captured(self) -> float | None:
        """Return the final answers' gain over the vote, as a fraction of the best drafts' gain."""
        gap = self.any_right - self.vote_right
        return (self.final_right - self.vote_right) / gap if gap else None


@dataclass(frozen=True)
class Calibration:
    n: int
    brier: float | None
    log_loss: float | None
    ece: float | None
    bins: tuple[CalibrationBin, ...] = ()


def share(values: Iterable[bool]) -> Share:
    known = list(values)
    if not known:
        return Share(0, 0)
    count, n = sum(known), len(known)
    interval = _scipy_stats().binomtest(count, n).proportion_ci(CONFIDENCE, method="wilson")
    return Share(count, n, float(interval.low), float(interval.high))


def compare_paired(pairs: Sequence[tuple[bool, bool]]) -> Paired | None:
    if not pairs:
        return None
    stats, n = _scipy_stats(), len(pairs)
    first = sum(a and not b for a, b in pairs)
    second = sum(b and not a for a, b in pairs)
    p = float(stats.binomtest(first, first + second).pvalue) if first + second else 1.0
    return Paired(n, first, second, p, (first - second) / n, *_difference_interval(pairs))


def _difference_interval(pairs: Sequence[tuple[bool, bool]]) -> tuple[float, float]:
    stats = _scipy_stats()
    differences = [float(a) - float(b) for a, b in pairs]
    if len(set(differences)) > 1:
        return _bootstrap(differences)
    # All differences are equal: resampling would give an interval of width zero.
    other = stats.binomtest(0, len(pairs)).proportion_ci(CONFIDENCE, method="exact").high
    value = differences[0]
    return max(-1.0, value - float(other)), min(1.0, value + float(other))


def _bootstrap(values: Sequence[float]) -> tuple[float, float]:
    stats, numpy = _scipy_stats(), import_module("numpy")
    found = stats.bootstrap(
        (numpy.asarray(values),),
        numpy.mean,
        confidence_level=CONFIDENCE,
        n_resamples=_RESAMPLES,
        method="percentile",
        rng=numpy.random.default_rng(_SEED),
    ).confidence_interval
    return float(found.low), float(found.high)


def mean_of(values: Iterable[float | None]) -> Mean:
    known = [value for value in values if value is not None]
    if not known:
        return Mean(0, None)
    mean = sum(known) / len(known)
    if len(set(known)) == 1:
        return Mean(len(known), mean)
    return Mean(len(known), mean, *_bootstrap(known))


def count_flips(rows: Sequence[tuple[Sequence[bool], bool | None, bool]]) -> Flips | None:
    """Count flips; each row holds whether each draft, the vote and the final answer are correct."""
    if not rows:
        return None
    votes = [(bool(vote), final) for _, vote, final in rows]
    return Flips(
        n=len(rows),
        right_to_wrong=sum(vote and not final for vote, final in votes),
        wrong_to_right=sum(final and not vote for vote, final in votes),
        vote_right=sum(vote for vote, _ in votes),
        any_right=sum(any(drafts) for drafts, _, _ in rows),
        final_right=sum(final for _, final in votes),
    )


def calibrate(forecasts: Sequence[tuple[float, bool]]) -> Calibration:
    n = len(forecasts)
    if not n:
        return Calibration(0, None, None, None)
    resolved = [({"yes": p, "no": 1 - p}, "yes" if came else "no") for p, came in forecasts]
    bins = calibration([({"yes": each["yes"]}, came) for each, came in resolved])
    ece = sum(
        each.count * abs(each.forecast - each.observed)
        for each in bins
        if each.forecast is not None and each.observed is not None
    )
    return Calibration(
        n,
        sum(brier(each, came) for each, came in resolved) / n,
        sum(log_loss(each, came) for each, came in resolved) / n,
        ece / n,
        tuple(bins),
    )


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for multiple comparisons (Benjamini-Hochberg)."""
    if not p_values:
        return []
    return [float(p) for p in _scipy_stats().false_discovery_control(list(p_values))]


def share_cells(found: Share) -> tuple[str, str, str]:
    if found.value is None:
        return "–", "–", "0"
    return f"{found.value:.1%}", f"{found.low:.1%} to {found.high:.1%}", str(found.n)


def describe_pair(pair: Paired, p_value: float | None = None) -> str:
    p = pair.p_value if p_value is None else p_value
    points = f"{100 * pair.difference:+.1f} points"
    interval = f"{100 * pair.low:+.1f} to {100 * pair.high:+.1f}"
    facts = f"{points}, 95 % interval {interval}, p = {p:.3f}, n = {pair.n}"
    if pair.n < ENOUGH_ITEMS:
        return f"too few items for a claim ({facts})"
    if p >= SIGNIFICANT:
        return f"no difference shown ({facts})"
    return f"{'better' if pair.difference > 0 else 'worse'} ({facts})"
