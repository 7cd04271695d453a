"""Options of `contend config` and `contend graph`."""

from typing import Annotated

import typer

from contend.cli.commands.ask import Assignments, Config, Json, Model, Positions, Protocol, Seats
from contend.cli.exit_codes import OK


def config(
    protocol: Protocol = "adversarial",
    model: Model = None,
    seat: Seats = None,
    position: Positions = None,
    assignments: Assignments = None,
    config: Config = None,
    json: Json = False,
) -> int:
    """Print every setting, its value and its source."""
    from contend.cli.actions.config import print_settings  # slow to import
    from contend.debates.settings_sources import parse_assignments, parse_positions, parse_seats

    flags = {
        **parse_assignments(assignments or []),
        **parse_seats(protocol, seat or []),
        **parse_positions(protocol, position or []),
    }
    print_settings(protocol, flags, model, config, as_json=json)
    return OK


def graph(
    protocol: Annotated[str, typer.Argument(help="The protocol to draw.")] = "adversarial",
) -> int:
    """Print a protocol's graph as a Mermaid diagram."""
    from importlib import import_module  # slow to import

    from contend.debates.settings_sources import load_settings

    load_settings(protocol, {}, None, None, {})
    drawn = import_module(f"contend.graph.{protocol}").graph.get_graph().draw_mermaid()
    typer.echo(drawn, nl=False)
    return OK
