"""Options of `contend show`."""

from typing import Annotated

import typer

from contend.cli.commands.options import DebateId, Json, Plain


def show_debate(
    debate: DebateId,
    json: Json = False,
    thinking: Annotated[
        bool, typer.Option("--thinking", help="Include the models' thinking.")
    ] = False,
    plain: Plain = False,
) -> None:
    """Print a whole debate."""
    from contend.cli.actions.show import print_debate  # slow to import

    print_debate(debate, thinking=thinking, as_json=json, is_raw=plain)
