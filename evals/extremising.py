"""Fits EXTREMISING_FACTOR to resolved questions: `python -m contend.evals.extremising CSV`."""

import csv
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from contend.graph.errors import BadInput
from contend.nodes.forecast.numbers import Distribution, brier, extremised, fitted_factor, log_loss

Resolved = Sequence[tuple[Distribution, str]]


@dataclass(frozen=True)
class Fit:
    questions: int
    factor: float
    log_loss: tuple[float, float]
    brier: tuple[float, float]


def read_resolved(lines: Iterable[str]) -> list[tuple[Distribution, str]]:
    """Return the first forecast for each question, with the outcome that came true."""
    # For example, the resolved market questions from ForecastBench (CC BY-SA 4.0, not included).
    seen: dict[str, tuple[Distribution, str]] = {}
    for row in csv.DictReader(lines):
        try:
            question, yes = row["id"], float(row["crowd_probability"])
            came = {"0": "no", "1": "yes"}[row["outcome"]]
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"Cannot read this row: {row}.") from error
        if not 0 <= yes <= 1:
            raise BadInput(f"The probability must be between 0 and 1 in this row: {row}.")
        seen.setdefault(question, ({"yes": yes, "no": 1 - yes}, came))
    if not seen:
        raise BadInput("The table has no questions.")
    return list(seen.values())


def fit(resolved: Resolved) -> Fit:
    factor = fitted_factor(resolved)
    moved = [(extremised(values, factor), came) for values, came in resolved]
    return Fit(
        questions=len(resolved),
        factor=factor,
        log_loss=(_mean(log_loss, resolved), _mean(log_loss, moved)),
        brier=(_mean(brier, resolved), _mean(brier, moved)),
    )


def _mean(loss: Callable[[Distribution, str], float], resolved: Resolved) -> float:
    return fmean(loss(values, came) for values, came in resolved)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("Give one CSV file of resolved questions.\n")
        return 2
    try:
        with Path(arguments[0]).open(encoding="utf-8", newline="") as file:
            found = fit(read_resolved(file))
    except (BadInput, OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(
        f"{found.questions} questions: factor {found.factor:g}; log loss {found.log_loss[0]:.4f} "
        f"-> {found.log_loss[1]:.4f}, Brier {found.brier[0]:.4f} -> {found.brier[1]:.4f}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
