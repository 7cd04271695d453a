import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from contend.debates.dialects import insert
from contend.debates.events import Event
from contend.debates.tables import debates, events
from contend.graph.errors import BadInput

# The fields of a shared event that differ in the fork.
_FORK_FIELDS = ("debate_id", "seq", "ts")


class EventSource(NamedTuple):
    debate_id: str
    seq: int


@dataclass(frozen=True)
class StoredEvent:
    seq: int
    name: str
    text: str  # the event as JSON; of a new shared event, only the fields that differ
    source: EventSource | None = None

    @property
    def is_chunk(self) -> bool:
        return is_chunk(self.name)

    def as_event(self) -> Event:
        event: Event = json.loads(self.text)
        return event


_sources = events.alias("sources")
COLUMNS = (
    *(events.c[name] for name in ("debate_id", "seq", "name", "event", "source_id", "source_seq")),
    _sources.c.event.label("shared"),
)


def with_sources(rows: sa.FromClause) -> sa.Join:
    """Join event rows with the source events whose content they share, as `read_event` requires."""
    is_source = sa.and_(
        _sources.c.debate_id == events.c.source_id, _sources.c.seq == events.c.source_seq
    )
    return rows.outerjoin(_sources, is_source)


@cache
def _insert(dialect: str) -> Any:
    return insert(dialect, events).on_conflict_do_nothing()


EVENTS = sa.select(*COLUMNS).select_from(with_sources(events))


def read_event(row: Any) -> StoredEvent:
    if row.source_id is None:
        return StoredEvent(row.seq, row.name, row.event)
    text = _to_json(json.loads(row.shared) | json.loads(row.event))
    return StoredEvent(row.seq, row.name, text, EventSource(row.source_id, row.source_seq))


def newest_event(connection: sa.Connection, debate_id: str) -> StoredEvent | None:
    mine = EVENTS.where(events.c.debate_id == debate_id)
    row = connection.execute(mine.order_by(events.c.seq.desc()).limit(1)).first()
    return read_event(row) if row else None


def insert_events(connection: sa.Connection, stored: Mapping[str, Sequence[StoredEvent]]) -> None:
    rows = [_row(debate_id, each) for debate_id in stored for each in stored[debate_id]]
    if rows:
        connection.execute(_insert(connection.dialect.name), rows)


def lock_sources(connection: sa.Connection, stored: Iterable[StoredEvent]) -> None:
    """Lock the debates whose events the fork shares; raise BadInput if one of them was deleted."""
    ids = {each.source.debate_id for each in stored if each.source}
    query = sa.select(debates.c.id).where(debates.c.id.in_(ids)).order_by(debates.c.id)
    if ids - set(connection.execute(query.with_for_update(read=True)).scalars()):
        raise BadInput("A debate that the fork shares turns with was just deleted. Try again.")


def reassign_shared_events(connection: sa.Connection, debate_id: str) -> None:
    """Before a debate is deleted, move each event that forks share into one of those forks."""
    # A write locks the debate in SQLite too, so that no fork of it appears in the meantime.
    connection.execute(debates.update().where(debates.c.id == debate_id).values(id=debate_id))
    query = EVENTS.where(events.c.source_id == debate_id)
    new_sources: dict[int, EventSource] = {}
    for row in connection.execute(query.order_by(events.c.debate_id)).all():
        place = EventSource(row.debate_id, row.seq)
        new_source = new_sources.setdefault(row.source_seq, place)
        values: dict[str, Any] = {"source_id": new_source.debate_id, "source_seq": new_source.seq}
        if new_source == place:
            values = {"source_id": None, "source_seq": None, "event": read_event(row).text}
        is_here = sa.and_(events.c.debate_id == place.debate_id, events.c.seq == place.seq)
        connection.execute(events.update().where(is_here).values(values))


def encode(said: Iterable[Event]) -> list[StoredEvent]:
    return [encode_event(each) for each in said]


def encode_event(event: Event) -> StoredEvent:
    return StoredEvent(event["seq"], event["event"], _to_json(event))


def share_event(event: Event, source: EventSource) -> StoredEvent:
    """Encode a fork's event without the content that it shares with the source event."""
    own: Any = event
    text = _to_json({name: own[name] for name in _FORK_FIELDS})
    return StoredEvent(event["seq"], event["event"], text, source)


def is_chunk(name: str) -> bool:
    return name.endswith("_chunk")


def _row(debate_id: str, stored: StoredEvent) -> dict[str, Any]:
    source_id, source_seq = stored.source or (None, None)
    return {
        "debate_id": debate_id,
        "seq": stored.seq,
        "name": stored.name,
        "is_chunk": stored.is_chunk,
        "event": stored.text,
        "source_id": source_id,
        "source_seq": source_seq,
    }


def _to_json(event: Mapping[str, Any]) -> str:
    return json.dumps(event, separators=(",", ":"))
