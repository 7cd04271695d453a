from contend.cli import database
from contend.cli.view.console import print_message
from contend.graph.errors import BadInput
from contend.graph.settings.seats import tidy_text

_LONGEST = 200


def rename_debate(reference: str, title: str) -> None:
    try:
        tidy = tidy_text(title) if title.strip() else None
    except ValueError as error:
        raise BadInput(f"The title {error}.") from error
    if tidy and len(tidy) > _LONGEST:
        raise BadInput(f"The title has {len(tidy)} characters; the limit is {_LONGEST}.")
    with database.existing(reference) as (records, debate):
        records.rename(debate.id, tidy)
        if tidy:
            print_message(f"Debate {debate.id[:8]} is now called: {tidy}")
        else:
            print_message(f"Debate {debate.id[:8]} is listed by its question again.")
