"""Options of `contend estimate`: those of `contend ask`."""

import inspect
from typing import Any, get_type_hints

import click

from contend.cli.commands import options
from contend.cli.commands.ask import ask, read_request

_NOT_HERE = ("context", "dry_run", "cassette", "follow_up", "events", "plain")


def estimate(**given: Any) -> int:
    """Estimate the calls, tokens and cost of a debate, without starting it."""
    json, quiet = given["json"], given["quiet"]
    if given["question"] is None and given["request"] is None:
        raise click.MissingParameter(param_hint="'QUESTION'", param_type="argument")
    with options.loading_note(is_hidden=quiet or json):
        from contend.cli.actions.estimate import estimate_question
        from contend.cli.view.console import Output  # slow to import

    asked = read_request(given | {"dry_run": True})
    return estimate_question(asked, Output(json, False, quiet))


_options = inspect.signature(ask).parameters.values()
estimate.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [each for each in _options if each.name not in _NOT_HERE], return_annotation=int
)
estimate.__annotations__ = {
    name: hint
    for name, hint in get_type_hints(ask, include_extras=True).items()
    if name not in _NOT_HERE
}
