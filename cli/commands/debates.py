"""Options of `contend list`, `show`, `rate` and `export`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from contend.cli.commands.ask import Json

_Reference = Annotated[
    str, typer.Argument(metavar="ID", help="The debate's id, or the start of it.")
]


def list_debates(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many debates to list.")] = 20,
    json: Json = False,
) -> None:
    """List your debates, newest first."""
    from contend.cli.actions.debates import newest, print_list, summary
    from contend.cli.view.console import print_message, write_json  # slow to import

    debates = newest(limit)
    if json:
        write_json([summary(debate) for debate in debates])
    elif debates:
        print_list(debates)
    else:
        print_message('No debates yet. Start one with: contend ask "..."')


def show_debate(
    debate: _Reference,
    json: Json = False,
    thinking: Annotated[
        bool, typer.Option("--thinking", help="Include the models' thinking.")
    ] = False,
) -> None:
    """Print a whole debate."""
    from contend.cli import database  # slow to import
    from contend.cli.actions.debates import print_debate
    from contend.cli.view.console import write_json

    with database.existing(debate) as (_, found):
        if json:
            write_json(found.as_json())
        else:
            print_debate(found, thinking=thinking)


def rate(
    debate: _Reference,
    rating: Annotated[int, typer.Argument(metavar="RATING", help="Your rating, 1 to 10.")],
) -> None:
    """Rate the answer of a debate from 1 to 10."""
    from contend.cli import database  # slow to import
    from contend.cli.view.console import print_message
    from contend.graph.errors import BadInput

    if not 1 <= rating <= 10:
        raise BadInput(f"The rating must be between 1 and 10; you gave {rating}.")
    with database.existing(debate) as (records, found):
        if found.status != "done":
            raise BadInput(
                f"Debate {found.id[:8]} has no answer to rate yet: it is {found.status}."
            )
        records.rate(found.id, rating)
        print_message(f"Rated debate {found.id[:8]} {rating} of 10.")


def export(
    debate: _Reference,
    form: Annotated[
        Literal["json", "md", "folder", "folder-json", "folder-text"],
        typer.Option("--format", "-f", help="Output format."),
    ] = "md",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Output file, or where to create the exported folder.",
        ),
    ] = None,
    transcript: Annotated[
        bool, typer.Option("--transcript", help="Folder only: include the whole transcript.")
    ] = False,
) -> None:
    """Export a debate as one document, or as a folder of small files with an index."""
    from contend.cli import database  # slow to import
    from contend.cli.actions.debates import document, export_folder, write_document
    from contend.graph.errors import BadInput

    is_folder = form.startswith("folder")
    if transcript and not is_folder:
        raise BadInput(
            "--transcript works only with --format folder; a document always has every turn."
        )
    with database.existing(debate) as (_, found):
        if is_folder:
            export_folder(found, form, output, transcript=transcript)
        else:
            write_document(document(found, form), output)
