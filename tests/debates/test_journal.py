"""The journal stores events in groups, written only by the lease holder."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
import sqlalchemy as sa

from contend.debates import journal as module
from contend.debates import tables
from contend.debates.events import Announcer, Event
from contend.debates.journal import Group, merge_chunks
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


def test_merges_chunks_of_parallel_seats_in_order() -> None:
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


def test_chunks_of_a_restarted_turn_are_not_merged_with_earlier_ones() -> None:
    said = say(
        ("seat_chunk", "ann", ""),
        ("seat_chunk", "ann", "a"),
        ("seat_chunk", "ann", ""),
        ("seat_chunk", "ann", "b"),
        ("seat_chunk", "ann", "c"),
    )
    assert shown(merge_chunks(said)) == [
        (1, "ann", ""),
        (2, "ann", "a"),
        (3, "ann", ""),
        (5, "ann", "bc"),
    ]


async def test_stored_events_equal_the_events_sent(records: Repository) -> None:
    lease = records.acquire(ID)
    groups: list[Group] = []
    records.journal.listen(ID, groups.append)
    said = say(("seat_chunk", "ann", "a\x00\ud800"), ("seat_complete", "ann", "whole"))
    for event in said:
        records.journal.add(event, lease)
    await records.journal.flush(lease)
    stored = records.journal.read(ID, 0, 10)
    assert [each.as_event() for each in stored] == said
    assert [each.stored for each in groups] == [stored]
    assert records.journal.read(ID, 1, 10) == stored[1:]
    assert records.journal.read_without_chunks(ID, 0, 10) == stored[1:]
    assert records.journal.read(ID, 0, until=1) == stored[:1]
    assert records.journal.read(ID, 0, 1) == stored[:1]
    assert records.journal.last_seq(ID) == 2


async def test_a_writer_without_the_lease_stores_nothing(records: Repository) -> None:
    lease = records.acquire(ID)
    records.journal.add(say(("seat_chunk", "ann", "a"))[0], lease)
    lease.release()
    await records.journal.flush(lease)
    assert records.journal.read(ID, 0, 10) == []


async def test_events_are_kept_while_the_database_is_unavailable(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = records.acquire(ID)
    first, second = say(("seat_complete", "ann", "a"), ("seat_complete", "ben", "b"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "write", _away)
        records.journal.add(first, lease)
        await records.journal.flush(lease)
    records.journal.add(second, lease)
    await records.journal.flush(lease)
    stored = records.journal.read(ID, 0, 10)
    assert [each.as_event() for each in stored] == [first, second]


def _away(_: sa.Engine) -> Any:
    raise DatabaseUnavailable("gone")


async def test_does_not_repeat_events_if_the_connection_broke_after_the_commit(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def cut_off(engine: sa.Engine) -> Iterator[sa.Connection]:
        with tables.write(engine) as connection:
            yield connection
        raise DatabaseUnavailable("the connection broke after the commit")

    lease = records.acquire(ID)
    said = say(("seat_chunk", "ann", "a"), ("seat_chunk", "ann", "b"), ("seat_chunk", "ann", "c"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "write", cut_off)
        for event in said[:2]:
            records.journal.add(event, lease)
        await records.journal.flush(lease)
    records.journal.add(said[2], lease)
    await records.journal.flush(lease)
    stored = [each.as_event() for each in records.journal.read(ID, 0)]
    assert shown(stored) == [(2, "ann", "ab"), (3, "ann", "c")]


OTHER = "1" * 36


def start_other(records: Repository) -> Lease:
    records.start(OTHER, "forum", {"question": "Why?", "seats": []}, {}, demonstration=False)
    return records.acquire(OTHER)


def say_in_other(seq: int) -> Event:
    return {**say(("seat_complete", "ann", "a"))[0], "debate_id": OTHER, "seq": seq}


async def test_unstorable_events_do_not_affect_other_debates(
    records: Repository, caplog: pytest.LogCaptureFixture
) -> None:
    lease, other = records.acquire(ID), start_other(records)
    bad, good = say(("seat_complete", "ann", "a"), ("seat_complete", "ann", "b"))
    bad["metadata"]["unknown"] = object()
    records.journal.add(bad, lease)
    records.journal.add(say_in_other(1), other)
    await records.journal.flush(other)
    assert records.journal.last_seq(OTHER) == 1
    assert ID in caplog.text
    assert OTHER not in caplog.text
    records.journal.add(good, lease)
    await records.journal.flush(lease)
    assert [each.seq for each in records.journal.read(ID, 0)] == [2]


async def test_flush_waits_only_for_events_of_its_own_debate(records: Repository) -> None:
    lease, other = records.acquire(ID), start_other(records)
    said = count(1)

    def go_on(_: Group) -> None:
        records.journal.add(say_in_other(next(said)), other)

    records.journal.listen(OTHER, go_on)  # it never stops
    go_on(Group([], None))
    records.journal.add(say(("seat_complete", "ann", "a"))[0], lease)
    await records.journal.flush(lease)
    assert records.journal.last_seq(ID) == 1
    records.journal.stop_listening(OTHER, go_on)
    await records.journal.flush(other)


async def test_ending_a_run_clears_its_outbox(records: Repository) -> None:
    lease, groups = records.acquire(ID), list[Group]()
    records.journal.listen(ID, groups.append)
    records.journal.add(say(("seat_complete", "ann", "a"))[0], lease)
    assert records.journal.is_run_here(ID)
    await records.journal.flush(lease)
    records.journal.end(lease)
    assert not records.journal.is_run_here(ID)
    assert records.journal._outboxes == {}
    assert groups[-1] == Group([], None)


async def test_events_of_a_run_that_ended_in_an_outage_are_stored_later(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease, other = records.acquire(ID), start_other(records)
    with monkeypatch.context() as patch:
        patch.setattr(module, "write", _away)
        records.journal.add(say(("seat_complete", "ann", "a"))[0], lease)
        await records.journal.flush(lease)
        records.journal.end(lease)
    assert not records.journal.is_run_here(ID)
    records.journal.add(say_in_other(1), other)
    await records.journal.flush(other)
    assert records.journal.last_seq(ID) == 1
    assert lease.owner not in records.journal._outboxes


def plans(records: Repository, work: Callable[[], object]) -> str:
    """Return SQLite's query plan of each statement."""
    statements: list[tuple[str, Any]] = []

    def note(_: Any, __: Any, statement: str, values: Any, *___: Any) -> None:
        statements.append((statement, values))

    sa.event.listen(records._engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        sa.event.remove(records._engine, "before_cursor_execute", note)
    found: list[str] = []
    with records._engine.connect() as connection:
        for statement, values in statements:
            if statement.startswith(("SELECT", "DELETE")):
                explained = f"EXPLAIN QUERY PLAN {statement}"
                found += [row[3] for row in connection.exec_driver_sql(explained, values)]
    assert found
    return "\n".join(found)


def test_lease_check_does_not_scan_all_debates(records: Repository) -> None:
    lease = records.acquire(ID)
    said = {lease: say(("seat_complete", "ann", "a"))}
    plan = plans(records, lambda: records.journal._write(said))
    assert "SEARCH debates" in plan
    assert "SCAN" not in plan


async def test_cleanup_finds_old_chunks_by_index(records: Repository) -> None:
    lease = records.acquire(ID)
    records.journal.add(say(("seat_chunk", "ann", "a"))[0], lease)
    await records.journal.flush(lease)
    with records._engine.begin() as connection:
        connection.execute(tables.debates.update().values(status="done", updated_at="2020"))
    plan = plans(records, records.journal.forget_old_chunks)
    assert "SEARCH debate_events USING INDEX ix_debate_events_chunks" in plan
    assert "SEARCH debates" in plan
    assert "SCAN debates" not in plan
    assert all("INDEX" in line for line in plan.splitlines() if "SCAN debate_events" in line)


async def test_the_first_event_after_a_pause_is_stored_immediately(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUP_SECONDS", 3600)
    lease = records.acquire(ID)
    is_stored = asyncio.Event()
    records.journal.listen(ID, lambda _: is_stored.set())
    first, second = say(("seat_chunk", "ann", "a"), ("seat_chunk", "ann", "b"))
    records.journal.add(first, lease)
    await is_stored.wait()
    records.journal.add(second, lease)
    assert records.journal.last_seq(ID) == 1
    await records.journal.flush(lease)
    assert records.journal.last_seq(ID) == 2


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
    for lease in leases.values():
        await records.journal.flush(lease)
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
async def test_deletes_old_chunks_of_finished_debates_only(
    records: Repository, status: str, updated: str, kept: list[int]
) -> None:
    lease = records.acquire(ID)
    for event in say(("seat_chunk", "ann", "a"), ("seat_complete", "ann", "a")):
        records.journal.add(event, lease)
    await records.journal.flush(lease)
    with records._engine.begin() as connection:
        connection.execute(tables.debates.update().values(status=status, updated_at=updated))
    records.journal.forget_old_chunks()
    assert [each.seq for each in records.journal.read(ID, 0, 10)] == kept


async def test_returns_the_ids_of_completed_turns(records: Repository) -> None:
    lease = records.acquire(ID)
    event = say(("seat_complete", "ann", "a"))[0]
    event["metadata"]["turn"] = "r1.propose.ann"
    records.journal.add(json.loads(json.dumps(event)), lease)
    await records.journal.flush(lease)
    assert records.journal.completed_turns(ID) == {"r1.propose.ann"}
