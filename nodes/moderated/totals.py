import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from contend.graph.readings import DebateScores, Deduction, SideScore, TurnScore
from contend.graph.values import Seat
from contend.nodes.tolerance import is_above, is_below

RULE = "rule_adherence"
# Scores for one criterion may differ this many times as much as totals: they are coarser.
CRITERION_MARGIN = 2

_ORDERS = (0, 1)
_INCOMPLETE = "not every statement was read in both orders"

Marked = Mapping[str, float]
Weights = Mapping[str, float]


def weighted(marks: Marked, weights: Weights) -> float:
    return math.fsum(marks[name] * share for name, share in weights.items())


def mean_marks(several: Sequence[Marked]) -> dict[str, float]:
    names = several[0] if several else ()
    return {name: math.fsum(each[name] for each in several) / len(several) for name in names}


def apply_deductions(marks: Marked, deductions: Iterable[Deduction]) -> dict[str, float]:
    cost = math.fsum(each.points for each in deductions)
    return {**marks, RULE: max(0.0, marks[RULE] - cost)}


def turn_score(
    turn: str,
    seat: str,
    readings: Mapping[int, Marked],
    deductions: Sequence[Deduction],
    weights: Weights,
    margin: float,
) -> TurnScore:
    orders = tuple(sorted(readings))
    counted = [apply_deductions(readings[order], deductions) for order in orders]
    totals = tuple(weighted(marks, weights) for marks in counted)
    marks = mean_marks(counted)
    return TurnScore(
        turn=turn,
        seat=seat,
        marks=marks,
        total=weighted(marks, weights),
        readings=totals,
        orders=orders,
        deductions=tuple(deductions),
        contested=_differ(counted, totals, margin),
    )


def _differ(readings: Sequence[Marked], totals: Sequence[float], margin: float) -> bool:
    by_criterion = [[marks[name] for marks in readings] for name in readings[0]]
    widest = max(max(marks) - min(marks) for marks in by_criterion)
    apart = max(totals) - min(totals)
    return is_above(apart, margin) or is_above(widest, CRITERION_MARGIN * margin)


def score_side(seat: Seat, scores: Sequence[TurnScore], weights: Weights) -> SideScore:
    own = tuple(score for score in scores if score.seat == seat.id)
    breakdown = mean_marks([score.marks for score in own if not score.contested])
    total = weighted(breakdown, weights) if breakdown else None
    return SideScore(seat=seat.id, name=seat.name, total=total, breakdown=breakdown, turns=own)


class Result(NamedTuple):
    winner: str | None = None
    no_winner: str = ""
    draw: bool = False


def final_scores(
    standings: Sequence[SideScore],
    *,
    declares_winner: bool,
    contested_margin: float,
    winner_margin: float,
    unscored: Sequence[str],
    judge_model: str,
) -> DebateScores:
    result = Result()
    if declares_winner:
        result = Result(None, _INCOMPLETE) if unscored else find_winner(standings, winner_margin)
    return DebateScores(
        standings=tuple(standings),
        **result._asdict(),
        lead=_lead(standings) if declares_winner else None,
        winner_margin=winner_margin if declares_winner else None,
        margin=contested_margin,
        unscored=tuple(unscored),
        judge_model=judge_model,
    )


def find_winner(standings: Sequence[SideScore], margin: float) -> Result:
    """Find the side that leads in both reading orders, with a total lead of at least the margin."""
    if any(len(score.orders) < len(_ORDERS) for each in standings for score in each.turns):
        return Result(None, _INCOMPLETE)
    lead = _lead(standings)
    if lead is None:
        return Result(None, "not every side has a score that counts", draw=True)
    leaders = {_leader(standings, order) for order in _ORDERS}
    leaders.add(_leader_of([(each.seat, each.total or 0.0) for each in standings]))
    if len(leaders) > 1:
        why = "contested: who leads depends on the order in which the judge read"
        return Result(None, why, draw=True)
    leader = leaders.pop()
    if leader is None:
        return Result(None, "the best scores are equal", draw=True)
    if is_below(lead, margin):
        why = f"the best lead by {_format_below(lead, margin)}, a winner needs {margin:g}"
        return Result(None, why, draw=True)
    return Result(leader)


def _lead(standings: Sequence[SideScore]) -> float | None:
    totals = [each.total for each in standings if each.total is not None]
    if len(totals) < len(standings):
        return None
    *_, second, best = sorted(totals)
    return best - second


def _format_below(lead: float, margin: float) -> str:
    """Format a lead with enough decimals to show that it is below the margin."""
    shown = (f"{lead:.{decimals}f}" for decimals in range(2, 10))
    return next((text for text in shown if float(text) < margin), str(lead))


def _leader(standings: Sequence[SideScore], order: int) -> str | None:
    means = [
        (each.seat, math.fsum(score.readings[order] for score in each.turns) / len(each.turns))
        for each in standings
    ]
    return _leader_of(means)


def _leader_of(means: Sequence[tuple[str, float]]) -> str | None:
    best = max(mean for _, mean in means)
    first = [seat for seat, mean in means if not is_below(mean, best)]
    return first[0] if len(first) == 1 else None
