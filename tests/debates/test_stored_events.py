"""Events shared by forks are stored once and outlive the parent debate."""

from collections.abc import Iterator, Sequence

import pytest
import sqlalchemy as sa

from contend.debates import tables
from contend.debates.events import Announcer, Event
from contend.debates.family import Origin, SharedPart
from contend.debates.prune import delete_debates
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.stored_events import (
    EventSource,
    StoredEvent,
    encode,
    insert_events,
    share_event,
)
from contend.graph.errors import BadInput

PARENT, FIRST, SECOND = ("0" * 36, "1" * 36, "2" * 36)
TEXT = "Because the cost is small. " * 20


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    opened = open_repository()
    _start(opened, PARENT)
    said: list[Event] = []
    Announcer(PARENT, said.append).say("seat_complete", 1, TEXT, seat="ann", turn="r1.ann")
    with tables.write(opened._engine) as connection:
        insert_events(connection, {PARENT: encode(said)})
    yield opened
    opened.close()


def _start(records: Repository, debate_id: str, events: Sequence[StoredEvent] = ()) -> None:
    shared = SharedPart(Origin(PARENT, 1, "propose"), list(events)) if events else None
    state = {"question": "Why?", "seats": []}
    records.start(debate_id, "forum", state, {}, demonstration=False, shared=shared)  # type: ignore[arg-type]


def _fork(records: Repository, debate_id: str) -> None:
    (whole,) = records.journal.read(PARENT, 0)
    event: Event = {**whole.as_event(), "debate_id": debate_id, "seq": 2, "ts": f"at {debate_id}"}
    _start(records, debate_id, [share_event(event, EventSource(PARENT, 1))])


def _stored_bytes(records: Repository) -> int:
    with records._engine.connect() as connection:
        size = sa.func.sum(sa.func.length(tables.events.c.event))
        return int(connection.execute(sa.select(size)).scalar_one())


def _is_whole(records: Repository, debate_id: str) -> bool:
    (before,) = records.journal.read(debate_id, 0)
    event = before.as_event()
    assert (event["debate_id"], event["seq"]) == (debate_id, 2)
    assert event["ts"] == f"at {debate_id}"
    update = records.journal.read_update(debate_id, 0, 10)
    assert update
    assert update.stored == [before]
    assert records.journal.newest(debate_id) == before
    assert records.journal.completed_turns(debate_id) == {"r1.ann"}
    return event["content"] == TEXT and event["metadata"]["seat"] == "ann"


def test_a_shared_event_is_stored_once_and_read_in_full(records: Repository) -> None:
    before = _stored_bytes(records)
    _fork(records, FIRST)
    assert _is_whole(records, FIRST)
    assert _stored_bytes(records) - before < len(TEXT) / 2


def test_forks_keep_one_copy_of_the_events_of_a_deleted_debate(records: Repository) -> None:
    _fork(records, FIRST)
    _fork(records, SECOND)
    for deleted, left in ((PARENT, {FIRST, SECOND}), (FIRST, {SECOND})):
        assert delete_debates(records, [deleted]).debates == (deleted,)
        assert all(_is_whole(records, each) for each in left)
        assert _stored_bytes(records) < 2 * len(TEXT)


def test_refuses_a_fork_of_a_just_deleted_debate(records: Repository) -> None:
    (whole,) = records.journal.read(PARENT, 0)
    delete_debates(records, [PARENT])
    with pytest.raises(BadInput, match="just deleted"):
        _start(records, FIRST, [share_event(whole.as_event(), EventSource(PARENT, 1))])
    assert records.ids() == []
