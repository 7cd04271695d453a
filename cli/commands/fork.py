from pathlib import Path
from typing import Annotated

import typer

from contend.cli.commands import options


def fork(  # noqa: PLR0913, PLR0917 - one parameter per option
    debate: options.DebateId,
    at: Annotated[
        str,
        typer.Option(
            metavar="ROUND[:PHASE]",
            help="Continue from the end of this round or phase, such as 2 or 2:critique; "
            "`contend history` lists them.",
        ),
    ] = "",
    assignments: options.Assignments = None,
    edit: Annotated[
        str,
        typer.Option(
            metavar="TURN",
            help="Rewrite this turn, such as r1.critique.skeptic, and rerun everything after it.",
        ),
    ] = "",
    text_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --edit: read the new text from this file instead of opening an editor.",
        ),
    ] = None,
    say: Annotated[
        str, typer.Option(metavar="TEXT", help="Add a comment for the next speakers.")
    ] = "",
    json: options.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer.")] = False,
    plain: options.Plain = False,
) -> int:
    """Start a new debate from a point in an existing one; the original stays unchanged."""
    with options.loading_note(is_hidden=quiet or json):
        from contend.cli.actions.fork import Fork, fork_and_run
        from contend.cli.view.console import Output  # slow to import
        from contend.debates.settings_sources import parse_assignments

    changes = parse_assignments(assignments or [])
    return fork_and_run(
        Fork(debate, at, changes, edit, text_file, say), Output(json, False, quiet, plain)
    )
