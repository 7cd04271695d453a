"""Options of `contend config` and `contend graph`."""

from typing import Annotated

import typer

from contend.cli.commands import options


def config(
    protocol: options.Protocol = "adversarial",
    model: options.Model = None,
    seat: options.Seats = None,
    position: options.Positions = None,
    assignments: options.Assignments = None,
    config: options.Config = None,
    json: options.Json = False,
) -> None:
    """Print every setting, its value and where the value comes from."""
    from contend.cli.actions.config import print_settings  # slow to import
    from contend.debates.settings_sources import parse_options

    flags = parse_options(protocol, assignments or [], seat or [], position or [])
    print_settings(protocol, flags, model, config, as_json=json)


def graph(
    protocol: Annotated[
        str, typer.Argument(metavar="PROTOCOL", help="The protocol to draw.")
    ] = "adversarial",
) -> None:
    """Print a protocol's graph as a Mermaid diagram."""
    from importlib import import_module  # slow to import

    from contend.debates.settings_sources import configure

    configure(protocol, {}, None, None, {})  # refuses an unknown protocol
    drawn = import_module(f"contend.graph.{protocol}").graph.get_graph().draw_mermaid()
    typer.echo(drawn, nl=False)
