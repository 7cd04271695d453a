"""`contend config` and `contend graph`: what would run, and what it looks like."""

import os
from typing import Annotated

import typer

from cli.ask import Assignments, Config, Json, Model, Protocol
from cli.exits import OK


def config(
    protocol: Protocol = "adversarial",
    model: Model = None,
    assignments: Assignments = None,
    config: Config = None,
    json: Json = False,
) -> int:
    """Print every setting, its value and where the value comes from."""
    from cli.consoles import stdout, tell, write_json  # --help must not wait for it
    from debates.configuration import configure, parse_assignments

    flags = parse_assignments(assignments or [])
    configured = configure(protocol, flags, model, config, dict(os.environ))
    for notice in configured.notices:
        tell(f"Note: {notice}", style="yellow")
    described = configured.described()
    if json:
        write_json({"protocol": protocol, "settings": described})
        return OK
    for name, each in described.items():
        where = "" if each["source"] == "default" else f"  ({each['source']})"
        stdout().print(f"{name} = {each['value']}{where}", soft_wrap=True)
    return OK


def graph(
    protocol: Annotated[str, typer.Argument(help="The protocol to draw.")] = "adversarial",
) -> int:
    """Print a protocol's graph as a Mermaid drawing."""
    from importlib import import_module  # --help must not wait for it

    from debates.configuration import load_settings

    load_settings(protocol, {}, None, None, {})
    typer.echo(import_module(f"graph.{protocol}").graph.get_graph().draw_mermaid(), nl=False)
    return OK
