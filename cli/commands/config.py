from typing import Annotated

import typer

from contend.cli.commands import options


def config(  # noqa: PLR0913, PLR0917 - one parameter per option
    protocol: options.Protocol = None,
    preset: options.Preset = None,
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

    found = options.chosen_preset(preset)
    chosen = options.chosen_protocol(protocol, found)
    flags = parse_options(chosen, assignments or [], seat or [], position or [])
    print_settings(chosen, flags, model, config, found, as_json=json)


def presets(json: options.Json = False) -> None:
    """List the presets: named combinations of models and settings, for `--preset`."""
    from contend.cli.actions.config import print_presets  # slow to import

    print_presets(as_json=json)


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
