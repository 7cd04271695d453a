from typing import Annotated

import typer

from contend.cli.commands.options import DebateId


def delete(
    debate: DebateId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    here: Annotated[
        bool,
        typer.Option("--here", help="Delete the local copy even if deletion on the server fails."),
    ] = False,
) -> None:
    """Delete one debate: its turns, checkpoints, recorded model calls, rating and stored files.

    Forks of the debate are kept, and so are files that another debate uses.
    """
    from contend.cli.actions.delete import delete_chosen  # slow to import

    delete_chosen(debate, yes=yes, here=here)
