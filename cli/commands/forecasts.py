from typing import Annotated, Literal

import typer

from contend.cli.commands.options import DebateId, Json


def resolve(
    debate: DebateId,
    outcome: Annotated[
        str, typer.Argument(metavar="OUTCOME", help="The id of the outcome that came true.")
    ],
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace an outcome recorded earlier.")
    ] = False,
    json: Json = False,
) -> None:
    """Record which outcome of a forecast came true, and print the forecast's score."""
    from contend.cli.actions import forecasts as actions  # slow to import

    actions.resolve_forecast(debate, outcome, replace=replace, as_json=json)


def due(
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Also list unresolved forecasts that are not due yet or have no date."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """List forecasts that are past their due date and not yet resolved."""
    from contend.cli.actions import forecasts as actions  # slow to import

    actions.list_due(every=every, as_json=json)


def scoreboard(
    json: Json = False,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Also write the calibration chart to this SVG file."),
    ] = None,
) -> None:
    """Show how accurate resolved forecasts were.

    The scores are grouped by the method used to combine the roles' probabilities, and by role,
    model and round.
    """
    from contend.cli.actions import forecasts as actions  # slow to import

    actions.print_scores(plot, as_json=json)


def schema(
    of: Annotated[
        Literal["request", "result"],
        typer.Argument(metavar="WHICH", help="The schema to print."),
    ] = "request",
) -> None:
    """Print the JSON Schema of a forecast's request or result."""
    from contend.cli.view.console import write_json  # slow to import
    from contend.graph.forecast_contract.result import json_schemas

    write_json(json_schemas()[f"debate_{of}"])
