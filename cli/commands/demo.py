from typing import Annotated

import typer

from contend.cli.commands.options import Plain


def demo(
    speed: Annotated[
        float,
        typer.Option(metavar="N", min=0.01, help="Playback speed: 1 is the original speed."),
    ] = 10.0,
    plain: Plain = False,
) -> int:
    """Play a recorded debate that ships with Contend; no model is needed."""
    from contend.cli.actions.demo import play_demo  # slow to import

    return play_demo(speed, is_raw=plain)
