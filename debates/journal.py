import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from contend.debates.events import Event
from contend.debates.leases import Lease, written
from contend.debates.stored_events import (
    COLUMNS,
    EVENTS,
    StoredEvent,
    encode,
    insert_events,
    is_chunk,
    newest_event,
    read_event,
    with_sources,
)
from contend.debates.tables import debates, events, write
from contend.debates.waiting import wait_for_event
from contend.graph.errors import DatabaseUnavailable
from contend.models.failures import scrub

# The shortest time between transactions, each of which writes the new events of all debates.
GROUP_SECONDS = 0.033
# Viewers that lost their connection reconnect sooner than this; later ones need only whole turns.
_CHUNKS_KEPT = timedelta(hours=1)

# Locks the leases that are still held. Built once, because every group of events needs it.
_HELD = (
    sa.select(debates.c.lease_owner)
    .where(debates.c.id.in_(sa.bindparam("ids", expanding=True)))
    .where(debates.c.lease_owner.in_(sa.bindparam("owners", expanding=True)))
    .order_by(debates.c.id)
    .with_for_update()
)

_log = logging.getLogger("contend.debates")


@dataclass(frozen=True)
class Group:
    stored: list[StoredEvent]
    previous: int | None  # the last event that this process stored before these


@dataclass(frozen=True)
class Update:
    stored: list[StoredEvent]
    status: str


Listener = Callable[[Group], None]


@dataclass
class _Outbox:
    lease: Lease
    new: list[Event] = field(default_factory=list)
    # Chunks merged for a write; never merged again, because a failed write may have succeeded.
    merged: list[Event] = field(default_factory=list)
    last: int | None = None
    is_over: bool = False

    def merge(self) -> list[Event]:
        self.merged += merge_chunks(self.new)
        self.new = []
        return self.merged


class _WriteBatch:
    def __init__(self) -> None:
        self.write_now, self.finished = asyncio.Event(), asyncio.Event()


class Journal:
    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._outboxes: dict[str, _Outbox] = {}
        self._writing: asyncio.Task[None] | None = None
        self._current: _WriteBatch | None = None
        self._next: _WriteBatch | None = None
        self._next_write_at = 0.0
        self._listeners: dict[str, Listener] = {}

    def add(self, event: Event, lease: Lease) -> None:
        outbox = self._outboxes.setdefault(lease.owner, _Outbox(lease))
        outbox.new.append(event)
        self._schedule_batch()

    async def flush(self, lease: Lease) -> None:
        outbox = self._outboxes.get(lease.owner)
        if outbox is None or not (outbox.new or outbox.merged):
            return
        is_being_written = not outbox.new and self._current is not None
        planned = self._current if is_being_written else self._schedule_batch()
        if planned:
            planned.write_now.set()
            await planned.finished.wait()

    def pending(self, lease: Lease) -> list[Event]:
        """Return the run's unstored events, which the caller must store."""
        outbox = self._outboxes.get(lease.owner)
        return list(outbox.merge()) if outbox else []

    def confirm(self, lease: Lease, said: Sequence[Event]) -> None:
        """Clear the pending events, and notify the listener of `said`, which is already stored."""
        outbox = self._outboxes.setdefault(lease.owner, _Outbox(lease))
        outbox.new, outbox.merged = [], []
        self._announce(outbox, encode(said))

    def end(self, lease: Lease) -> None:
        """Remove the run's outbox once all its events are stored."""
        outbox = self._outboxes.get(lease.owner)
        if outbox and (outbox.new or outbox.merged):
            outbox.is_over = True
        else:
            self._outboxes.pop(lease.owner, None)
        self._notify_listener(lease.debate_id, Group([], None))

    def is_run_here(self, debate_id: str) -> bool:
        boxes = self._outboxes.values()
        return any(each.lease.debate_id == debate_id and not each.is_over for each in boxes)

    def listen(self, debate_id: str, listener: Listener) -> None:
        self._listeners[debate_id] = listener

    def stop_listening(self, debate_id: str, listener: Listener) -> None:
        if self._listeners.get(debate_id) == listener:
            del self._listeners[debate_id]

    def read(
        self, debate_id: str, after: int, limit: int | None = None, *, until: int | None = None
    ) -> list[StoredEvent]:
        return self._select(_between(debate_id, after, until), limit)

    def read_without_chunks(self, debate_id: str, after: int, until: int) -> list[StoredEvent]:
        return self._select(
            sa.and_(_between(debate_id, after, until), events.c.is_chunk.is_(False))
        )

    def _select(
        self, wanted: sa.ColumnElement[bool], limit: int | None = None
    ) -> list[StoredEvent]:
        query = EVENTS.where(wanted).order_by(events.c.seq).limit(limit)
        with self._engine.connect() as connection:
            return [read_event(row) for row in connection.execute(query)]

    def read_update(self, debate_id: str, after: int, limit: int) -> Update | None:
        new = sa.and_(events.c.debate_id == debates.c.id, events.c.seq > after)
        rows = with_sources(debates.outerjoin(events, new))
        query = sa.select(*COLUMNS, debates.c.status).select_from(rows)
        query = query.where(debates.c.id == debate_id).order_by(events.c.seq).limit(limit)
        with self._engine.connect() as connection:
            found = connection.execute(query).all()
        stored = [read_event(row) for row in found if row.seq is not None]
        return Update(stored, found[0].status) if found else None

    def last_seq(self, debate_id: str) -> int:
        newest = self.newest(debate_id)
        return newest.seq if newest else 0

    def newest(self, debate_id: str) -> StoredEvent | None:
        with self._engine.connect() as connection:
            return newest_event(connection, debate_id)

    def pending_request(self, debate_id: str) -> dict[str, Any] | None:
        """Return the request that a paused debate makes to a person, or None."""
        last = self.newest(debate_id)
        if last is None or last.name != "paused":
            return None
        asked: dict[str, Any] | None = last.as_event()["metadata"].get("ask")
        return asked

    def last_fingerprint(self, debate_id: str) -> dict[str, str] | None:
        names = events.c.name.in_(("debate_start", "resumed"))
        query = sa.select(events.c.event).where(events.c.debate_id == debate_id, names)
        with self._engine.connect() as connection:
            last = connection.execute(query.order_by(events.c.seq.desc()).limit(1)).scalar()
        about: dict[str, Any] = json.loads(last)["metadata"] if last else {}
        return about.get("run_with")

    def last_resumed(self, debate_id: str) -> int:
        mine = sa.and_(events.c.debate_id == debate_id, events.c.name == "resumed")
        with self._engine.connect() as connection:
            query = sa.select(sa.func.max(events.c.seq)).where(mine)
            return connection.execute(query).scalar() or 0

    def completed_turns(self, debate_id: str) -> set[str]:
        mine = sa.and_(events.c.debate_id == debate_id, events.c.name == "seat_complete")
        return {str(each.as_event()["metadata"]["turn"]) for each in self._select(mine)}

    def _schedule_batch(self) -> _WriteBatch:
        if self._writing is None or self._writing.done():
            self._next = _WriteBatch()
            self._writing = asyncio.create_task(self._write_batches())
        elif self._next is None:
            self._next = _WriteBatch()
        return self._next

    async def _write_batches(self) -> None:
        clock = asyncio.get_running_loop().time
        while self._next:
            # After a pause, the first event is written immediately.
            await wait_for_event(self._next_write_at - clock(), self._next.write_now)
            self._next_write_at = clock() + GROUP_SECONDS
            self._current, self._next = self._next, None
            try:
                await self._write_batch()
            finally:
                self._current.finished.set()
                self._current = None

    async def _write_batch(self) -> None:
        due = [each for each in self._outboxes.values() if each.new or each.merged]
        said = {each.lease: list(each.merge()) for each in due}
        try:
            stored = await asyncio.to_thread(self._write_all, said)
        except DatabaseUnavailable:
            return
        for outbox in due:
            outbox.merged = []
            if outbox.is_over or outbox.lease not in stored:
                self._outboxes.pop(outbox.lease.owner, None)
            self._announce(outbox, stored.get(outbox.lease, []))

    def _write_all(self, said: Mapping[Lease, list[Event]]) -> dict[Lease, list[StoredEvent]]:
        """Store all debates' events together; after an error, retry each debate separately."""
        try:
            return self._write(said)
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - the debate goes on
            if len(said) > 1:
                stored: dict[Lease, list[StoredEvent]] = {}
                for lease, each in said.items():
                    stored |= self._write_all({lease: each})
                return stored
            for lease in said:
                why = scrub(f"{type(error).__name__}: {error}")
                _log.error("Events of debate %s could not be stored: %s", lease.debate_id, why)
            return {lease: [] for lease in said}

    def _write(self, said: Mapping[Lease, list[Event]]) -> dict[Lease, list[StoredEvent]]:
        """Store and return the events of debates whose lease is still held."""
        stored = {lease: encode(said[lease]) for lease in said}
        given = {
            "ids": [lease.debate_id for lease in said],
            "owners": [lease.owner for lease in said],
        }
        with write(self._engine) as connection:
            held = set(connection.execute(_HELD, given).scalars())
            kept = {lease: stored[lease] for lease in stored if lease.owner in held}
            insert_events(connection, {lease.debate_id: kept[lease] for lease in kept})
        return kept

    def _announce(self, outbox: _Outbox, stored: list[StoredEvent]) -> None:
        previous = outbox.last
        if stored:
            outbox.last = stored[-1].seq
        self._notify_listener(outbox.lease.debate_id, Group(stored, previous))

    def _notify_listener(self, debate_id: str, group: Group) -> None:
        if listener := self._listeners.get(debate_id):
            listener(group)

    def forget_old_chunks(self) -> None:
        """Delete the chunks of debates that finished a while ago; the complete turns stay."""
        before = written(datetime.now(UTC) - _CHUNKS_KEPT)
        # Raw SQL, because SQLite uses the index on chunks only for exactly this condition.
        are_chunks = sa.text("is_chunk")
        with_chunks = sa.select(events.c.debate_id).where(are_chunks).distinct()
        done = sa.and_(debates.c.status == "done", debates.c.updated_at < before)
        query = sa.select(debates.c.id).where(done, debates.c.id.in_(with_chunks))
        with self._engine.connect() as connection:
            old = connection.execute(query).scalars().all()
        for debate_id in old:  # one by one, so that other transactions do not wait long
            with write(self._engine) as connection:
                chunks = events.delete().where(events.c.debate_id == debate_id, are_chunks)
                connection.execute(chunks)


def _between(debate_id: str, after: int, until: int | None) -> sa.ColumnElement[bool]:
    wanted = sa.and_(events.c.debate_id == debate_id, events.c.seq > after)
    return wanted if until is None else sa.and_(wanted, events.c.seq <= until)


def merge_chunks(said: Iterable[Event]) -> list[Event]:
    merged: dict[Any, Event] = {}
    whole: list[Event] = []
    for event in said:
        # An empty chunk starts a turn, possibly again.
        if not (is_chunk(event["event"]) and event["content"]):
            whole += [*merged.values(), event]
            merged = {}
            continue
        about = event["metadata"]
        turn = event["event"], event["round"], about.get("seat"), about.get("phase")
        before = merged.pop(turn, None)
        content = before["content"] + event["content"] if before else event["content"]
        merged[turn] = {**event, "content": content}
    return [*whole, *merged.values()]
