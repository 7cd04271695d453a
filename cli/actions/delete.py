import sys

from contend.cli import database
from contend.cli.view.console import print_message
from contend.cli.view.format import one_line
from contend.debates.prune import delete_debates
from contend.graph.errors import BadInput


def delete_chosen(reference: str, *, yes: bool, here: bool = False) -> None:
    with database.existing(reference) as (records, debate):
        name = f"debate {debate.id[:8]} ({one_line(debate.question, 60)})"
        if debate.status == "running":
            raise BadInput(f"Debate {debate.id[:8]} is running. Stop it before you delete it.")
        if not yes and not _confirmed(name):
            print_message("Nothing was deleted.")
            return
        pruned = delete_debates(records, [debate.id], here=here)
        if pruned.problems:
            why = " ".join(pruned.problems).removesuffix(".")
            raise BadInput(f"{why}. To delete only its record here, add --here.")
        for each in pruned.remaining:
            print_message(each, "warning")
        print_message(f"Deleted {name}." if pruned.debates else "Nothing was deleted.")


def _confirmed(name: str) -> bool:
    if not sys.stdin.isatty():
        raise BadInput("Deleting a debate needs a confirmation: add --yes.")
    sys.stderr.write(f"Delete {name} for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
