"""Measures voting, gating and pooling on models' recorded answers, without model calls."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from contend.evals.extremising import read_resolved
from contend.evals.items import read_text
from contend.evals.measures import Calibration, Share, calibrate, share
from contend.graph.errors import BadInput
from contend.models.replies.short_answer import most_frequent
from contend.nodes.forecast.numbers import (
    Distribution,
    brier,
    extremised,
    fitted_factor,
    linear_pool,
    log_loss,
    log_odds_pool,
)

_NO_ROW = "-"
# Three families of about equal strength in the results that the authors of MMLU-Pro published.
EQUAL_FAMILIES = ("gemini-1.5-flash-002", "Meta-Llama-3_1-70B-Instruct", "DeepSeek-Coder-V2")


@dataclass(frozen=True)
class AnsweredQuestion:
    truth: str
    answers: tuple[str | None, ...]


@dataclass(frozen=True)
class PanelFigures:
    models: tuple[str, ...]
    n: int
    each: dict[str, Share]
    vote: Share
    any_right: Share
    by_agreement: dict[str, Share]
    gate: Share
    gate_calls: float


def read_panel(path: Path, models: Sequence[str]) -> list[AnsweredQuestion]:
    table = csv.DictReader(io.StringIO(read_text(path)))
    columns = table.fieldnames or []
    for name in ("answer", *models):
        if name not in columns:
            known = ", ".join(each for each in columns if each not in _NOT_MODELS)
            raise BadInput(f"{path.name} has no column '{name}'. Its models: {known}.")
    rows = [row for row in table if all(row[model] != _NO_ROW for model in models)]
    if not rows:
        raise BadInput(f"No question of {path.name} has a row of every model.")
    return [
        AnsweredQuestion(row["answer"], tuple(row[model] or None for model in models))
        for row in rows
    ]


_NOT_MODELS = {"question_id", "category", "n_options", "answer"}


def measure_panel(models: Sequence[str], questions: Sequence[AnsweredQuestion]) -> PanelFigures:
    accuracies = {
        model: share(each.answers[at] == each.truth for each in questions)
        for at, model in enumerate(models)
    }
    # On a tie the most accurate model decides, so sort the panel by accuracy.
    order = sorted(range(len(models)), key=lambda at: -(accuracies[models[at]].value or 0))
    votes = [_vote([each.answers[at] for at in order]) for each in questions]
    gates = [_gate([each.answers[at] for at in order]) for each in questions]
    pairs = list(zip(questions, votes, strict=True))
    groups: dict[str, list[bool]] = {}
    for each, vote in pairs:
        groups.setdefault(_agreement(each.answers), []).append(vote == each.truth)
    return PanelFigures(
        models=tuple(models[at] for at in order),
        n=len(questions),
        each={models[at]: accuracies[models[at]] for at in order},
        vote=share(vote == each.truth for each, vote in pairs),
        any_right=share(each.truth in each.answers for each in questions),
        by_agreement={name: share(groups[name]) for name in sorted(groups)},
        gate=share(
            answer == each.truth for each, (answer, _) in zip(questions, gates, strict=True)
        ),
        gate_calls=sum(calls for _, calls in gates) / len(questions),
    )


def _vote(answers: Sequence[str | None]) -> str | None:
    return most_frequent(answers) or next((answer for answer in answers if answer), None)


def _gate(answers: Sequence[str | None]) -> tuple[str | None, int]:
    first, second, *_ = answers
    if first is not None and first == second:
        return first, 2
    return _vote(answers), len(answers)


def _agreement(answers: Sequence[str | None]) -> str:
    counted = Counter(answer for answer in answers if answer is not None)
    most = max(counted.values(), default=0)
    return f"{most} of {len(answers)} agree"


# --- forecasts ---


@dataclass(frozen=True)
class ForecastFigures:
    n: int
    forecasters: int
    figures: Mapping[str, tuple[float, float]]  # Brier and log loss by name
    factor: float
    calibration: Calibration


Judged = Sequence[tuple[Distribution, str]]


def measure_forecasts(path: Path) -> ForecastFigures:
    """Score single forecasts, and pools of several forecasts for the same question."""
    text = read_text(path)
    repeated = _by_question(text)
    first = read_resolved(io.StringIO(text))
    pooled: dict[str, Judged] = {
        "first forecast": first,
        "linear pool": [(linear_pool(all_, _OUTCOMES), came) for all_, came in repeated],
        "log-odds pool": [(log_odds_pool(all_, _OUTCOMES), came) for all_, came in repeated],
    }
    # Fit the factor on one half of the questions, and measure it on the other half.
    base = pooled["log-odds pool"]
    factor = fitted_factor(base[::2])
    held = base[1::2]
    figures = {name: _scores(rows) for name, rows in pooled.items()}
    figures["log-odds pool, other half"] = _scores(held)
    moved = [(extremised(values, factor), came) for values, came in held]
    figures["extremised, other half"] = _scores(moved)
    return ForecastFigures(
        n=len(first),
        forecasters=sum(len(all_) for all_, _ in repeated),
        figures=figures,
        factor=factor,
        calibration=calibrate([(values["yes"], came == "yes") for values, came in base]),
    )


_OUTCOMES = ("yes", "no")


def _by_question(text: str) -> list[tuple[list[Distribution], str]]:
    found: dict[str, tuple[list[Distribution], str]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        yes = float(row["crowd_probability"])
        came = {"0": "no", "1": "yes"}[row["outcome"]]
        found.setdefault(row["id"], ([], came))[0].append({"yes": yes, "no": 1 - yes})
    return list(found.values())


def _scores(rows: Judged) -> tuple[float, float]:
    n = len(rows)
    return (
        sum(brier(values, came) for values, came in rows) / n,
        sum(log_loss(values, came) for values, came in rows) / n,
    )
