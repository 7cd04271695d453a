"""The forecast arithmetic: hand-computed cases and properties."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.graph.forecast_contract.terms import COMPOSITE_WEIGHTS, CRITERIA
from contend.nodes.forecast.numbers import (
    brier,
    calibration,
    combine_with_judge,
    composite,
    consensus,
    consensus_score,
    extremised,
    fitted_factor,
    linear_pool,
    log_loss,
    log_odds_pool,
    mean_known,
    movement,
    read_distribution,
    rounded,
    spread,
)

ABC = ("a", "b", "c")
YES_NO = ("yes", "no")

READ = {
    "fractions": ({"yes": 0.7, "no": 0.3}, {"yes": 0.7, "no": 0.3}),
    "percentages": ({"yes": 70, "no": 30}, {"yes": 0.7, "no": 0.3}),
    "rounded": ({"yes": 0.66, "no": 0.33}, {"yes": 2 / 3, "no": 1 / 3}),
    "one percent is no certainty": ({"yes": 1, "no": 99}, {"yes": 0.01, "no": 0.99}),
    "certainty": ({"yes": 1, "no": 0}, {"yes": 1.0, "no": 0.0}),
    "incomplete": ({"yes": 0.7}, {"yes": 0.7}),
    "incomplete percentages": ({"yes": 70}, {"yes": 0.7}),
    "of others": ({"yes": 0.7, "no": 0.3, "maybe": 5}, {"yes": 0.7, "no": 0.3}),
    "too much": ({"yes": 0.9, "no": 0.9}, None),
    "too little": ({"yes": 0.2, "no": 0.2}, None),
    "all zero": ({"yes": 0, "no": 0}, None),
    "negative": ({"yes": 1.2, "no": -0.2}, None),
    "mixed": ({"yes": 0.7, "no": 30}, {"yes": 0.7, "no": 0.3}),
    "mixed, close to 100": ({"yes": 0.66, "no": 33}, {"yes": 2 / 3, "no": 1 / 3}),
    "mixed, exactly 100": ({"yes": 0.01, "no": 99}, {"yes": 0.01, "no": 0.99}),
    "mixed, or small percentages": ({"yes": 0.02, "no": 97}, None),
    "a small percentage": ({"yes": 0.1, "no": 99.9}, {"yes": 0.001, "no": 0.999}),
    "a rounded small percentage": ({"yes": 0.5, "no": 99}, {"yes": 0.5 / 99.5, "no": 99 / 99.5}),
    "mixed, far from 100": ({"yes": 0.7, "no": 50}, None),
    "odds": ({"yes": 1, "no": 8}, None),
    "mixed, over a hundred": ({"yes": 0.01, "no": 101}, None),
    "above all": ({"yes": 70}, {"yes": 0.7}),
    "over a hundred": ({"yes": 170}, None),
    "not a number": ({"yes": math.nan, "no": 0.5}, None),
    "infinite": ({"yes": math.inf, "no": 0.5}, None),
    "none": ({}, None),
    "only strangers": ({"maybe": 1}, None),
}

WEIGHTS = {str(name): weight for name, weight in COMPOSITE_WEIGHTS.items()}


@pytest.mark.parametrize(("raw", "read"), READ.values(), ids=READ)
def test_stated_values_are_read_or_refused(
    raw: dict[str, float], read: dict[str, float] | None
) -> None:
    found = read_distribution(raw, YES_NO)
    assert found == (None if read is None else pytest.approx(read))


@pytest.mark.parametrize("total", [90, 110])
def test_a_sum_exactly_at_the_limit_is_read(total: int) -> None:
    for first in range(total - 100 if total > 100 else 0, min(100, total) + 1):
        raw = {"yes": first / 100, "no": (total - first) / 100}
        assert read_distribution(raw, YES_NO) == pytest.approx(
            {"yes": first / total, "no": (total - first) / total}
        )
    assert read_distribution({"yes": 0.6, "no": 0.299}, YES_NO) is None
    assert read_distribution({"yes": 0.8, "no": 0.301}, YES_NO) is None


def test_normalizes_percentages_that_sum_to_103() -> None:
    judge = read_distribution({"a": 62, "b": 31, "c": 10}, ABC)
    assert judge == pytest.approx({"a": 62 / 103, "b": 31 / 103, "c": 10 / 103})


def test_an_incomplete_role_counts_only_for_the_outcomes_it_gave() -> None:
    roles = [
        {"a": 0.6, "b": 0.3, "c": 0.1},
        {"a": 0.4, "b": 0.4, "c": 0.2},
        {"a": 0.8},
    ]
    agreed = consensus(roles, ABC)
    assert agreed == pytest.approx({"a": 0.6, "b": 0.35, "c": 0.15})
    judge = {"a": 62 / 103, "b": 31 / 103, "c": 10 / 103}
    # 0.6 x judge + 0.4 x consensus: 0.601165, 0.320583, 0.118252, in all 1.04.
    final = combine_with_judge(judge, agreed, 0.6, ABC)
    assert final == pytest.approx({"a": 0.578043, "b": 0.308253, "c": 0.113704}, abs=1e-6)
    assert linear_pool(roles, ABC) == pytest.approx({"a": 0.5, "b": 0.35, "c": 0.15})


@pytest.mark.parametrize(
    ("judge", "agreed", "final"),
    [
        ({"yes": 0.8, "no": 0.2}, {"yes": 0.5, "no": 0.5}, {"yes": 0.68, "no": 0.32}),
        ({}, {"yes": 0.5, "no": 0.5}, {"yes": 0.5, "no": 0.5}),
        ({"yes": 0.8, "no": 0.2}, {}, {"yes": 0.8, "no": 0.2}),
        ({"yes": 0.8}, {"yes": 0.5, "no": 0.5}, {"yes": 0.68 / 1.18, "no": 0.5 / 1.18}),
        ({"yes": 0.8}, {"yes": 0.5}, {"yes": 0.68}),
        ({}, {}, {}),
    ],
)
def test_combines_the_judge_with_the_consensus(
    judge: dict[str, float], agreed: dict[str, float], final: dict[str, float]
) -> None:
    assert combine_with_judge(judge, agreed, 0.6, YES_NO) == pytest.approx(final)


@pytest.mark.parametrize(
    ("values", "score"),
    [
        ([], None),
        ([0.4], None),
        ([0.7, 0.7, 0.7], 1.0),
        ([0, 1], 0.0),
        ([0, 0, 1, 1, 1], 0.0),
        ([0.2, 0.8], 0.4),
        # Mean 0.6, variance 0.02; the largest of five is sqrt(6) / 5.
        ([0.4, 0.5, 0.6, 0.7, 0.8], 1 - math.sqrt(0.02) / (math.sqrt(6) / 5)),
    ],
)
def test_the_consensus_score(values: list[float], score: float | None) -> None:
    assert consensus_score(values) == (None if score is None else pytest.approx(score))


def test_the_composite_weighs_logic_and_evidence_twice_as_much_as_novelty() -> None:
    scores: dict[str, float] = dict(zip(CRITERIA, (0.9, 0.5, 0.2), strict=True))
    assert composite(scores, WEIGHTS) == pytest.approx(0.4 * 0.9 + 0.4 * 0.5 + 0.2 * 0.2)
    assert composite({"logical_strength": 0.9, "novelty": 0.3}, WEIGHTS) == pytest.approx(0.7)
    own = WEIGHTS | {"cost": 1.0}
    assert composite({"logical_strength": 0.5, "cost": 1.0}, own) == round(1.2 / 1.4, 4)


@pytest.mark.parametrize("limit", [0.2, 0.4, 0.7])
def test_composite_of_equal_scores_is_exactly_that_score(limit: float) -> None:
    assert composite(dict.fromkeys(WEIGHTS, limit), WEIGHTS) == limit
    assert composite({"evidence_quality": limit, "novelty": limit}, WEIGHTS) == limit


def test_rounded_numbers_still_sum_to_one() -> None:
    assert rounded({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}) == {"a": 0.3334, "b": 0.3333, "c": 0.3333}
    assert rounded({"a": 0.123456}) == {"a": 0.1235}
    assert rounded({}) == {}


def test_movement_counts_only_roles_that_spoke_twice() -> None:
    before = {"optimist": {"yes": 0.6}, "pessimist": {"yes": 0.2}}
    assert movement(before, {"optimist": {"yes": 0.7}, "pessimist": {"yes": 0.2}}, "yes") == (
        "toward"
    )
    assert movement(before, {"pessimist": {"yes": 0.1}}, "yes") == "away"
    assert movement(before, {"optimist": {"yes": 0.605}}, "yes") is None
    assert movement(before, {"historian": {"yes": 0.9}}, "yes") is None
    assert movement({}, before, "yes") is None


@pytest.mark.parametrize("before", range(100))
def test_a_move_of_exactly_one_percent_is_reported(before: int) -> None:
    low, high = {"optimist": {"yes": before / 100}}, {"optimist": {"yes": (before + 1) / 100}}
    assert movement(low, high, "yes") == "toward"
    assert movement(high, low, "yes") == "away"


def test_spread_and_mean_ignore_missing_values() -> None:
    assert spread([{"yes": 0.2}, {"yes": 0.7}, {}], "yes") == pytest.approx(0.5)
    assert spread([{"yes": 0.7}, {"yes": 0.5}], "yes") == 0.2
    assert spread([], "yes") == 0
    assert mean_known([0.2, None, 0.4]) == pytest.approx(0.3)
    assert mean_known([None]) is None


def test_pools_log_odds_of_two_outcomes() -> None:
    # Odds 4 and 1, geometric mean 2.
    pooled = log_odds_pool([{"yes": 0.8, "no": 0.2}, {"yes": 0.5, "no": 0.5}], YES_NO)
    assert pooled == pytest.approx({"yes": 2 / 3, "no": 1 / 3})
    # Odds of 2 squared.
    assert extremised(pooled, 2) == pytest.approx({"yes": 0.8, "no": 0.2})
    assert log_odds_pool([{"yes": 0.8}], YES_NO) == {}
    assert extremised({}, 2) == {}
    assert log_odds_pool([{"yes": 1, "no": 0}], YES_NO)["yes"] == pytest.approx(0.999)


def test_fits_a_factor_to_underconfident_forecasts() -> None:
    # Forecasts of 0.6 that come true eight times in ten: odds of 1.5 should have been 4.
    timid = [({"yes": 0.6, "no": 0.4}, "yes" if n < 8 else "no") for n in range(10)]
    assert fitted_factor(timid) == pytest.approx(math.log(4) / math.log(1.5), abs=0.01)


def test_brier_and_log_loss() -> None:
    forecast = {"yes": 0.7, "no": 0.3}
    assert brier(forecast, "yes") == pytest.approx(0.09)
    assert brier(forecast, "no") == pytest.approx(0.49)
    assert brier({"a": 0.5, "b": 0.3, "c": 0.2}, "b") == pytest.approx((0.25 + 0.49 + 0.04) / 2)
    assert log_loss(forecast, "yes") == pytest.approx(-math.log(0.7))
    assert log_loss({"yes": 1.0, "no": 0.0}, "no") == pytest.approx(-math.log(1e-6))


def test_calibration_counts_every_probability_once() -> None:
    resolved = [({"yes": 0.75, "no": 0.25}, "yes"), ({"yes": 0.72, "no": 0.28}, "no")]
    table = calibration(resolved)
    assert sum(row.count for row in table) == 4
    assert (table[7].count, table[7].forecast, table[7].observed) == (2, 0.735, 0.5)
    assert (table[2].count, table[2].observed) == (2, 0.5)
    assert table[0].forecast is None
    assert calibration([({"yes": 1.0, "no": 0.0}, "yes")])[9].count == 1


_PROBABILITY = st.floats(0, 1)
_VOICES = st.lists(
    st.fixed_dictionaries({}, optional={"a": _PROBABILITY, "b": _PROBABILITY, "c": _PROBABILITY}),
    max_size=6,
)
_RAW = st.dictionaries(st.sampled_from([*ABC, "d"]), st.floats(), max_size=4)


@given(_RAW)
def test_read_probabilities_are_a_distribution_over_stated_outcomes(raw: dict[str, float]) -> None:
    read = read_distribution(raw, ABC)
    if read is None:
        return
    assert set(read) == set(raw) & set(ABC)
    assert all(0 <= value <= 1 for value in read.values())
    if len(read) == 3:
        assert sum(read.values()) == pytest.approx(1)


@given(_VOICES, st.floats(0, 1))
def test_pools_are_distributions_without_new_outcomes(
    voices: list[dict[str, float]], weight: float
) -> None:
    agreed = consensus(voices, ABC)
    assert set(agreed) == {outcome for voice in voices for outcome in voice}
    final = combine_with_judge(agreed, agreed, weight, ABC)
    assert set(final) == set(agreed)
    whole = [voice for voice in voices if len(voice) == 3]
    for pool in (linear_pool(voices, ABC), log_odds_pool(voices, ABC)):
        assert bool(pool) == bool(whole)
        assert all(0 <= value <= 1 for value in pool.values())
    pooled = log_odds_pool(voices, ABC)
    if pooled:
        assert sum(pooled.values()) == pytest.approx(1)
        assert sum(extremised(pooled, 1.7).values()) == pytest.approx(1)
        assert extremised(pooled, 1) == pytest.approx(pooled, abs=0.01)


@given(st.lists(_PROBABILITY, min_size=2, max_size=9))
def test_consensus_score_is_between_zero_and_one(values: list[float]) -> None:
    score = consensus_score(values)
    assert score is not None
    assert 0 <= score <= 1
    assert consensus_score(values[::-1]) == pytest.approx(score)
