import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Annotated

import click
import typer

from contend.cli.completion import (
    complete_debate,
    complete_model,
    complete_preset,
    complete_protocol,
)
from contend.graph import protocols

if TYPE_CHECKING:
    from contend.debates.presets import Preset as FoundPreset
    from contend.debates.settings_sources import Given

# The module names, because the settings are slow to import; a test compares the two.
PROTOCOLS = [each.name for each in iter_modules(protocols.__path__) if each.name != "base"]
DEFAULT_PROTOCOL = "adversarial"

DebateId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The debate's id, or a unique prefix of it.",
        autocompletion=complete_debate,
    ),
]
Protocol = Annotated[
    str | None,
    typer.Option(
        "--protocol",
        "-p",
        metavar="NAME",
        help=f"Debate protocol: {', '.join(PROTOCOLS[:-1])} or {PROTOCOLS[-1]} "
        f"(default: {DEFAULT_PROTOCOL}, or the preset's).",
        autocompletion=complete_protocol,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        metavar="NAME",
        help="Use the models and settings of a preset; `contend presets` lists them.",
        autocompletion=complete_preset,
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="PROVIDER:NAME",
        help="Default model for all roles.",
        autocompletion=complete_model,
    ),
]
Seats = Annotated[
    list[str] | None,
    typer.Option(
        "--seat", metavar="NAME=MODEL", help="Forum and refine: add a debater (repeatable)."
    ),
]
Positions = Annotated[
    list[str] | None,
    typer.Option(
        "--position",
        metavar="'NAME: POSITION'",
        help="Moderated: add an advocate for a position (repeatable).",
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="Override a setting (repeatable)."),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Read settings from a YAML file.")
]
Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="TOKENS", help="Maximum tokens for the whole debate."),
]
MaxCost = Annotated[
    str | None,
    typer.Option("--max-cost", metavar="DOLLARS", help="Maximum cost of a debate in US dollars."),
]
Plain = Annotated[bool, typer.Option("--plain", help="Print raw Markdown instead of rendering it.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def given_budget(budget: str | None, max_cost: str | None) -> "dict[str, Given]":
    from contend.debates.settings_sources import Given  # slow to import

    given = {"budget": (budget, "--budget"), "max_cost": (max_cost, "--max-cost")}
    for value, option in given.values():
        if value is not None and not value.strip():  # an unset shell variable
            from contend.graph.errors import BadInput

            raise BadInput(f"The value of {option} is empty.")
    return {name: Given(*each) for name, each in given.items() if each[0] is not None}


def chosen_preset(name: str | None) -> "FoundPreset | None":
    from contend.debates.presets import find_preset  # slow to import

    return None if name is None else find_preset(name)


def chosen_protocol(given: str | None, preset: "FoundPreset | None") -> str:
    return given or (preset.protocol if preset else DEFAULT_PROTOCOL)


def is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def refuse_options(context: typer.Context, option: str, names: Sequence[str]) -> None:
    for each in context.command.params:
        if each.name in names and is_given(context, each.name):
            raise click.UsageError(f"{each.opts[0]} cannot be combined with {option}.")


@contextmanager
def loading_note(*, is_hidden: bool) -> Iterator[None]:
    if is_hidden or not sys.stderr.isatty():
        yield
        return
    sys.stderr.write("Loading …\r")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\x1b[2K")
        sys.stderr.flush()


def show_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
