"""Defines `contend estimate`, which takes the options of `contend ask`."""

import inspect
from typing import Annotated, Any, get_type_hints

import click
import typer

from contend.cli.commands import options
from contend.cli.commands.ask import ask, read_request

_UNUSED_ASK_OPTIONS = {"context", "dry_run", "cassette", "follow_up", "events", "plain", "server"}
_Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print the estimate without the notes below it.")
]


def estimate(**given: Any) -> int:
    """Estimate the calls, tokens and cost of a debate, without starting it."""
    json, quiet = given["json"], given["quiet"]
    if given["question"] is None and given["request"] is None:
        raise click.MissingParameter(param_hint="'QUESTION'", param_type="argument")
    with options.loading_note(is_hidden=quiet or json):
        from contend.cli.actions.estimate import estimate_question
        from contend.cli.view.console import Output  # slow to import

    asked = read_request(given | {"dry_run": True, "server": None})
    return estimate_question(asked, Output(json, False, quiet))


_hints = get_type_hints(ask, include_extras=True) | {"quiet": _Quiet}
_options = [
    each.replace(annotation=_hints[each.name])
    for each in inspect.signature(ask).parameters.values()
    if each.name not in _UNUSED_ASK_OPTIONS
]
estimate.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    _options, return_annotation=int
)
estimate.__annotations__ = {each.name: each.annotation for each in _options}
