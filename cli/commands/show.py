from typing import Annotated

import typer

from contend.cli.commands.options import DebateId, Json, Plain


def show_debate(
    debate: DebateId,
    json: Json = False,
    thinking: Annotated[
        bool, typer.Option("--thinking", help="Include the models' thinking.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Print decisions and ratings in full, not on one line.")
    ] = False,
    round_number: Annotated[
        int | None, typer.Option("--round", metavar="N", min=0, help="Print only this round.")
    ] = None,
    turn: Annotated[
        str, typer.Option(metavar="ID", help="Print only this turn, such as r1.critique.skeptic.")
    ] = "",
    plain: Plain = False,
) -> None:
    """Print a debate: its result, then the transcript."""
    from contend.cli.actions.show import ShownPart, print_debate  # slow to import

    wanted = ShownPart(round=round_number, turn=turn, thinking=thinking, full=full or thinking)
    print_debate(debate, wanted, as_json=json, is_raw=plain)
