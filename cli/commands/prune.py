from typing import Annotated

import typer

from contend.cli.commands.options import Json


def prune(
    older: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Delete debates unchanged for this long, such as 90d, 12w or 36h.",
        ),
    ] = None,
    keep_rated: Annotated[
        bool, typer.Option("--keep-rated", help="Keep debates you rated or resolved.")
    ] = False,
    damaged: Annotated[
        bool, typer.Option("--damaged", help="Delete debates that cannot be read.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the ids without deleting anything.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    json: Json = False,
) -> None:
    """Delete old or damaged debates, with their turns, checkpoints, ratings and stored files.

    Files that another debate uses are kept. Forks are kept unless they are old or damaged too.
    """
    from contend.cli.actions.prune import Selection, prune_debates  # slow to import

    selection = Selection(older, keep_rated, damaged)
    prune_debates(selection, dry_run=dry_run, yes=yes, as_json=json)
