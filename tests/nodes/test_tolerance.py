import pytest

from contend.nodes.tolerance import is_above, is_below


@pytest.mark.parametrize(
    ("value", "limit"), [(0.6 + 0.3, 0.9), (0.1 + 0.2, 0.3), (9.3 - 5.3, 4), (0.07 - 0.06, 0.01)]
)
def test_rounding_errors_do_not_cross_a_limit(value: float, limit: float) -> None:
    assert value != limit
    assert not is_above(value, limit)
    assert not is_below(value, limit)


def test_detects_real_differences() -> None:
    assert is_above(2.0001, 2)
    assert is_below(1.9999, 2)
    assert not is_above(1.9999, 2)
    assert not is_below(2.0001, 2)
