"""The score arithmetic, checked against hand-computed cases."""

from typing import Any

import pytest

from contend.graph.readings import Deduction, SideScore, TurnScore
from contend.graph.settings import ModeratedSettings
from contend.graph.values import Seat
from contend.nodes.moderated.totals import (
    Result,
    apply_deductions,
    final_scores,
    find_winner,
    mean_marks,
    score_side,
    turn_score,
    weighted,
)

WEIGHTS = ModeratedSettings().scoring_weights
ANN = Seat(id="ann", name="Ann", role="position_advocate", model="m:x")
BEN = Seat(id="ben", name="Ben", role="position_advocate", model="m:x")


def marks(mark: float, **changes: float) -> dict[str, float]:
    return dict.fromkeys(WEIGHTS, mark) | changes


def scored(seat: Seat, *readings: float, margin: float = 2.0, **changes: Any) -> TurnScore:
    given = {order: marks(reading) for order, reading in enumerate(readings)}
    return turn_score(f"{seat.id}.{readings}", seat.id, given, [], WEIGHTS, margin)


def test_weights_match_the_specification() -> None:
    assert WEIGHTS == {
        "logical_coherence": 0.25,
        "evidence_quality": 0.25,
        "responsiveness": 0.20,
        "persuasiveness": 0.15,
        "rule_adherence": 0.15,
    }


@pytest.mark.parametrize(
    ("given", "total"),
    [
        (marks(10), 10.0),
        (marks(0), 0.0),
        (marks(6), 6.0),
        # 8 x .25 + 6 x .25 + 7 x .20 + 4 x .15 + 10 x .15
        (dict(zip(WEIGHTS, (8, 6, 7, 4, 10), strict=True)), 7.0),
        # 3 x .25 + 9 x .25 + 5 x .20 + 8 x .15 + 2 x .15
        (dict(zip(WEIGHTS, (3, 9, 5, 8, 2), strict=True)), 5.5),
    ],
)
def test_a_total_is_the_weighted_sum(given: dict[str, float], total: float) -> None:
    assert weighted(given, WEIGHTS) == pytest.approx(total)


def test_three_turns_with_4_6_and_8_give_6() -> None:
    turns = [scored(ANN, 4), scored(ANN, 6), scored(ANN, 8)]
    stands = score_side(ANN, turns, WEIGHTS)
    assert stands.total == pytest.approx(6)
    assert stands.breakdown == pytest.approx(marks(6))
    assert [score.total for score in stands.turns] == pytest.approx([4, 6, 8])


def test_averages_each_criterion_before_weighting() -> None:
    turns = [
        turn_score("a", "ann", {0: marks(4, logical_coherence=10)}, [], WEIGHTS, 2),
        turn_score("b", "ann", {0: marks(8, logical_coherence=2)}, [], WEIGHTS, 2),
    ]
    stands = score_side(ANN, turns, WEIGHTS)
    assert stands.breakdown == pytest.approx(marks(6))
    # (4 x .75 + 10 x .25 + 8 x .75 + 2 x .25) / 2
    assert stands.total == pytest.approx(6.0)


def test_a_side_is_scored_by_its_own_turns_only() -> None:
    turns = [scored(ANN, 4), scored(BEN, 9), scored(ANN, 5)]
    assert score_side(ANN, turns, WEIGHTS).total == pytest.approx(4.5)
    assert score_side(BEN, turns, WEIGHTS).total == pytest.approx(9)


def test_deductions_lower_only_rule_adherence() -> None:
    over = Deduction(rule="overlong", points=2)
    ruling = Deduction(rule="off_topic", points=3)
    assert apply_deductions(marks(7), [over]) == marks(7, rule_adherence=5)
    assert apply_deductions(marks(7), [over, ruling]) == marks(7, rule_adherence=2)
    assert apply_deductions(marks(4), [over, ruling]) == marks(4, rule_adherence=0)
    score = turn_score("t", "ann", {0: marks(7)}, [over], WEIGHTS, 2)
    assert score.total == pytest.approx(7 - 2 * 0.15)


def test_two_readings_that_agree_are_averaged() -> None:
    score = scored(ANN, 6, 7)
    assert not score.contested
    assert score.readings == pytest.approx((6, 7))
    assert score.total == pytest.approx(6.5)


@pytest.mark.parametrize(("other", "contested"), [(8.0, False), (8.1, True), (4.0, False)])
def test_readings_beyond_the_margin_are_contested(other: float, contested: bool) -> None:
    assert scored(ANN, 6, other, margin=2).contested is contested


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((4, 3.5, 6, 8.5, 0), (5.5, 6.5, 8.5, 10, 1)),
        # Here a single criterion is exactly twice the margin apart.
        ((9.3, 5, 5, 5, 5), (5.3, 5, 5, 5, 5)),
    ],
)
def test_readings_exactly_the_margin_apart_are_not_contested(
    one: tuple[float, ...], other: tuple[float, ...]
) -> None:
    readings = {0: dict(zip(WEIGHTS, one, strict=True)), 1: dict(zip(WEIGHTS, other, strict=True))}
    assert not turn_score("t", "ann", readings, [], WEIGHTS, 2).contested


@pytest.mark.parametrize(("low", "contested"), [(0.0, True), (5.9, True), (6.0, False)])
def test_differences_that_cancel_out_are_contested_too(low: float, contested: bool) -> None:
    one = marks(5, logical_coherence=10, evidence_quality=low)
    other = marks(5, logical_coherence=low, evidence_quality=10)
    score = turn_score("t", "ann", {0: one, 1: other}, [], WEIGHTS, 2)
    assert score.readings[0] == pytest.approx(score.readings[1])
    assert score.contested is contested


def test_a_contested_turn_is_shown_but_left_out_of_the_mean() -> None:
    turns = [scored(ANN, 5, 5), scored(ANN, 2, 9)]
    stands = score_side(ANN, turns, WEIGHTS)
    assert stands.total == pytest.approx(5)
    assert len(stands.turns) == 2
    assert stands.turns[1].readings == pytest.approx((2, 9))


def test_a_side_with_only_contested_turns_has_no_score() -> None:
    stands = score_side(ANN, [scored(ANN, 2, 9)], WEIGHTS)
    assert (stands.total, stands.breakdown) == (None, {})
    assert mean_marks([]) == {}


def sides(ann: list[TurnScore], ben: list[TurnScore]) -> list[SideScore]:
    return [score_side(ANN, ann, WEIGHTS), score_side(BEN, ben, WEIGHTS)]


def test_the_better_mean_wins() -> None:
    assert find_winner(sides([scored(ANN, 6, 6)], [scored(BEN, 7, 7)]), 0.5) == Result("ben")


def test_equal_means_are_a_draw() -> None:
    tied = sides([scored(ANN, 4, 4), scored(ANN, 8, 8)], [scored(BEN, 6, 6)])
    assert find_winner(tied, 0) == Result(None, "the best scores are equal", draw=True)


@pytest.mark.parametrize(
    ("best", "margin", "winner"),
    [(6.4, 0.5, None), (6.5, 0.5, "ben"), (6.1, 0.1, "ben"), (6.01, 0, "ben"), (7, 1.5, None)],
)
def test_a_winner_needs_a_margin(best: float, margin: float, winner: str | None) -> None:
    result = find_winner(sides([scored(ANN, 6, 6)], [scored(BEN, best, best)]), margin)
    why = f"the best lead by {best - 6:.2f}, a winner needs {margin:g}"
    assert result == (Result(winner) if winner else Result(None, why, draw=True))


@pytest.mark.parametrize(
    ("best", "margin", "shown"),
    [
        (6.4967, 0.5, "0.497"),
        (6.4999996, 0.5, "0.4999996"),
        (6.499, 0.5, "0.499"),
        (6.1233, 0.1234, "0.12"),
        (6.24999, 0.25, "0.24999"),
    ],
)
def test_a_lead_just_under_the_margin_is_not_shown_as_the_margin(
    best: float, margin: float, shown: str
) -> None:
    result = find_winner(sides([scored(ANN, 6, 6)], [scored(BEN, best, best)]), margin)
    assert result.no_winner == f"the best lead by {shown}, a winner needs {margin:g}"


def test_a_winner_must_lead_in_both_orders() -> None:
    one_order_each = sides([scored(ANN, 8, 6)], [scored(BEN, 6, 6.5)])
    result = find_winner(one_order_each, 0.5)
    assert result.winner is None
    assert result.draw
    assert "depends on the order" in result.no_winner
    assert find_winner(sides([scored(ANN, 7, 6.6)], [scored(BEN, 6, 6.5)]), 0.5).winner == "ann"


def test_a_contested_turn_can_prevent_a_winner() -> None:
    """Leaving it out of the mean must not decide the debate."""
    ann = [scored(ANN, 7, 7), scored(ANN, 1, 9)]
    ben = [scored(BEN, 6, 6), scored(BEN, 6, 6)]
    assert score_side(ANN, ann, WEIGHTS).total == pytest.approx(7)
    assert find_winner(sides(ann, ben), 0.5).winner is None


def test_it_is_a_draw_if_all_scores_of_a_side_are_contested() -> None:
    result = find_winner(sides([scored(ANN, 2, 9)], [scored(BEN, 6, 6)]), 0.5)
    assert result == Result(None, "not every side has a score that counts", draw=True)


def test_nobody_wins_while_a_statement_lacks_a_reading() -> None:
    lone = turn_score("t", "ann", {1: marks(9)}, [], WEIGHTS, 2)
    assert lone.orders == (1,)
    assert lone.readings == pytest.approx((9,))
    result = find_winner(sides([lone, scored(ANN, 9, 9)], [scored(BEN, 6, 6)]), 0.5)
    assert result == Result(None, "not every statement was read in both orders")


USUAL: dict[str, Any] = {"contested_margin": 2, "winner_margin": 0.5, "judge_model": "m:x"}


def test_nobody_wins_while_a_statement_has_no_score() -> None:
    stands = sides([scored(ANN, 9, 9)], [scored(BEN, 6, 6)])
    verdict = final_scores(stands, declares_winner=True, unscored=["r0.closing.ben"], **USUAL)
    why = "not every statement was read in both orders"
    assert (verdict.winner, verdict.no_winner, verdict.draw) == (None, why, False)


def test_the_lead_is_reported_where_a_winner_is_declared() -> None:
    stands = sides([scored(ANN, 9, 9)], [scored(BEN, 6, 6)])
    verdict = final_scores(stands, declares_winner=True, unscored=[], **USUAL)
    assert (verdict.winner, verdict.winner_margin) == ("ann", 0.5)
    assert verdict.lead == pytest.approx(3)
    quiet = final_scores(stands, declares_winner=False, unscored=[], **USUAL)
    assert (quiet.winner, quiet.no_winner, quiet.lead) == (None, "", None)
