from typing import Annotated

import typer

from contend.cli.commands.options import DebateId


def rename(
    debate: DebateId,
    title: Annotated[
        str, typer.Argument(metavar="TITLE", help="The new title; '' removes the title.")
    ],
) -> None:
    """Give a debate a title.

    The title replaces the question in lists, on the web page and in exports.
    """
    from contend.cli.actions.rename import rename_debate  # slow to import

    rename_debate(debate, title)
