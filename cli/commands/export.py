"""Options of `contend export`."""

from pathlib import Path
from typing import Annotated

import typer

from contend.cli.commands.options import DebateId
from contend.debates.exports.formats import EXPORT_FORMATS

_FORMATS = "; ".join(f"{name}: {each.description}" for name, each in EXPORT_FORMATS.items())


def export(
    debate: DebateId,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help=f"Output format. {_FORMATS}.",
            autocompletion=lambda: list(EXPORT_FORMATS),
        ),
    ] = "md",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="File to write (default: stdout), or where to create the folder.",
        ),
    ] = None,
    transcript: Annotated[
        bool,
        typer.Option(
            "--transcript", help="With a folder format: also write one file with all turns."
        ),
    ] = False,
) -> None:
    """Export a debate as one document, or as a folder of small files with an index."""
    from contend.cli.actions.export import export_debate  # slow to import

    export_debate(debate, form, output, transcript=transcript)
