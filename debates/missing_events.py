from collections.abc import Sequence

import sqlalchemy as sa

from contend.debates.events import END_EVENTS, Event, end_event, events_of_record, number_event
from contend.debates.leases import is_held
from contend.debates.loading import load_debate
from contend.debates.stored_events import encode, insert_events, newest_event
from contend.debates.tables import debates
from contend.graph.events import NodeEvent


def add_missing_events(connection: sa.Connection, debate_id: str) -> bool:
    """Store missing events, unless the debate is running; return whether any were stored."""
    lease = debates.c.lease_owner, debates.c.lease_holder, debates.c.lease_until
    query = sa.select(debates.c.status, debates.c.last_seq, *lease).with_for_update()
    row = connection.execute(query.where(debates.c.id == debate_id)).first()
    if row is None or is_held(connection, row):
        return False
    newest, end = newest_event(connection, debate_id), END_EVENTS.get(row.status)
    if newest is None and (row.last_seq or end):  # not a new debate
        debate = load_debate(connection, debate_id, with_turns=True)
        _insert(connection, debate_id, events_of_record(debate))
        return True
    if newest and end and newest.name != end:
        debate = load_debate(connection, debate_id, with_turns=True)
        append_event(connection, debate_id, end_event(debate))
        return True
    return False


def append_event(connection: sa.Connection, debate_id: str, said: NodeEvent) -> None:
    newest = newest_event(connection, debate_id)
    if newest:
        query = sa.select(debates.c.last_seq).where(debates.c.id == debate_id)
        last = max(connection.execute(query).scalar_one(), newest.seq)
        _insert(connection, debate_id, [number_event(debate_id, last + 1, said)])


def _insert(connection: sa.Connection, debate_id: str, said: Sequence[Event]) -> None:
    insert_events(connection, {debate_id: encode(said)})
    last = said[-1]["seq"]
    lagging = sa.and_(debates.c.id == debate_id, debates.c.last_seq < last)
    connection.execute(debates.update().where(lagging).values(last_seq=last))
