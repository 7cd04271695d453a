"""Events in groups: chunks are joined, nothing is lost, and only the holder of the lease writes."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from contend.debates import journal as module
from contend.debates import tables
from contend.debates.events import Announcer, Event
from contend.debates.journal import Group, forget_old_chunks, merge_chunks
from contend.debates.leases import Lease
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.graph.errors import DatabaseUnavailable
from contend.graph.events import EventName

ID = "0" * 36


@pytest.fixture
def records(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setenv("CONTEND_HOME", str(tmp_path))
    opened = open_repository()
    opened.start(ID, "adversarial", {"question": "Why?", "seats": []}, {}, demonstration=False)
    yield opened
    opened.close()


def say(*said: tuple[EventName, str, str]) -> list[Event]:
    events: list[Event] = []
    announcer = Announcer(ID, events.append)
    for name, seat, content in said:
        announcer.say(name, 1, content, seat=seat, phase="propose")
    return events


def shown(events: list[Event]) -> list[tuple[int, str, str]]:
    return [(each["seq"], each["metadata"]["seat"], each["content"]) for each in events]


def test_chunks_of_seats_that_speak_at_once_are_joined_in_order() -> None:
    said = say(
        ("seat_chunk", "ann", "a"),
        ("seat_chunk", "ben", "x"),
        ("seat_chunk", "ann", "b"),
        ("seat_complete", "ben", "x"),
        ("seat_chunk", "ann", "c"),
    )
    assert shown(merge_chunks(said)) == [
        (2, "ben", "x"),
        (3, "ann", "ab"),
        (4, "ben", "x"),
        (5, "ann", "c"),
    ]


async def test_stored_events_are_read_as_they_were_sent(records: Repository) -> None:
    lease = records.acquire(ID)
    groups: list[Group] = []
    records.journal.listen(ID, groups.append)
    said = say(("seat_chunk", "ann", "a\x00\ud800"), ("seat_complete", "ann", "whole"))
    for event in said:
        records.journal.add(event, lease)
    await records.journal.flush()
    stored = records.journal.read(ID, 0, 10, chunks=True)
    assert [each.as_event() for each in stored] == said
    assert [each.stored for each in groups] == [stored]
    assert records.journal.read(ID, 1, 10, chunks=True) == stored[1:]
    assert records.journal.read(ID, 0, 10, chunks=False) == stored[1:]
    assert records.journal.read(ID, 0, 1, chunks=True) == stored[:1]
    assert records.journal.last_seq(ID) == 2


async def test_who_lost_the_lease_stores_nothing(records: Repository) -> None:
    lease = records.acquire(ID)
    records.journal.add(say(("seat_chunk", "ann", "a"))[0], lease)
    lease.release()
    await records.journal.flush()
    assert records.journal.read(ID, 0, 10, chunks=True) == []


async def test_events_wait_while_the_database_is_away(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = records.acquire(ID)
    first, second = say(("seat_complete", "ann", "a"), ("seat_complete", "ben", "b"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "write", _away)
        records.journal.add(first, lease)
        await records.journal.flush()
    records.journal.add(second, lease)
    await records.journal.flush()
    stored = records.journal.read(ID, 0, 10, chunks=True)
    assert [each.as_event() for each in stored] == [first, second]


def _away(_: sa.Engine) -> Any:
    raise DatabaseUnavailable("gone")


async def test_many_debates_share_one_transaction(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = 0
    begin = tables.write

    def counted(engine: sa.Engine) -> Any:
        nonlocal begun
        begun += 1
        return begin(engine)

    monkeypatch.setattr(module, "write", counted)
    leases: dict[str, Lease] = {}
    for number in range(20):
        debate_id = f"{number:036}"
        if debate_id != ID:
            state: Any = {"question": "Why?", "seats": []}
            records.start(debate_id, "forum", state, {}, demonstration=False)
        leases[debate_id] = records.acquire(debate_id)
    for debate_id, lease in leases.items():
        event = {**say(("seat_chunk", "ann", debate_id))[0], "debate_id": debate_id}
        records.journal.add(event, lease)  # type: ignore[arg-type]
    await records.journal.flush()
    assert begun == 1
    assert all(records.journal.last_seq(each) == 1 for each in leases)


@pytest.mark.parametrize(
    ("status", "updated", "kept"),
    [
        ("done", "2020-01-01T00:00:00.000000+00:00", [2]),
        ("done", "2999-01-01T00:00:00.000000+00:00", [1, 2]),
        ("paused", "2020-01-01T00:00:00.000000+00:00", [1, 2]),
    ],
)
async def test_old_chunks_are_forgotten_once_a_debate_is_done(
    records: Repository, status: str, updated: str, kept: list[int]
) -> None:
    lease = records.acquire(ID)
    for event in say(("seat_chunk", "ann", "a"), ("seat_complete", "ann", "a")):
        records.journal.add(event, lease)
    await records.journal.flush()
    with records._engine.begin() as connection:
        connection.execute(tables.debates.update().values(status=status, updated_at=updated))
        forget_old_chunks(connection)
    assert [each.seq for each in records.journal.read(ID, 0, 10, chunks=True)] == kept


async def test_the_turns_that_viewers_saw_are_known(records: Repository) -> None:
    lease = records.acquire(ID)
    event = say(("seat_complete", "ann", "a"))[0]
    event["metadata"]["turn"] = "r1.propose.ann"
    records.journal.add(json.loads(json.dumps(event)), lease)
    await records.journal.flush()
    assert records.journal.completed_turns(ID) == {"r1.propose.ann"}
    await asyncio.sleep(0)
