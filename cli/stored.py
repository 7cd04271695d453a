"""`contend list`, `show`, `rate` and `export`: debates that are already kept."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.ask import Json
from cli.exits import OK

_Reference = Annotated[str, typer.Argument(metavar="ID", help="The debate's id or its beginning.")]


def list_debates(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many to show.")] = 20,
    json: Json = False,
) -> int:
    """List the debates kept here, the newest first."""
    from cli.consoles import tell, write_json  # --help must not wait for it
    from cli.showing import newest, print_list, summary

    debates = newest(limit)
    if json:
        write_json([summary(debate) for debate in debates])
    elif debates:
        print_list(debates)
    else:
        tell('There are no debates yet. Begin with: contend ask "..."')
    return OK


def show(
    debate: _Reference,
    json: Json = False,
    thinking: Annotated[
        bool, typer.Option("--thinking", help="Include what the models thought to themselves.")
    ] = False,
) -> int:
    """Show a debate from its first round to its answer."""
    from cli import data  # --help must not wait for it
    from cli.consoles import write_json
    from cli.showing import print_debate

    with data.existing(debate) as (_, found):
        if json:
            write_json(found.as_json())
        else:
            print_debate(found, thinking=thinking)
    return OK


def rate(
    debate: _Reference,
    rating: Annotated[int, typer.Argument(metavar="RATING", help="Your rating, 1 to 10.")],
) -> int:
    """Rate the answer of a debate, from 1 to 10."""
    from cli import data  # --help must not wait for it
    from cli.consoles import tell
    from graph.errors import BadInput

    if not 1 <= rating <= 10:
        raise BadInput(f"The rating must be between 1 and 10, not {rating}.")
    with data.existing(debate) as (records, found):
        if found.status != "done":
            raise BadInput(f"Debate {found.id[:8]} is {found.status}; it has no answer to rate.")
        records.rate(found.id, rating)
        tell(f"Rated debate {found.id[:8]} with {rating} of 10.")
    return OK


def export(
    debate: _Reference,
    form: Annotated[
        Literal["json", "md"], typer.Option("--format", "-f", help="The form of the document.")
    ] = "md",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it to a file.")
    ] = None,
) -> int:
    """Write a debate as one document."""
    from cli import data  # --help must not wait for it
    from cli.showing import document, write_document

    with data.existing(debate) as (_, found):
        write_document(document(found, form), output)
    return OK
