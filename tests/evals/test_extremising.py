"""Fitting the extremising factor to resolved questions."""

import math
from pathlib import Path

import pytest

from contend.evals.extremising import fit, main, read_resolved

# Said 0.6, came true eight times in ten; the last row is a question that was there before.
ROWS = [f"q{n},0.6,{int(n < 8)}" for n in range(10)] + ["q0,0.01,0"]
TABLE = ["id,crowd_probability,outcome", *ROWS]


def test_underconfident_forecasts_give_a_factor_above_one() -> None:
    found = fit(read_resolved(TABLE))
    assert found.questions == 10
    assert found.factor == pytest.approx(math.log(4) / math.log(1.5), abs=0.01)
    assert found.log_loss[1] < found.log_loss[0]
    assert found.brier == pytest.approx((0.8 * 0.16 + 0.2 * 0.36, 0.16), abs=1e-3)


def test_the_command_prints_the_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "resolved.csv"
    file.write_text("\n".join(TABLE), encoding="utf-8")
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.startswith("10 questions: factor 3.4")
    assert main([]) == 2


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["q,much,1"], "Cannot read"),
        (["q,0.5"], "Cannot read"),
        (["q,60,1"], "between 0 and 1"),
        (["q,nan,1"], "between 0 and 1"),
        ([], "no questions"),
    ],
)
def test_reports_an_invalid_table(
    rows: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "resolved.csv"
    file.write_text("\n".join([TABLE[0], *rows]), encoding="utf-8")
    assert main([str(file)]) == 2
    assert said in capsys.readouterr().err


def test_reports_a_missing_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such.csv"]) == 2
    assert "no-such.csv" in capsys.readouterr().err
