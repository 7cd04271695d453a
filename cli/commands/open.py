from typing import Annotated

import typer

from contend.cli.commands.options import DebateId


def open_debate(
    debate: DebateId,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Print the address without opening a browser.")
    ] = False,
) -> None:
    """Open a debate in the browser.

    Opens its web page if `contend serve` is running, otherwise an HTML file.
    """
    from contend.cli.actions.open import show_in_browser  # slow to import

    show_in_browser(debate, open_page=not no_open)
