"""`contend resolve`, `due`, `scoreboard` and `schema`: forecasts after they were made."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from contend.cli.commands.ask import Json
from contend.cli.exit_codes import OK


def resolve(
    debate: Annotated[
        str, typer.Argument(metavar="ID", help="The forecast's id or its beginning.")
    ],
    outcome: Annotated[str, typer.Argument(metavar="OUTCOME", help="The outcome that came true.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Change what was said before.")
    ] = False,
    json: Json = False,
) -> int:
    """Say which outcome of a forecast came true, and see how good it was."""
    from contend.cli import database
    from contend.cli.view.console import print_message, write_json
    from contend.cli.view.forecast import percent
    from contend.debates.forecasts import resolve as resolve_forecast
    from contend.nodes.forecast.numbers import brier, log_loss

    with database.existing(debate) as (records, found):
        resolved = resolve_forecast(records, found, outcome, replace=replace)
    came = resolved.came or ""
    given = {r.outcome_id: r.probability for r in resolved.result.probability_distribution}
    whole = {name: value for name, value in given.items() if value is not None}
    scored = len(whole) == len(given)
    scores = {
        "brier": brier(whole, came) if scored else None,
        "log_loss": log_loss(whole, came) if scored else None,
    }
    if json:
        write_json({"id": found.id, "outcome": came, "probability": given[came], **scores})
        return OK
    told = f"Resolved forecast {found.id[:8]} as {came}, which it gave {percent(given[came])}"
    if scored:
        told += f": Brier {scores['brier']:.4f}, log loss {scores['log_loss']:.4f}"
    print_message(f"{told}.")
    return OK


def due(
    every: Annotated[
        bool, typer.Option("--all", help="All that are not resolved, also those without a date.")
    ] = False,
    json: Json = False,
) -> int:
    """List the forecasts that have come due and wait for their outcome."""
    from datetime import UTC, datetime  # --help must not wait for it

    from contend.cli import database
    from contend.cli.view.console import print_hanging, print_message, stdout, write_json
    from contend.cli.view.forecast import due_lines
    from contend.debates.forecasts import due_forecasts, forecasts

    found = []
    if not database.is_empty():
        with database.records() as records:
            found = due_forecasts(forecasts(records), datetime.now(UTC).date(), every=every)
    if json:
        write_json(
            [
                {
                    "id": each.debate.id,
                    "due": each.due.isoformat() if each.due else None,
                    "question": each.debate.question,
                    "outcomes": list(each.outcome_ids),
                    "probability_distribution": [
                        {"outcome_id": row.outcome_id, "probability": row.probability}
                        for row in each.result.probability_distribution
                    ],
                }
                for each in found
            ]
        )
    elif found:
        for line in due_lines(found):
            print_hanging(stdout(), line, hang=10)
        print_message("Resolve one with: contend resolve ID OUTCOME")
    else:
        hint = "" if every else " `contend due --all` lists those that are not due yet."
        print_message(f"No forecast waits for its outcome.{hint}")
    return OK


def scoreboard(
    json: Json = False,
    plot: Annotated[
        str | None, typer.Option(metavar="FILE", help="Draw the calibration as an SVG file.")
    ] = None,
) -> int:
    """Score all resolved forecasts: by pool, role, model and round, and their calibration."""
    from contend.cli import database
    from contend.cli.actions.debates import write_document
    from contend.cli.view.console import stdout, write_json
    from contend.cli.view.forecast import calibration_svg, print_scoreboard
    from contend.debates.forecasts import scoreboard as score_all
    from contend.graph.errors import BadInput

    if plot is not None and not plot.strip():  # an unset variable: it would mean this folder
        raise BadInput("--plot was given an empty path.")
    board = None
    if not database.is_empty():
        with database.records() as records:
            board = score_all(records)
    if board is None or not board.resolved:
        raise BadInput(
            "No forecast is resolved yet. `contend due --all` lists those that wait; "
            "`contend resolve ID OUTCOME` tells what came true."
        )
    if plot:
        write_document(calibration_svg(board.calibration), Path(plot).expanduser())
    if json:
        write_json(board.as_json())
    else:
        print_scoreboard(stdout(), board)
    return OK


def schema(
    of: Annotated[
        Literal["request", "result"], typer.Argument(help="Of what to print the schema.")
    ] = "request",
) -> int:
    """Print the JSON Schema of a forecast's request or result."""
    from contend.cli.view.console import write_json  # --help must not wait for it
    from contend.graph.contract.result import json_schemas

    write_json(json_schemas()[f"debate_{of}"])
    return OK
