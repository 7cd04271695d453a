from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from contend.cli.view.console import print_hanging, stderr, stdout
from contend.cli.view.format import counted, one_line, plain
from contend.debates.exports.forecast import (
    POOL_WORDS,
    gap_words,
    insight_facts,
    outcome_labels,
    percent,
    share_words,
)
from contend.debates.record import StoredDebate
from contend.nodes.forecast.numbers import CalibrationBin

if TYPE_CHECKING:  # slow to import, and `show` needs none of it
    from contend.debates.forecasts import Forecast, Row, Scoreboard

Labels = Mapping[str, str]
"""Outcome labels by outcome id."""

_BAR = 20
_NARROW = 100
# On a narrower screen the roles' probabilities are printed below the table.
_ROOM_FOR_ROLES = 80
_FACT = 14
_NUMBERS = ("argument", "probabilities", "rounds", "verdict")


def print_forecast(screen: Console, forecast: Mapping[str, Any], outcomes: Labels) -> None:
    screen.print()
    screen.print(Rule(Text("Forecast", style="heading"), style="muted", characters="─"))
    roomy = screen.width >= _ROOM_FOR_ROLES
    roles = _roles(forecast) if roomy else []
    screen.print(_distribution(forecast, roles, outcomes, wide=screen.width >= _NARROW))
    for label, value in (*([] if roomy else _assessments(forecast)), *_facts(forecast)):
        print_hanging(screen, f"{label.ljust(_FACT)}{plain(value)}", hang=_FACT)
    for gap in forecast["report"]["gaps"]:
        text = one_line(f"missing: {gap_words(gap)}", 400)
        print_hanging(screen, f"! {text}", hang=2, style="warning")


def print_forecast_of(debate: StoredDebate, *, to_stderr: bool = False) -> None:
    forecast = debate.state.get("forecast")
    if debate.status == "done" and forecast:
        screen = stderr() if to_stderr else stdout()
        print_forecast(screen, forecast, outcome_labels(debate.state))


def words_of_rounds(debate: StoredDebate) -> dict[int, str]:
    forecast = debate.state.get("forecast")
    rounds = forecast["debate_log"]["rounds"] if forecast else ()
    return {held["round_number"]: round_words(_round_facts(held)) for held in rounds}


def _round_facts(held: Mapping[str, Any]) -> dict[str, Any]:
    scores = {e["role"]: e["scores"]["composite"] for e in held["arguments"] if e["scores"]}
    return {"phase": held["phase"], "summary": held["round_summary"], "scores": scores}


def quiet_lines(forecast: Mapping[str, Any]) -> list[str]:
    return [
        f"{row['outcome_id']}\t{percent(row['probability'])}"
        for row in forecast["probability_distribution"]
    ]


def round_words(meta: Mapping[str, Any]) -> str:
    summary = meta["summary"]
    known = {role: score for role, score in meta["scores"].items() if score is not None}
    scores = ", ".join(f"{role} {score:.2f}" for role, score in known.items())
    ways = {"toward": "toward", "away": "away from"}
    moves = [f"{ways[m['direction']]} {m['outcome_id']}" for m in summary["emerging_consensus"]]
    given = sorted(round(score, 2) for score in known.values())
    best = summary["dominant_argument"] if given[-2:-1] != given[-1:] else None  # a tie
    parts = [f"Scores of the {meta['phase']}: {scores or 'none'}."]
    parts += [f"Strongest: the {best}."] if best else []
    parts += [f"The panel is moving {' and '.join(moves)}."] if moves else []
    return " ".join(parts)


def _distribution(
    forecast: Mapping[str, Any], roles: Sequence[str], outcomes: Labels, *, wide: bool
) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Outcome", overflow="fold")
    table.add_column("Forecast", justify="right")
    if wide:
        table.add_column("")
    for heading in ("Verdict", "Mean", *(role[:5].capitalize() for role in roles)):
        table.add_column(heading, justify="right")
    for row in forecast["probability_distribution"]:
        stated = {each["role"]: each["probability"] for each in row["role_assessments"]}
        label = outcomes.get(row["outcome_id"], row["outcome_id"])
        bar = Text("█" * round(_BAR * (row["probability"] or 0)), style="bar")
        table.add_row(
            Text(one_line(label, 40)),
            Text(percent(row["probability"]), "heading"),
            *([bar] if wide else []),
            percent(row["judge_probability"]),
            percent(row["consensus_probability"]),
            *(percent(stated.get(role)) for role in roles),
        )
    return table


def _roles(forecast: Mapping[str, Any]) -> list[str]:
    rows = forecast["probability_distribution"]
    return list(dict.fromkeys(e["role"] for row in rows for e in row["role_assessments"]))


def _assessments(forecast: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for row in forecast["probability_distribution"]:
        said = (f"{e['role']} {percent(e['probability'])}" for e in row["role_assessments"])
        yield "Roles", f"{row['outcome_id']}: {', '.join(said) or '-'}"


def _facts(forecast: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    report = forecast["report"]
    yield "Consensus", share_words(forecast["consensus_score"])
    # A missing argument score does not lower the confidence.
    lacks_numbers = any(gap["what"] in _NUMBERS for gap in report["gaps"])
    reduced = " (reduced: numbers are missing)" if lacks_numbers else ""
    yield "Confidence", share_words(report["confidence"]) + reduced
    yield from _pools(report["pools"])
    quality = report["argument_quality"]
    if quality["share"] is not None:
        goal = f"{quality['share']:.0%} of {quality['of']} scored above 0.4 (goal: 80%)"
        yield "Arguments", goal
    references = report["closing_references"]
    if references["share"] is not None:
        yield "Closing", f"{references['share']:.0%} of {references['of']} cite earlier points"
    for each in forecast["disagreement_map"]:
        state = "resolved" if each["resolved"] else "still open"
        yield "Disagreement", f"{each['topic']} ({state})"
    yield from insight_facts(forecast)


def _pools(pools: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for name, words in POOL_WORDS.items():
        shown = ", ".join(f"{each['outcome_id']} {percent(each[name])}" for each in pools)
        yield "Pool", f"{words}: {shown}"


# --- forecasts that are due ---


def due_lines(found: "Sequence[Forecast]") -> Iterator[str]:
    for each in found:
        when = each.due.isoformat() if each.due else "no date"
        numbers = ", ".join(
            f"{row.outcome_id} {percent(row.probability)}"
            for row in each.result.probability_distribution
        )
        yield f"{each.debate.id[:8]}  {when}  {one_line(each.debate.question, 80)}  ({numbers})"


def print_scoreboard(screen: Console, board: "Scoreboard") -> None:
    from contend.debates.forecasts import ENOUGH_TO_FIT  # slow to import

    titles = {
        "Pool": board.pools,
        "Role": board.roles,
        "Model": board.models,
        "Mean of the roles": board.rounds,
    }
    for title, rows in titles.items():
        screen.print(_score_table(title, rows))
        screen.print()
    screen.print(_calibration_table(board.calibration))
    screen.print()
    factor = (
        f"fitted on these: {board.factor:g}; use it with --set extremising_factor={board.factor:g}"
        if board.factor is not None
        else f"is fitted once {ENOUGH_TO_FIT} forecasts are resolved"
    )
    resolved = counted(board.resolved, "forecast")
    about = "how far pooled probabilities are pushed away from 50%"
    print_hanging(screen, f"{resolved} resolved. The extremizing factor ({about}) {factor}.")


def _score_table(title: str, rows: "Sequence[Row]") -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(title, min_width=18, overflow="fold")
    for heading in ("Forecasts", "Brier", "Log loss"):
        table.add_column(heading, justify="right")
    for row in rows:
        name = POOL_WORDS.get(row.name, row.name)
        table.add_row(Text(plain(name)), str(row.count), f"{row.brier:.4f}", f"{row.log_loss:.4f}")
    return table


def _calibration_table(bins: Sequence[CalibrationBin]) -> Table:
    """Build the calibration table: forecast (`o`) against observed frequency (`x`)."""
    table = Table(box=None, pad_edge=False)
    for heading in ("Said", "Times", "Mean", "Came true"):
        table.add_column(heading, justify="right")
    table.add_column("0%" + " " * (_BAR - 5) + "100%")
    for each in bins:
        if each.forecast is None or each.observed is None:
            continue
        table.add_row(
            f"{each.low:.0%}-{each.high:.0%}",
            str(each.count),
            percent(each.forecast),
            percent(each.observed),
            _place(each.forecast, each.observed),
        )
    return table


def _place(forecast: float, observed: float) -> str:
    cells = ["·"] * (_BAR + 1)
    cells[round(_BAR * forecast)] = "o"
    cells[round(_BAR * observed)] = "x"
    return "".join(cells)


# The diagonal shows perfect calibration.
_CHART = """\
<svg xmlns="http://www.w3.org/2000/svg" width="400" height="400" viewBox="0 0 400 400"
 font-family="sans-serif" font-size="12">
<rect width="400" height="400" fill="#fff"/>
<rect x="40" y="40" width="320" height="320" fill="none" stroke="#999"/>
<line x1="40" y1="360" x2="360" y2="40" stroke="#999" stroke-dasharray="4 4"/>
<text x="200" y="392" text-anchor="middle">forecast</text>
<text x="10" y="200" text-anchor="middle" transform="rotate(-90 10 200)">came true</text>
{scale}
{dots}
</svg>
"""


def calibration_svg(bins: Sequence[CalibrationBin]) -> str:
    def at(share: float) -> float:
        return round(40 + 320 * share, 1)

    most = max((each.count for each in bins), default=1) or 1
    dots = [
        f'<circle cx="{at(each.forecast)}" cy="{400 - at(each.observed)}" '
        f'r="{3 + 9 * (each.count / most) ** 0.5:.1f}" fill="#0a7" fill-opacity="0.7">'
        f"<title>said {each.forecast:.0%}, came true {each.observed:.0%}, {each.count} times"
        "</title></circle>"
        for each in bins
        if each.forecast is not None and each.observed is not None
    ]
    scale = [
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="10">{share:.0%}</text>'
        for share in (0, 0.25, 0.5, 0.75, 1)
        for x, y, anchor in ((at(share), 373, "middle"), (36, 404 - at(share), "end"))
    ]
    return _CHART.format(scale="\n".join(scale), dots="\n".join(dots))
