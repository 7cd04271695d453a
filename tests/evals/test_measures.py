"""The statistics, checked by hand and against statsmodels."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.evals.measures import (
    adjusted,
    calibrate,
    compare_paired,
    count_flips,
    describe_pair,
    mean_of,
    share,
)
from contend.graph.errors import BadInput


def _pairs(both: int, first: int, second: int, neither: int) -> list[tuple[bool, bool]]:
    table = {
        (True, True): both,
        (True, False): first,
        (False, True): second,
        (False, False): neither,
    }
    return [pair for pair, count in table.items() for _ in range(count)]


def test_share_matches_a_hand_calculation() -> None:
    found = share([True] * 8 + [False] * 2)
    # Wilson: (p + z²/2n ± z·sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), with z = 1.959964
    assert (found.count, found.n, found.value) == (8, 10, 0.8)
    assert found.low == pytest.approx(0.4902, abs=1e-4)
    assert found.high == pytest.approx(0.9433, abs=1e-4)
    assert share([]).value is None


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_share_matches_statsmodels(counted: tuple[int, int]) -> None:
    from statsmodels.stats.proportion import proportion_confint

    count, n = counted
    found = share([True] * count + [False] * (n - count))
    low, high = proportion_confint(count, n, method="wilson")
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


def test_mcnemar_matches_a_hand_calculation() -> None:
    found = compare_paired(_pairs(10, 6, 1, 3))
    assert found is not None
    # Seven discordant pairs; P(X >= 6 or X <= 1) for X ~ B(7, 1/2) = 2 * (1 + 7) / 128
    assert found.p_value == pytest.approx(0.125)
    assert (found.n, found.only_first, found.only_second) == (20, 6, 1)
    assert found.difference == pytest.approx(0.25)
    assert found.low < 0.25 < found.high


@given(*(st.integers(0, 40) for _ in range(4)))
def test_mcnemar_matches_statsmodels(both: int, first: int, second: int, rest: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    found = compare_paired(_pairs(both, first, second, rest))
    if found is None:
        assert both + first + second + rest == 0
        return
    expected = mcnemar([[both, first], [second, rest]], exact=True).pvalue
    assert found.p_value == pytest.approx(1.0 if math.isnan(expected) else min(1.0, expected))


def test_equal_results_still_have_an_interval() -> None:
    found = compare_paired(_pairs(20, 0, 0, 0))
    assert found is not None
    # None of 20 differs: the exact upper limit is 1 - 0.025 ** (1/20).
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 20))
    assert found.low == -found.high
    assert found.p_value == 1.0


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ((5, 9, 0, 5), "too few items for a claim (+47.4 points"),
        ((20, 6, 5, 5), "no difference shown (+2.8 points"),
        ((20, 14, 1, 5), "better (+32.5 points"),
        ((20, 1, 14, 5), "worse (-32.5 points"),
    ],
)
def test_claims_a_difference_only_with_enough_items_and_significance(
    table: tuple[int, ...], said: str
) -> None:
    found = compare_paired(_pairs(*table))
    assert found is not None
    assert describe_pair(found).startswith(said)
    assert f"n = {sum(table)}" in describe_pair(found)


def test_flips_match_a_hand_calculation() -> None:
    rows = [
        ([True, True, False], True, True),
        ([True, True, False], True, False),  # right to wrong
        ([True, False, False], False, True),  # wrong to right
        ([True, False, False], False, False),
        ([False, False, True], None, True),  # a tie is not right
        ([False, False, False], False, False),
    ]
    found = count_flips(rows)
    assert found is not None
    assert (found.right_to_wrong, found.wrong_to_right) == (1, 2)
    assert (found.vote_right, found.any_right, found.final_right, found.n) == (2, 5, 3, 6)
    assert found.captured == pytest.approx(1 / 3)
    assert count_flips([]) is None


def test_calibration_matches_a_hand_calculation() -> None:
    found = calibrate([(0.8, True), (0.8, False), (0.3, False), (1.0, True)])
    # (0.2² + 0.8² + 0.3² + 0²) / 4
    assert found.brier == pytest.approx((0.04 + 0.64 + 0.09) / 4)
    assert found.log_loss == pytest.approx(-(math.log(0.8) + math.log(0.2) + math.log(0.7)) / 4)
    # bins: 0.8 twice, half came true; 0.3 never; 1.0 always
    assert found.ece == pytest.approx((2 * 0.3 + 0.3) / 4)
    assert calibrate([]).brier is None


def test_means_ignore_unknown_values() -> None:
    found = mean_of([1.0, None, 3.0])
    assert (found.n, found.value) == (2, 2.0)
    assert mean_of([None]).value is None
    assert mean_of([2.0, 2.0]).low is None


def test_adjusted_p_values_match_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    p_values = [0.01, 0.04, 0.03, 0.5]
    expected = multipletests(p_values, method="fdr_bh")[1]
    assert adjusted(p_values) == pytest.approx(list(expected))
    assert adjusted([]) == []


def test_reports_how_to_install_a_missing_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(BadInput, match=r"pip install 'contend\[evals\]'"):
        share([True])
