"""`contend config` and `contend graph`: what would run, and what it looks like."""

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contend.cli.commands.ask import Assignments, Config, Json, Model, Positions, Protocol, Seats
from contend.cli.exit_codes import OK

if TYPE_CHECKING:
    from contend.graph.settings import DebateSettings


def config(
    protocol: Protocol = "adversarial",
    model: Model = None,
    seat: Seats = None,
    position: Positions = None,
    assignments: Assignments = None,
    config: Config = None,
    json: Json = False,
) -> int:
    """Print every setting, its value and where the value comes from."""
    from contend.cli.view.console import (  # --help must not wait for it
        print_message,
        stdout,
        write_json,
    )
    from contend.debates.settings_sources import (
        configure,
        parse_assignments,
        parse_positions,
        parse_seats,
    )

    flags = {
        **parse_assignments(assignments or []),
        **parse_seats(protocol, seat or []),
        **parse_positions(protocol, position or []),
    }
    configured = configure(protocol, flags, model, config, dict(os.environ))
    for notice in configured.notices:
        print_message(f"Note: {notice}", style="yellow")
    described = configured.described()
    if json:
        write_json({"protocol": protocol, "settings": described})
        return OK
    for name, each in described.items():
        line = f"{name} = {_as_yaml(each['value'])}  ({each['source']})"
        stdout().print(line, soft_wrap=True)
    stdout().print(f"\n{_models_line(configured.settings)}", soft_wrap=True)
    return OK


def _as_yaml(value: Any) -> str:
    """A value as it would stand in a config file, on one line."""
    import yaml  # --help must not wait for it

    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=sys.maxsize)
    return text.removesuffix("...\n").strip()


def _models_line(settings: "DebateSettings") -> str:
    """Which models a debate would use where none is named; nothing is asked to find out."""
    return f"{_chat_line(settings)} {_embedding_line(settings)}"


def _embedding_line(settings: "DebateSettings") -> str:
    from contend.models.embeddings import EMBEDDED_EMBEDDING

    if "embedding_model" in settings.model_fields_set:
        return "Embedding model: as named above."
    return (
        f"Embedding model: {settings.embedding_model} where the models are Ollama's and it has "
        f"that one, else {EMBEDDED_EMBEDDING}."
    )


def _chat_line(settings: "DebateSettings") -> str:
    from contend.models.providers.registry import API_KEYS
    from contend.models.seats import EMBEDDED

    seats = settings.table()
    named = [seat.model for seat in seats if settings.is_named(seat)]
    if len(named) == len(seats):
        return "Models: as named above."
    if named:
        return f"Models: as named; the other seats' if Ollama has them, else {named[0]}."
    key = next((key for key in API_KEYS.values() if os.environ.get(key, "").strip()), None)
    other = f"a hosted model ({key} is set)" if key else f"{EMBEDDED} (no key is set)"
    return f"No model is named: those above if Ollama has them, else {other}."


def graph(
    protocol: Annotated[str, typer.Argument(help="The protocol to draw.")] = "adversarial",
) -> int:
    """Print a protocol's graph as a Mermaid drawing."""
    from importlib import import_module  # --help must not wait for it

    from contend.debates.settings_sources import load_settings

    load_settings(protocol, {}, None, None, {})
    typer.echo(
        import_module(f"contend.graph.{protocol}").graph.get_graph().draw_mermaid(), nl=False
    )
    return OK
