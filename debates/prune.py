import asyncio
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from contend.debates.outputs import find_folder
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.checkpoints.outages import unsaved_folder
from contend.graph.errors import BadInput, DamagedDebate, Paused
from contend.graph.settings import data_home, outputs_home
from contend.retrieval.documents import corpus_id

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True)
class Pruned:
    debates: tuple[str, ...]
    freed_bytes: int
    is_compacted: bool
    """Whether the freed space was returned to the disk."""
    problems: tuple[str, ...] = ()
    """Messages about debates that were kept because their server could not delete them."""
    remaining: tuple[str, ...] = ()
    """Messages about debates that were deleted here but not on their server."""


def parse_age(text: str) -> timedelta:
    found = re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text.strip().lower())
    if found is None:
        raise BadInput(f"'{text}' is not an age; write it as 90d, 12w or 36h.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def delete_debates(
    records: Repository, ids: Sequence[str], *, compact: bool = False, here: bool = False
) -> Pruned:
    """Delete debates that are not running; `compact` also shrinks the database.

    With `here`, also delete unfinished debates that their server cannot delete.
    """
    deleted, problems, remaining = list[str](), list[str](), list[str]()
    files, freed = set[Path](), 0
    for each in ids:
        debate = _find(records, each)
        with suppress(BadInput):  # a process has just started to run it
            why = _delete_on_server(records, debate) if debate and debate.server else None
            if why and debate and not here and debate.status != "done":
                problems.append(f"Debate {each[:8]} was not deleted: {why}")
                continue
            remaining += [f"Debate {each[:8]} remains on its server: {why}"] if why else []
            freed += records.delete(each)
            deleted.append(each)
            freed += _delete_all([unsaved_folder(each), *_output_folder(debate)])
            files |= _shared_files(debate)
    if files:
        freed += _delete_all(files - _used_files(records, files))
    shrunk = records.compact() if deleted and compact else None
    about = tuple(problems), tuple(remaining)
    return Pruned(tuple(deleted), freed + (shrunk or 0), shrunk is not None, *about)


def _delete_on_server(records: Repository, debate: StoredDebate) -> str | None:
    from contend.debates.server_debates import delete_on_server  # slow to import

    lease = records.acquire(debate.id)
    try:
        asyncio.run(delete_on_server(debate))
    except (BadInput, Paused) as refused:
        return str(refused)
    finally:
        lease.release()
    return None


def _find(records: Repository, debate_id: str) -> StoredDebate | None:
    try:
        return records.find(debate_id, with_turns=False)
    except DamagedDebate:
        return None


def _output_folder(debate: StoredDebate | None) -> list[Path]:
    folder = debate and find_folder(outputs_home(), debate.created_at, debate.id)
    return [folder] if folder else []


def _shared_files(debate: StoredDebate | None) -> set[Path]:
    """Return the files of the debate's documents and images; other debates may share them."""
    if debate is None:
        return set()
    state, home = debate.as_state(), data_home()
    files = {home / "images" / Path(each.sha256).name for each in state.get("images", [])}
    if documents := state.get("documents"):
        corpus = corpus_id(documents)
        files |= {home / "documents" / corpus, home / "index" / "documents" / corpus}
    return files


def _used_files(records: Repository, files: set[Path]) -> set[Path]:
    """Return the files that debates still use; a damaged debate counts as using all `files`."""
    used: set[Path] = set()
    for each in records.ids():
        debate = _find(records, each)
        used |= files if debate is None else _shared_files(debate)
    return used


def _delete_all(paths: Sequence[Path] | set[Path]) -> int:
    size = 0
    for path in paths:
        parts = [path, *path.rglob("*")] if path.is_dir() else [path]
        size += sum(part.stat().st_size for part in parts if part.is_file())
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return size
