from typing import Annotated

import typer

from contend.cli.commands.options import Json


def list_debates(
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="How many debates to list.")
    ] = 20,
    search: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="List only debates with this text in the question, title or answer.",
        ),
    ] = "",
    json: Json = False,
) -> None:
    """List your debates, newest first."""
    from contend.cli.actions.list import print_list  # slow to import

    print_list(limit, search, as_json=json)
