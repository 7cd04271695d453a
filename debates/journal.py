"""Stores the events of debates in small groups, for viewers in any process to read."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from contend.debates.events import Event
from contend.debates.leases import Lease, written
from contend.debates.tables import debates, events, write
from contend.debates.waiting import wait_for_event
from contend.graph.errors import DatabaseUnavailable

# One transaction writes what all debates of this process said in this time.
GROUP_SECONDS = 0.033
# Viewers that lost their connection return sooner; later the whole turns are enough.
_CHUNKS_KEPT = timedelta(hours=1)


@dataclass(frozen=True)
class StoredEvent:
    seq: int
    name: str
    text: str  # the event as JSON

    @property
    def is_chunk(self) -> bool:
        return _is_chunk(self.name)

    def as_event(self) -> Event:
        event: Event = json.loads(self.text)
        return event


@dataclass(frozen=True)
class Group:
    """Events of one debate that were stored together."""

    stored: list[StoredEvent]
    previous: int | None  # the last event that this process stored before them


Listener = Callable[[Group], None]


class Journal:
    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._pending: list[tuple[Event, Lease]] = []
        self._writing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._listeners: dict[str, Listener] = {}
        self._last: dict[str, int] = {}

    def add(self, event: Event, lease: Lease) -> None:
        self._pending.append((event, lease))
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_pending())

    async def flush(self) -> None:
        """Store what is pending; it stays pending while the database is unavailable."""
        self._hurry.set()
        try:
            if self._writing:
                await asyncio.shield(self._writing)
        finally:
            self._hurry.clear()

    def listen(self, debate_id: str, listener: Listener) -> None:
        """Call the listener after each group of a debate that this process runs."""
        self._listeners[debate_id] = listener

    def stop_listening(self, debate_id: str) -> None:
        self._listeners.pop(debate_id, None)

    def read(self, debate_id: str, after: int, limit: int, *, chunks: bool) -> list[StoredEvent]:
        wanted = sa.and_(events.c.debate_id == debate_id, events.c.seq > after)
        if not chunks:
            wanted = sa.and_(wanted, events.c.is_chunk.is_(False))
        query = sa.select(events.c.seq, events.c.name, events.c.event).where(wanted)
        with self._engine.connect() as connection:
            rows = connection.execute(query.order_by(events.c.seq).limit(limit)).all()
        return [StoredEvent(*row) for row in rows]

    def last_seq(self, debate_id: str) -> int:
        """Return the number of the newest event; 0 if none is stored."""
        newest = sa.select(sa.func.max(events.c.seq)).where(events.c.debate_id == debate_id)
        with self._engine.connect() as connection:
            return connection.execute(newest).scalar() or 0

    def newest(self, debate_id: str) -> StoredEvent | None:
        last = self.last_seq(debate_id)
        return next(iter(self.read(debate_id, last - 1, 1, chunks=True)), None)

    def completed_turns(self, debate_id: str) -> set[str]:
        """Return the ids of the turns whose end viewers have seen."""
        mine = sa.and_(events.c.debate_id == debate_id, events.c.name == "seat_complete")
        with self._engine.connect() as connection:
            stored = connection.execute(sa.select(events.c.event).where(mine)).scalars().all()
        return {str(json.loads(text)["metadata"]["turn"]) for text in stored}

    async def _write_pending(self) -> None:
        while self._pending:
            await wait_for_event(GROUP_SECONDS, self._hurry)
            group, self._pending = self._pending, []
            try:
                stored = await asyncio.to_thread(self._write, group)
            except DatabaseUnavailable:
                self._pending = group + self._pending
                return
            self._announce(stored)

    def _write(self, group: Sequence[tuple[Event, Lease]]) -> dict[str, list[StoredEvent]]:
        """Store the events of debates whose lease is still held."""
        said: dict[str, list[Event]] = defaultdict(list)
        for event, _ in group:
            said[event["debate_id"]].append(event)
        owners = {lease.owner for _, lease in group}
        ours = sa.select(debates.c.id).where(debates.c.lease_owner.in_(owners))
        with write(self._engine) as connection:
            held = set(connection.execute(ours).scalars())
            stored = {each: _stored(said[each]) for each in said if each in held}
            rows = [_row(debate_id, each) for debate_id in stored for each in stored[debate_id]]
            if rows:
                connection.execute(events.insert(), rows)
        return stored

    def _announce(self, stored: dict[str, list[StoredEvent]]) -> None:
        for debate_id, group in stored.items():
            previous = self._last.get(debate_id)
            self._last[debate_id] = group[-1].seq
            if listener := self._listeners.get(debate_id):
                listener(Group(group, previous))


def forget_old_chunks(connection: sa.Connection) -> None:
    """Delete the chunks of debates done some time ago: their turns are stored whole."""
    before = written(datetime.now(UTC) - _CHUNKS_KEPT)
    done = sa.and_(debates.c.status == "done", debates.c.updated_at < before)
    old = events.c.debate_id.in_(sa.select(debates.c.id).where(done))
    connection.execute(events.delete().where(events.c.is_chunk.is_(True), old))


def merge_chunks(said: Iterable[Event]) -> list[Event]:
    """Join the chunks of a turn that nothing but other chunks separates."""
    merged: dict[Any, Event] = {}
    whole: list[Event] = []
    for event in said:
        if not _is_chunk(event["event"]):
            whole += [*merged.values(), event]
            merged = {}
            continue
        about = event["metadata"]
        turn = event["event"], event["round"], about.get("seat"), about.get("phase")
        before = merged.pop(turn, None)
        content = before["content"] + event["content"] if before else event["content"]
        merged[turn] = {**event, "content": content}
    return [*whole, *merged.values()]


def _stored(said: Iterable[Event]) -> list[StoredEvent]:
    return [
        StoredEvent(each["seq"], each["event"], json.dumps(each, separators=(",", ":")))
        for each in merge_chunks(said)
    ]


def _row(debate_id: str, stored: StoredEvent) -> dict[str, Any]:
    about = {"seq": stored.seq, "name": stored.name, "is_chunk": stored.is_chunk}
    return {"debate_id": debate_id, **about, "event": stored.text}


def _is_chunk(name: str) -> bool:
    return name.endswith("_chunk")
