"""Options of `contend replay`."""

from typing import Annotated

import typer

from contend.cli.commands.options import DebateId, Plain


def replay(
    debate: DebateId,
    speed: Annotated[
        float,
        typer.Option(
            metavar="N",
            min=0.01,
            help="Playback speed: 2 plays it at twice the original speed.",
        ),
    ] = 1.0,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Run the debate again with the recorded model replies; exit with 5 if anything "
            "differs.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="With --strict: print JSON.")] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Print one JSON event per line.")
    ] = False,
    plain: Plain = False,
) -> int:
    """Play a debate back, without calling any model."""
    from contend.cli.actions.replay import check_path, play  # slow to import

    if strict:
        return check_path(debate, as_json=json)
    return play(debate, speed, as_events=events or json, is_raw=plain)
