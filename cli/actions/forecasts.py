from datetime import UTC, datetime
from pathlib import Path

from contend.cli import database
from contend.cli.actions.export import write_document
from contend.cli.view.console import print_hanging, print_message, stdout, write_json
from contend.cli.view.forecast import calibration_svg, due_lines, print_scoreboard
from contend.debates import forecasts
from contend.debates.exports.forecast import percent
from contend.graph.errors import BadInput
from contend.nodes.forecast.numbers import brier, log_loss


def resolve_forecast(reference: str, outcome: str, *, replace: bool, as_json: bool) -> None:
    with database.existing(reference) as (records, found):
        resolved = forecasts.resolve(records, found, outcome, replace=replace)
    outcome = resolved.actual_outcome or ""
    given = {r.outcome_id: r.probability for r in resolved.result.probability_distribution}
    known = {name: value for name, value in given.items() if value is not None}
    has_scores = len(known) == len(given)
    scores = {
        "brier": brier(known, outcome) if has_scores else None,
        "log_loss": log_loss(known, outcome) if has_scores else None,
    }
    if as_json:
        write_json({"id": found.id, "outcome": outcome, "probability": given[outcome], **scores})
        return
    stated = percent(given[outcome])
    message = f"Resolved forecast {found.id[:8]} as {outcome}; it had given this outcome {stated}"
    if has_scores:
        message += f": Brier {scores['brier']:.4f}, log loss {scores['log_loss']:.4f}"
    print_message(f"{message}.")


def list_due(*, every: bool, as_json: bool) -> None:
    found = []
    if not database.is_empty():
        with database.records() as records:
            today = datetime.now(UTC).date()
            done = forecasts.forecasts(records, database.print_skipped)
            found = forecasts.due_forecasts(done, today, every=every)
    if as_json:
        write_json([_described(each) for each in found])
    elif found:
        for line in due_lines(found):
            print_hanging(stdout(), line, hang=10)
        print_message("To record an outcome: contend resolve ID OUTCOME")
    else:
        hint = "" if every else " List all unresolved ones with: contend due --all"
        print_message(f"No forecast is due.{hint}")


def _described(forecast: forecasts.Forecast) -> dict[str, object]:
    return {
        "id": forecast.debate.id,
        "due": forecast.due.isoformat() if forecast.due else None,
        "question": forecast.debate.question,
        "outcomes": list(forecast.outcome_ids),
        "probability_distribution": [
            {"outcome_id": row.outcome_id, "probability": row.probability}
            for row in forecast.result.probability_distribution
        ],
    }


def print_scores(plot: str | None, *, as_json: bool) -> None:
    if plot is not None and not plot.strip():  # an unset shell variable
        raise BadInput("The path given to --plot is empty.")
    board = None
    if not database.is_empty():
        with database.records() as records:
            board = forecasts.scoreboard(records, database.print_skipped)
    if board is None or not board.resolved:
        raise BadInput(
            "No forecast is resolved yet. List the unresolved ones with `contend due --all` and "
            "record an outcome with `contend resolve ID OUTCOME`."
        )
    if plot:
        write_document(calibration_svg(board.calibration), Path(plot).expanduser())
    if as_json:
        write_json(board.as_json())
    else:
        print_scoreboard(stdout(), board)
