from typing import Annotated

import typer

from contend.cli.commands.options import Json
from contend.cli.completion import complete_debate

_First = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The first debate's id, or a unique prefix of it.",
        autocompletion=complete_debate,
    ),
]
_Second = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="The second debate's id, or a unique prefix of it.",
        autocompletion=complete_debate,
    ),
]


def diff(first: _First, second: _Second, json: Json = False) -> None:
    """Show where two debates diverge, and how each ended."""
    from contend.cli.actions.diff import print_comparison  # slow to import

    print_comparison(first, second, as_json=json)
