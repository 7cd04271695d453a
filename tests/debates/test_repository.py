"""The repository and its leases on both databases."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa

from contend.debates import leases, tables
from contend.debates.events import Event, number_event
from contend.debates.leases import LEASE, Lease, LeaseLost
from contend.debates.repository import DebateExists, Repository, TaskAccepted
from contend.debates.run import open_repository
from contend.graph.errors import BadInput, DamagedDebate
from contend.graph.events import EventName, node_event
from contend.graph.record import Status
from contend.graph.settings import AdversarialSettings
from contend.graph.state import DebateState, Turn

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    with closing(open_repository()) as opened:
        yield opened


@pytest.fixture
def others(records: Repository) -> Iterator[Repository]:
    """Open the same database with separate connections, as another process does."""
    with closing(open_repository()) as opened:
        yield opened


def turn(number: int, text: str = "Said.") -> Turn:
    return Turn(
        id=f"r{number}.propose.proposer",
        round=number,
        phase="propose",
        seat="proposer",
        role="proposer",
        model="openai:m",
        text=text,
        started_at=BEGAN,
        ended_at=BEGAN,
    )


def state(*turns: Turn) -> DebateState:
    return {"question": "Why?", "seats": AdversarialSettings().build_seats(), "turns": list(turns)}


def begin(records: Repository, settings: dict[str, Any] | None = None) -> str:
    debate = str(uuid4())
    records.start(debate, "adversarial", state(), settings or {}, demonstration=False)
    return debate


def rows(records: Repository) -> list[Any]:
    with records._engine.connect() as connection:
        return list(connection.execute(sa.text("SELECT * FROM debate_turns ORDER BY position")))


def test_saving_the_same_state_again_changes_nothing(records: Repository) -> None:
    lease = records.acquire(begin(records))
    for _ in range(2):
        records.save(lease, "running", state(turn(1), turn(2)), 5)
    once = rows(records)
    lease.release()
    again = records.acquire(lease.debate_id)  # a new runner knows nothing of what was saved
    records.save(again, "paused", state(turn(1), turn(2)), 5)
    assert rows(records) == once
    records.save(again, "paused", state(turn(1), turn(2), turn(3)), 6)
    found = records.find(lease.debate_id)
    assert found.turns == [turn(1), turn(2), turn(3)]
    assert (found.status, found.last_seq) == ("paused", 6)


def test_saving_a_changed_transcript_updates_the_turns(records: Repository) -> None:
    lease = records.acquire(begin(records))
    records.save(lease, "running", state(turn(1), turn(2), turn(3)), 1)
    records.save(lease, "running", state(turn(1), turn(2, "Said otherwise.")), 2)
    assert records.find(lease.debate_id).turns == [turn(1), turn(2, "Said otherwise.")]
    lease.release()
    again = records.acquire(lease.debate_id)
    records.save(again, "running", state(turn(1)), 3)
    assert records.find(lease.debate_id).turns == [turn(1)]


def test_a_refused_save_leaves_the_turns_unchanged(records: Repository, others: Repository) -> None:
    lease = records.acquire(begin(records))
    records.save(lease, "running", state(turn(1)), 1)
    lease.release()
    others.save(others.acquire(lease.debate_id), "running", state(turn(1), turn(2)), 2)
    with pytest.raises(LeaseLost):
        records.save(lease, "done", state(), 3)
    assert records.find(lease.debate_id).turns == [turn(1), turn(2)]


def test_only_one_of_many_runners_acquires_a_debate(
    records: Repository, others: Repository
) -> None:
    def attempt(opened: Repository) -> Lease | None:
        try:
            return opened.acquire(debate)
        except BadInput:
            return None

    for _ in range(10):
        debate = begin(records)
        with ThreadPoolExecutor(8) as pool:
            won = list(pool.map(attempt, [records, others] * 4))
        (lease,) = [each for each in won if each]
        assert lease.renew()
        assert records.find(debate).status == "running"
        lease.release()
        assert records.find(debate).status == "interrupted"
        assert attempt(others)


def test_an_expired_lease_can_be_acquired(records: Repository, others: Repository) -> None:
    lease = records.acquire(begin(records))
    with records._engine.begin() as connection:
        long_ago = {"then": leases.written(datetime.now(UTC) - LEASE)}
        connection.execute(sa.text("UPDATE debates SET lease_until=:then"), long_ago)
    assert others.acquire(lease.debate_id)
    assert not lease.renew()


def test_the_lease_of_an_exited_process_can_be_acquired(records: Repository) -> None:
    debate = begin(records)
    holding = (
        "import sys; from contend.debates.run import open_repository\n"
        "open_repository().acquire(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", holding, debate], check=True)
    assert records.find(debate).status == "interrupted"
    assert records.acquire(debate)


def test_a_process_on_another_machine_keeps_its_lease(
    records: Repository, others: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = f"{leases._machine()}-elsewhere"
    with monkeypatch.context() as patch:
        patch.setattr(leases, "_machine", lambda: elsewhere)
        debate = records.acquire(begin(records)).debate_id
    leases._held.clear()  # there, not here
    assert others.find(debate).status == "running"
    with pytest.raises(BadInput, match="being run by another process"):
        others.acquire(debate)


def test_leases_use_the_clock_of_the_database_server(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Fast(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(hours=1)

    with closing(open_repository()) as records, closing(open_repository()) as others:
        debate = records.acquire(begin(records)).debate_id
        monkeypatch.setattr(leases, "datetime", Fast)
        assert others.find(debate).status == "running"
        with pytest.raises(BadInput, match="being run by another process"):
            others.acquire(debate)


def test_a_full_id_is_found_by_key_without_reading_turns(records: Repository) -> None:
    lease = records.acquire(begin(records))
    records.save(lease, "running", state(turn(1)), 1)
    asked: list[tuple[str, Any]] = []

    def listen(*given: Any) -> None:
        asked.append((given[2], given[3]))

    sa.event.listen(records._engine, "before_cursor_execute", listen)
    found = records.find(lease.debate_id.upper(), with_turns=False)
    assert (found.id, found.turns) == (lease.debate_id, [])
    statement = asked[0][0]
    assert "LIKE" not in statement
    assert not any("debate_turns" in statement for statement, _ in asked)
    assert records.find(lease.debate_id[:35]).turns == [turn(1)]


def test_lists_accepted_debates_until_they_end(records: Repository) -> None:
    def unfinished(seconds: float = 0) -> list[str]:
        return [each.debate.id for each in records.unfinished(timedelta(seconds=seconds))]

    begin(records)
    debate = str(uuid4())
    accept(records, debate)
    assert (unfinished(), unfinished(60)) == ([debate], [])  # it may be about to be run
    lease = records.acquire(debate)
    assert unfinished() == []
    records.save(lease, "paused", state(), 1)
    lease.release()
    assert unfinished(60) == [debate]
    records.save(again := records.acquire(debate), "done", state(), 2)
    again.release()
    assert unfinished() == []


def test_marks_unfinished_debates_of_another_machine(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    debate = str(uuid4())
    accept(records, debate)
    records.acquire(debate)
    with records._engine.begin() as connection:
        connection.execute(sa.update(tables.debates).values(lease_until="2020-01-01T00:00:00"))
    assert [each.elsewhere for each in records.unfinished(timedelta(0))] == [False]
    monkeypatch.setattr("contend.debates.leases._machine", lambda: "another")
    assert [each.elsewhere for each in records.unfinished(timedelta(0))] == [True]


def accept(records: Repository, debate: str) -> None:
    records.start(debate, "adversarial", state(), {}, demonstration=False, task_id="task-7")


def test_a_task_submitted_in_parallel_is_accepted_once(
    records: Repository, others: Repository
) -> None:
    def attempt(opened: Repository) -> str | None:
        debate = str(uuid4())
        try:
            accept(opened, debate)
        except TaskAccepted:
            return None
        return debate

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(attempt, [records, others] * 4))
    (debate,) = [each for each in won if each]
    assert [each.id for each in records.newest(9)] == [debate]
    assert others.debate_of("task-7") == debate
    lease = others.acquire(debate)
    records.give_up(debate, "broken")
    assert (records.find(debate).status, others.debate_of("task-7")) == ("running", debate)
    lease.release()
    records.give_up(debate, "broken")
    given_up = others.find(debate)
    assert (given_up.status, given_up.error) == ("failed", "broken")
    assert others.debate_of("task-7") is None
    assert attempt(others)


def test_giving_up_does_not_change_a_finished_debate(records: Repository) -> None:
    lease = records.acquire(begin(records))
    records.save(lease, "done", state(turn(1)), 1)
    lease.release()
    records.give_up(lease.debate_id, "broken")
    found = records.find(lease.debate_id)
    assert (found.status, found.error) == ("done", None)


def test_database_errors_do_not_reveal_the_stored_values(records: Repository) -> None:
    debate = begin(records)
    with pytest.raises(DebateExists) as refused:
        records.start(
            debate, "adversarial", state(), {"proposer_prompt": "canary"}, demonstration=False
        )
    assert isinstance(refused.value.__cause__, sa.exc.IntegrityError)
    assert "canary" not in f"{refused.value} {refused.value.__cause__}"


BROKEN = "nul \x00, half a pair \ud83d, an emoji 🧱"


def test_saves_text_that_databases_reject(records: Repository) -> None:
    debate = begin(records, {"proposer_prompt": BROKEN})
    lease = records.acquire(debate)
    records.save(lease, "failed", state(turn(1, BROKEN)), 1, error=BROKEN)
    found = records.find(debate)
    assert found.error == "nul , half a pair , an emoji 🧱"
    assert found.turns == [turn(1, BROKEN)]
    assert found.settings == {"proposer_prompt": BROKEN}
    assert [each.id for each in records.newest(3)] == [debate]


def test_a_forecast_can_be_resolved_in_parallel(records: Repository) -> None:
    debate = begin(records)

    def tell(outcome: str) -> None:
        for _ in range(20):
            records.resolve(debate, outcome)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tell, ["yes", "no", "yes", "no"]))
    assert records.resolutions()[debate] in ("yes", "no")


# What a damaged disk, or a program that is not ours, leaves in a column; PostgreSQL keeps JSON.
WRONG_SHAPES = ["[]", '{"seats": 1}', "null"]
NOT_JSON = ['{"question": "Wh', "", "\x00", b"\xff\xfe{"]


@pytest.mark.parametrize(
    ("status", "is_listed"), [("paused", True), ("failed", False), ("done", False)]
)
def test_services_finish_only_accepted_debates(
    status: Status, is_listed: bool, records: Repository
) -> None:
    debate = begin(records)
    lease = records.acquire(debate)
    records.save(lease, status, state(), 5)
    lease.release()
    assert records.unfinished(timedelta(0)) == []
    for _ in range(2):  # the second time changes nothing
        records.accept(debate)
        found = [each.debate.id for each in records.unfinished(timedelta(0))]
        assert found == ([debate] if is_listed else [])
    records.withdraw(debate)
    assert records.unfinished(timedelta(0)) == []


def damage(records: Repository, column: str, value: str | bytes, debate: str) -> None:
    cast = "CAST(:value AS TEXT)" if isinstance(value, bytes) else ":value"
    table, key = ("debate_turns", "debate_id") if column == "turn" else ("debates", "id")
    if records._engine.dialect.name == "postgresql":
        cast = "CAST(:value AS JSON)"
    with tables.write(records._engine) as connection:
        change = sa.text(f"UPDATE {table} SET {column} = {cast} WHERE {key} = :id")  # noqa: S608
        connection.execute(change, {"value": value, "id": debate})


@pytest.mark.parametrize("column", ["state", "settings"])
@pytest.mark.parametrize("value", [*WRONG_SHAPES, *NOT_JSON], ids=repr)
def test_a_damaged_debate_is_skipped_and_reported(
    value: str | bytes, column: str, records: Repository
) -> None:
    if value in NOT_JSON and records._engine.dialect.name == "postgresql":
        pytest.skip("PostgreSQL refuses it")
    if (value, column) == (WRONG_SHAPES[1], "settings"):
        pytest.skip("settings that a release does not know are ignored")
    good, bad = begin(records), begin(records)
    damage(records, column, value, bad)
    named: list[DamagedDebate] = []
    assert [each.id for each in records.newest(10, named.append)] == [good]
    assert [each.debate_id for each in named] == [bad]
    with pytest.raises(DamagedDebate, match=bad):
        records.find(bad[:8])
    assert records.find(good).id == good


def test_a_damaged_turn_is_reported(records: Repository) -> None:
    lease = records.acquire(begin(records))
    records.save(lease, "running", state(turn(1)), 1)
    damage(records, "turn", "{}", lease.debate_id)
    with pytest.raises(DamagedDebate, match=lease.debate_id):
        records.find(lease.debate_id)


def test_a_damaged_task_fails_without_blocking_others(records: Repository) -> None:
    ids = [str(uuid4()) for _ in range(2)]
    for number, each in enumerate(ids):
        settings: dict[str, Any] = {}
        records.start(
            each, "adversarial", state(), settings, demonstration=False, task_id=f"task-{number}"
        )
    good, bad = ids
    damage(records, "state", "[]", bad)
    found = records.unfinished(timedelta(seconds=-1))
    assert [each.debate.id for each in found] == [good]
    assert records.debate_of("task-1") is None
    with records._engine.connect() as connection:
        query = sa.select(tables.debates.c.status, tables.debates.c.error)
        status, error = connection.execute(query.where(tables.debates.c.id == bad)).one()
    assert status == "failed"
    assert "damaged" in error


def said(debate_id: str, seq: int, name: EventName = "seat_complete") -> Event:
    return number_event(debate_id, seq, node_event(name, 1, "Said."))


def names(records: Repository, debate_id: str) -> list[tuple[int, str]]:
    return [(each.seq, each.name) for each in records.journal.read(debate_id, 0)]


def test_a_record_and_its_last_event_are_saved_atomically(
    records: Repository,
) -> None:
    lease = records.acquire(begin(records))
    last = said(lease.debate_id, 2, "complete")
    unusable: Any = {**last, "metadata": {"unknown": object()}}
    with pytest.raises(TypeError):
        records.save(lease, "done", state(), 2, None, [unusable])
    assert (records.find(lease.debate_id).status, names(records, lease.debate_id)) == (
        "running",
        [],
    )
    for _ in range(2):  # as after an outage that hid the first success
        records.save(lease, "done", state(), 2, None, [said(lease.debate_id, 1), last])
    assert names(records, lease.debate_id) == [(1, "seat_complete"), (2, "complete")]
    with pytest.raises(LeaseLost):
        records.save(Lease(records._engine, lease.debate_id), "done", state(), 3, None, [last])


def test_giving_up_a_debate_stores_an_error_event(records: Repository) -> None:
    debate = begin(records)
    lease = records.acquire(debate)
    records.save(lease, "running", state(), 1000, None, [said(debate, 1)])
    records.give_up(debate, "broken")  # not while it runs
    lease.release()
    records.give_up(debate, "broken")
    assert names(records, debate) == [(1, "seat_complete"), (1001, "error")]
    newest = records.journal.newest(debate)
    assert newest is not None
    assert newest.as_event()["content"] == "broken"
    assert records.find(debate).last_seq == 1001


@pytest.mark.parametrize(
    ("status", "name"), [("done", "complete"), ("failed", "error"), ("paused", None)]
)
def test_creates_a_missing_last_event_from_the_record(
    records: Repository, status: Status, name: str | None
) -> None:
    debate = begin(records)
    lease = records.acquire(debate)
    ended: DebateState = {**state(), "final_answer": "Keep it."}
    records.save(lease, status, ended, 5, "It broke.", [said(debate, 4)])
    assert not records.store_missing_events(debate)  # a process runs it
    lease.release()
    assert records.store_missing_events(debate) is (name is not None)
    assert not records.store_missing_events(debate)
    assert names(records, debate) == [(4, "seat_complete")] + ([(6, name)] if name else [])
    newest = records.journal.newest(debate)
    assert newest is not None
    contents = {"done": "Keep it.", "failed": "It broke.", "paused": "Said."}
    assert newest.as_event()["content"] == contents[status]


def test_creates_events_for_a_debate_stored_without_them(
    records: Repository,
) -> None:
    debate = begin(records)
    assert not records.store_missing_events(debate)  # it is new
    lease = records.acquire(debate)
    records.save(lease, "paused", state(turn(1), turn(2)), 50)
    assert not records.store_missing_events(debate)
    lease.release()
    for is_missing in (True, False):
        assert records.store_missing_events(debate) is is_missing
    main = ["debate_start", "seat_complete", "seat_complete", "paused"]
    assert names(records, debate) == list(enumerate(main, 1))
    assert records.find(debate).last_seq == 50
