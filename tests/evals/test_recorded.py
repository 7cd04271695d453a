"""Votes, gates and pools on a small table of recorded answers."""

from pathlib import Path

import pytest

from contend.evals.recorded import measure_forecasts, measure_panel, read_panel
from contend.graph.errors import BadInput

TABLE = """question_id,category,n_options,answer,a,b,c
1,x,4,A,A,A,B
2,x,4,B,B,C,C
3,x,4,C,C,D,A
4,x,4,D,D,D,D
5,x,4,A,,A,A
6,x,4,A,-,A,A
"""
FORECASTS = (
    "id,crowd_probability,outcome\n"
    + "".join(
        f"q{number},{p},{outcome}\n"
        for number, (p, outcome) in enumerate([(0.8, 1), (0.2, 0), (0.6, 1), (0.4, 1)])
    )
    + "q0,0.9,1\n"
)


def test_measures_a_panel(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    found = measure_panel(("a", "b", "c"), read_panel(path, ("a", "b", "c")))
    assert found.n == 5  # question 6 has no row of a
    assert {name: each.count for name, each in found.each.items()} == {"a": 4, "b": 3, "c": 2}
    assert found.models == ("a", "b", "c")
    # 1: A by two; 2: C by two; 3: a tie, so a decides; 4 and 5: agreed
    assert found.vote.count == 4
    assert found.any_right.count == 5
    assert {name: (each.count, each.n) for name, each in found.by_agreement.items()} == {
        "1 of 3 agree": (1, 1),
        "2 of 3 agree": (2, 3),
        "3 of 3 agree": (1, 1),
    }
    # a and b agree on 1 and 4
    assert found.gate_calls == pytest.approx((2 + 3 + 3 + 2 + 3) / 5)
    assert found.gate.count == 4


def test_reports_a_missing_panel_column(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    with pytest.raises(BadInput, match=r"no column 'd'. Its models: a, b, c"):
        read_panel(path, ("a", "d"))


def test_forecasts_are_pooled_by_question(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(FORECASTS)
    found = measure_forecasts(path)
    assert (found.n, found.forecasters) == (4, 5)
    first = (0.2**2 + 0.2**2 + 0.4**2 + 0.6**2) / 4
    assert found.figures["first forecast"][0] == pytest.approx(first)
    pooled = (0.15**2 + 0.2**2 + 0.4**2 + 0.6**2) / 4
    assert found.figures["linear pool"][0] == pytest.approx(pooled)
