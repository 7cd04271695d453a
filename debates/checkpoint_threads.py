"""Searches the checkpoint tables for threads that other programs ran or copied."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from contend.debates.family import Origin, write_origin
from contend.debates.leases import is_held, written
from contend.debates.record import RAN_ON, dump_state, settings_in
from contend.debates.stored_turns import write_turns
from contend.debates.tables import debates, forks, write
from contend.graph.record import Status
from contend.graph.settings import SETTINGS
from contend.graph.state import DebateState

SEEN_CHECKPOINT = "seen_checkpoint"
"""Internal setting: the newest checkpoint read so far of another program's thread."""

_checkpoints = sa.table(
    "checkpoints", *map(sa.column, ("thread_id", "checkpoint_ns", "checkpoint_id"))
)
_rows = _checkpoints.c
_LEASE = (debates.c.lease_owner, debates.c.lease_holder, debates.c.lease_until)
_LONGEST_ID = 36
_FIRST_STEP_WITH_SEATS = 1

# Skips from one thread to the next, because reading every checkpoint is slow.
_NEWEST = sa.text(
    "WITH RECURSIVE threads(id) AS ("
    " SELECT min(thread_id) FROM checkpoints"
    " UNION ALL"
    " SELECT (SELECT min(thread_id) FROM checkpoints WHERE thread_id > threads.id)"
    " FROM threads WHERE id IS NOT NULL"
    ") SELECT newest.thread_id, newest.checkpoint_id, newest.metadata"
    " FROM threads JOIN checkpoints AS newest"
    " ON newest.thread_id = threads.id AND newest.checkpoint_ns = '' AND newest.checkpoint_id ="
    " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = id AND checkpoint_ns = '')"
    " WHERE length(id) <= :longest"
    " AND (id IN :seen OR id NOT IN (SELECT debates.id FROM debates))"
).bindparams(sa.bindparam("seen", type_=sa.String, expanding=True))


@dataclass(frozen=True)
class UnreadThread:
    id: str
    protocol: str
    checkpoint: str
    ran_on: str

    def mark(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, RAN_ON: self.ran_on, SEEN_CHECKPOINT: self.checkpoint}


class CheckpointThreads:
    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._unreadable: dict[str, str] = {}

    def unread(self) -> list[UnreadThread]:
        try:
            return self._find_unread()
        except sa.exc.DatabaseError:  # a command that needs the damaged data reports it
            return []

    def _find_unread(self) -> list[UnreadThread]:
        with self._engine.connect() as connection:
            if not sa.inspect(connection).has_table(_checkpoints.name):
                return []
            seen = _seen_checkpoints(connection)
            rows = connection.execute(_NEWEST, {"longest": _LONGEST_ID, "seen": [*seen]}).all()
        found = [each for row in rows if (each := _read_thread(row))]
        return [
            each
            for each in found
            if each.checkpoint not in (seen.get(each.id), self._unreadable.get(each.id))
        ]

    def skip_unreadable(self, thread: UnreadThread) -> None:
        """Leave the thread out of `unread` until it has a newer checkpoint."""
        self._unreadable[thread.id] = thread.checkpoint

    def first_checkpoint(self, thread: str) -> str | None:
        with self._engine.connect() as connection:
            first = sa.select(sa.func.min(_rows.checkpoint_id)).where(_is_of(thread))
            return connection.execute(first).scalar()

    def find_original(self, thread: str) -> tuple[str, frozenset[str]] | None:
        """Return the debate that a thread was copied from and the shared checkpoints, or None."""
        first = self.first_checkpoint(thread)
        copied = sa.and_(_rows.checkpoint_id == first, _rows.thread_id != thread)
        others = sa.select(debates.c.id).where(debates.c.id.in_(_threads_with(copied)))
        with self._engine.connect() as connection:
            ids = connection.execute(others.order_by(debates.c.created_at)).scalars().all()
            mine = _ids(connection, thread)
            shared = {each: mine & _ids(connection, each) for each in ids}
        # A copy shares the most checkpoints with the thread it was made from.
        nearest = max(shared, key=lambda each: len(shared[each]), default=None)
        return (nearest, shared[nearest]) if nearest else None

    def write_record(
        self, thread: UnreadThread, begun: datetime, status: Status, state: DebateState
    ) -> None:
        """Update a thread's record, unless a Contend process holds the lease."""
        # Do not take the lease: a server that starts to run the thread would be refused.
        mine = debates.c.id == thread.id
        values = {
            "status": status,
            "state": dump_state(state),
            "settings": thread.mark(settings_in(state, thread.protocol)),
            "created_at": written(begun),
            "updated_at": written(datetime.now(UTC)),
        }
        with write(self._engine) as connection:
            row = connection.execute(sa.select(*_LEASE).where(mine).with_for_update()).first()
            if row and not is_held(connection, row):
                connection.execute(debates.update().where(mine).values(**values))
                write_turns(connection, thread.id, state.get("turns", []), 0)

    def write_origin(self, thread: str, origin: Origin) -> None:
        known = sa.select(forks.c.debate_id).where(forks.c.debate_id == thread)
        with write(self._engine) as connection:
            if connection.execute(known).first() is None:
                write_origin(connection, thread, origin)


def _is_of(thread: str) -> sa.ColumnElement[bool]:
    return sa.and_(_rows.thread_id == thread, _rows.checkpoint_ns == "")


def _threads_with(condition: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(_rows.thread_id).where(condition)


def _ids(connection: sa.Connection, thread: str) -> frozenset[str]:
    query = sa.select(_rows.checkpoint_id).where(_is_of(thread))
    return frozenset(connection.execute(query).scalars())


def _seen_checkpoints(connection: sa.Connection) -> dict[str, str]:
    settings = sa.cast(debates.c.settings, sa.Text)
    marked = settings.like(f'%"{SEEN_CHECKPOINT}"%')
    query = sa.select(debates.c.id, settings).where(debates.c.status != "done", marked)
    return {each: json.loads(about)[SEEN_CHECKPOINT] for each, about in connection.execute(query)}


def _read_thread(row: sa.Row[Any]) -> UnreadThread | None:
    about = row.metadata if isinstance(row.metadata, dict) else json.loads(row.metadata)
    if about.get("graph_id") not in SETTINGS or about.get("step", -1) < _FIRST_STEP_WITH_SEATS:
        return None
    place = f"LangGraph server {about.get('langgraph_api_url') or ''}".strip()
    return UnreadThread(row.thread_id, about["graph_id"], row.checkpoint_id, place)
