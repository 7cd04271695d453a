import sys
from dataclasses import dataclass
from datetime import UTC, datetime

from contend.cli import database
from contend.cli.view.console import print_message, write_json
from contend.cli.view.format import counted
from contend.debates.prune import Pruned, delete_debates, parse_age
from contend.debates.repository import Repository
from contend.graph.checkpoints.location import is_on_server
from contend.graph.errors import BadInput


@dataclass(frozen=True)
class Selection:
    older: str | None
    keep_rated: bool
    damaged: bool

    def find(self, records: Repository) -> list[str]:
        found = records.damaged() if self.damaged else []
        if self.older is not None:
            before = datetime.now(UTC) - parse_age(self.older)
            found += records.untouched_since(before, keep_rated=self.keep_rated)
        return list(dict.fromkeys(found))


def prune_debates(selection: Selection, *, dry_run: bool, yes: bool, as_json: bool) -> None:
    if selection.older is None and not selection.damaged:
        raise BadInput("Say what to delete: --older 90d, or --damaged.")
    if selection.older is not None:
        parse_age(selection.older)
    if not (yes or dry_run or sys.stdin.isatty()):
        raise BadInput("Deleting debates needs a confirmation: add --yes, or try --dry-run first.")
    pruned = Pruned((), 0, is_compacted=True)
    if not database.is_empty():
        with database.records() as records:
            ids = selection.find(records)
            if dry_run:
                pruned = Pruned(tuple(ids), 0, is_compacted=True)
            elif yes or (ids and _confirmed(len(ids))):
                records.journal.forget_old_chunks()
                pruned = delete_debates(records, ids, compact=True) if ids else pruned
    for problem in (*pruned.problems, *pruned.remaining):
        print_message(problem, style="warning")
    if as_json:
        about = {"debates": list(pruned.debates), "dry_run": dry_run}
        write_json(about | {"freed_bytes": pruned.freed_bytes})
        return
    if dry_run:
        sys.stdout.write("".join(f"{each}\n" for each in pruned.debates))
    print_message(_summary(pruned, dry_run=dry_run))


def _confirmed(count: int) -> bool:
    sys.stderr.write(f"Delete {counted(count, 'debate')} for good? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _summary(pruned: Pruned, *, dry_run: bool) -> str:
    count = counted(len(pruned.debates), "debate")
    if dry_run:
        return f"{count} would be deleted."
    if not pruned.debates:
        return "No debate was deleted."
    freed = f"Deleted {count}, {pruned.freed_bytes / 1e6:.1f} MB."
    if pruned.is_compacted:
        return freed
    if is_on_server():
        return f"{freed} The database keeps the space for new debates."
    why = "because another program is using the file"
    return f"{freed} The database file keeps the space for new debates, {why}."
