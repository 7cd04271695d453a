from pathlib import Path
from typing import Annotated

import typer

from contend.cli.completion import complete_debate
from contend.debates.exports.formats import EXPORT_FORMATS

_FORMATS = "; ".join(f"{name}: {each.description}" for name, each in EXPORT_FORMATS.items())


def export(
    debate: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="The debate's id, or a unique prefix of it; omit it for training data.",
            autocompletion=complete_debate,
        ),
    ] = None,
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
            help="File to write (default: stdout), or folder to create.",
        ),
    ] = None,
    transcript: Annotated[
        bool,
        typer.Option(
            "--transcript", help="With a folder format: also write one file with all turns."
        ),
    ] = False,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score",
            metavar="N",
            min=0,
            max=10,
            help="Training data: minimum score or rating of a debate (default: 8).",
        ),
    ] = None,
) -> None:
    """Export a debate as one document, or as a folder of small files with an index.

    With --format sft or dpo, export training data from all debates, with a dataset card.
    """
    from contend.cli.actions.export import export_debate, export_training_data, find_format

    if find_format(form).is_training_data:
        export_training_data(debate, form, output, min_score, transcript=transcript)
    else:
        export_debate(debate, form, output, min_score, transcript=transcript)
