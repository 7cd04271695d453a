from typing import Annotated

import typer

from contend.cli.commands.options import DebateId


def rate(
    debate: DebateId,
    rating: Annotated[
        int | None, typer.Argument(metavar="RATING", help="Your rating, 1 to 10.")
    ] = None,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto",
            help="Let the judge try again if it could not score the answer during the debate.",
        ),
    ] = False,
) -> int:
    """Rate the answer of a debate from 1 to 10."""
    from contend.cli import database  # slow to import
    from contend.cli.exit_codes import OK
    from contend.cli.view.console import print_message
    from contend.debates.feedback import send_rating
    from contend.graph.errors import BadInput

    if (rating is None) != auto:
        raise BadInput("Give either a rating from 1 to 10, or --auto.")
    if rating is None:
        from contend.cli.actions.rate import rate_automatically  # needs langgraph

        return rate_automatically(debate)
    if not 1 <= rating <= 10:
        raise BadInput(f"The rating must be between 1 and 10; you gave {rating}.")
    with database.existing(debate) as (records, found):
        if found.status != "done":
            raise BadInput(
                f"Debate {found.id[:8]} has no answer to rate yet: it is {found.status}."
            )
        records.rate(found.id, rating)
        print_message(f"Rated debate {found.id[:8]} {rating} of 10.")
    send_rating(found.id, rating)
    return OK
