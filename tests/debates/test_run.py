"""Running, pausing and resuming debates."""

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from langgraph.runtime import RunControl

from contend.debates.events import Event, events_of_record
from contend.debates.leases import LEASE, Lease, LeaseLost
from contend.debates.prepare import PreparedDebate, write_debate
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.debates.run import open_repository, run_debate
from contend.graph.checkpoints.location import database_path
from contend.graph.errors import BadInput, DamagedDebate, DatabaseUnavailable
from contend.graph.record import Status
from contend.graph.settings import AdversarialSettings
from contend.graph.state import Remark
from contend.models.seats import choose_seats
from contend.nodes.retrieve import checked_question
from tests.cli.support import debaters, spoken
from tests.support.model_server import ModelServer, Reply, Request, openai_error
from tests.support.postgres import PASSWORD

SEATS = ("proposer", "skeptic", "synthesizer", "judge")


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    with closing(open_repository()) as opened:
        yield opened


def execute(records: Repository, statement: str, **values: Any) -> None:
    """Change the database directly."""
    with records._engine.begin() as connection:
        connection.execute(sa.text(statement), values)


def contents(records: Repository) -> str:
    """Return the contents of all tables, including checkpoints."""
    with records._engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        rows = [connection.execute(sa.text(f"SELECT * FROM {name}")).all() for name in names]  # noqa: S608
    assert "checkpoints" in names
    return repr(rows)


@pytest.fixture(autouse=True)
def talking(server: ModelServer) -> None:
    server.script = debaters()


async def begin(records: Repository, question: str = "Why?", **changes: Any) -> StoredDebate:
    named = {f"{seat}_model": "openai:m1" for seat in SEATS}
    settings = AdversarialSettings.model_validate(
        named | {"min_rounds": 1, "max_rounds": 2, "retry_wait": 0.01, "templates": False} | changes
    )
    return write_debate(records, PreparedDebate(question, settings, await choose_seats(settings)))


async def run(
    records: Repository,
    debate: StoredDebate,
    remark: Remark | None = None,
    control: RunControl | None = None,
    events: list[Event] | None = None,
) -> StoredDebate:
    watch = events.append if events is not None else lambda _: None
    return await run_debate(records, debate, watch, control or RunControl(), remark)


def failing(role: str) -> Any:
    calm = debaters()
    return lambda request: (
        Reply(status=401) if f"You are {role}" in request.instructions else calm(request)
    )


def heard(server: ModelServer, text: str) -> list[str]:
    """Return the seats whose prompts contain the text, in order."""
    asked = [
        call.request.instructions.split()[3] for call in server.calls if text in call.request.text
    ]
    return [who.strip(".") for who in asked]


async def test_every_seat_sees_comments_added_in_two_resumes(
    records: Repository, server: ModelServer
) -> None:
    server.script = failing("the Proposer")
    debate = await run(records, await begin(records))
    assert debate.status == "failed"
    server.script = failing("the Skeptic")
    debate = await run(records, debate)
    for words in ("Mind the cost.", "Mind the night shifts."):
        debate = await run(records, debate, Remark(say=words))
        assert debate.status == "failed"
    server.script = debaters()
    debate = await run(records, debate)
    assert debate.status == "done"
    assert [turn.phase for turn in debate.turns][:4] == ["propose", "remark", "remark", "critique"]
    for words in ("Mind the cost.", "Mind the night shifts."):
        assert heard(server, words)[-4:] == ["Proposer", "Skeptic", "Synthesizer", "judge"]


async def test_a_comment_in_the_middle_of_a_step_repeats_no_paid_call(
    records: Repository, server: ModelServer
) -> None:
    """The pause comes after the speech was paid for and before it is parsed."""
    control, calm = RunControl(), debaters()

    def script(request: Request) -> Reply | str:
        if "You are the Skeptic" not in request.instructions:
            answer: Reply = calm(request)
            return answer
        control.request_drain()
        return Reply("I have my doubts.")

    server.script = script
    paused = await run(records, await begin(records, max_rounds=1), control=control)
    assert (paused.status, len(server.calls)) == ("paused", 2)
    done = await run(records, paused, Remark(say="Mind the cost."))
    assert done.status == "done"
    speeches = [call for call in server.calls if "You are the Skeptic" in call.request.instructions]
    assert len(speeches) == 1


async def test_seats_see_a_comment_made_before_the_first_step(
    records: Repository, server: ModelServer
) -> None:
    control = RunControl()
    control.request_drain("at once")
    paused = await run(records, await begin(records), control=control)
    assert (paused.status, len(server.calls)) == ("paused", 0)
    ended = await run(records, paused, Remark(say="Mind the night shifts."))
    assert ended.status == "done"
    assert "Proposer" in heard(server, "Mind the night shifts.")


async def test_score_is_sent_to_langsmith_after_the_lease_is_released(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, str, float]] = []

    def send(debate_id: str, name: str, score: float) -> None:
        records.acquire(debate_id).release()
        sent.append((debate_id, name, score))

    monkeypatch.setattr("contend.debates.feedback._send", send)
    debate = await run(records, await begin(records))
    assert sent == [(debate.id, "auto_score", debate.as_state()["auto_score"].score)]


async def test_raising_the_budget_keeps_other_stored_values(
    records: Repository,
) -> None:
    debate = await begin(records, budget=100_000)
    records.change_settings(debate.id, {**debate.settings, "reused_turns": []})
    larger = debate.as_settings().model_copy(update={"budget": 200_000})
    await run_debate(records, debate, lambda _: None, RunControl(), settings=larger)
    stored = records.find(debate.id).settings
    assert (stored["budget"], stored["reused_turns"]) == (200_000, [])


async def test_a_failure_stays_in_the_record_after_a_successful_resume(
    records: Repository, server: ModelServer
) -> None:
    server.script = failing("the Skeptic")
    debate = await run(records, await begin(records))
    assert [entry["what"] for entry in debate.as_json()["degraded"]] == ["failed"]
    server.script = debaters()
    debate = await run(records, debate)
    assert debate.status == "done"
    assert [entry["what"] for entry in debate.as_json()["degraded"]] == ["failed"]


async def test_event_numbers_are_unique_after_a_crash(
    records: Repository, server: ModelServer
) -> None:
    before: list[Event] = []
    debate = await begin(records)
    server.script = lambda request: Reply("Slow.", delay=30)
    running = asyncio.create_task(run(records, debate, events=before))
    await asyncio.to_thread(server.wait_for_calls, 1)
    crashed = records.find(debate.id)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    server.script = debaters()
    # As a process that was killed leaves it: the row of a run that never closed.
    after: list[Event] = []
    execute(records, "UPDATE debates SET last_seq=:seq", seq=crashed.last_seq)
    done = await run(records, debate, events=after)
    numbers = [event["seq"] for event in before + after]
    assert numbers == sorted(set(numbers))
    assert done.last_seq == after[-1]["seq"]


async def test_a_second_runner_is_refused(records: Repository, server: ModelServer) -> None:
    server.script = lambda request: Reply("Slow.", delay=30)
    debate = await begin(records)
    running = asyncio.create_task(run(records, debate))
    await asyncio.to_thread(server.wait_for_calls, 1)
    with pytest.raises(BadInput, match="being run by another process"):
        await run(records, debate)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert records.find(debate.id).status == "paused"


async def test_a_runner_that_lost_its_lease_writes_nothing(
    records: Repository, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_over(request: Request) -> Reply:
        execute(records, "UPDATE debates SET lease_owner='other', last_seq=999, status='done'")
        return Reply("An answer.")

    server.script = taken_over
    debate = await begin(records)
    with pytest.raises(LeaseLost):
        await run(records, debate)
    kept = records.find(debate.id)
    assert (kept.status, kept.last_seq, kept.turns) == ("done", 999, [])


@pytest.mark.parametrize("trouble", [sa.exc.OperationalError, sa.exc.InternalError])
async def test_lease_renewal_continues_after_database_errors(
    trouble: type[sa.exc.DBAPIError],
    records: Repository,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def busy(self: Lease, connection: sa.Connection, **values: Any) -> bool:
        if "owner" in values:
            return True
        tried.append(1)
        raise trouble("locked", None, Exception())

    monkeypatch.setattr(Lease, "_set", busy)
    monkeypatch.setattr("contend.debates.leased.LEASE", LEASE / 3000)
    debate = await run(records, await begin(records))
    assert debate.status == "done"
    assert len(tried) > 1


async def test_the_lease_is_released_if_its_renewal_fails(
    records: Repository, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Lease) -> bool:
        raise RuntimeError("broken")

    monkeypatch.setattr("contend.debates.leased.LEASE", LEASE / 3000)
    debate = await begin(records)
    with monkeypatch.context() as patch:
        patch.setattr(Lease, "renew", broken)
        with pytest.raises(RuntimeError, match="broken"):
            await run(records, debate)
    assert records.acquire(debate.id).renew()


async def test_the_record_is_complete_after_failed_saves(
    records: Repository, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away_meanwhile(self: Repository, lease: Lease, status: Status, *more: Any) -> None:
        if status == "running":
            raise DatabaseUnavailable("away")
        save(self, lease, status, *more)

    save = Repository.save
    monkeypatch.setattr(Repository, "save", away_meanwhile)
    done = await run(records, await begin(records))
    assert (done.status, len(done.turns)) == ("done", 6)


async def test_resuming_finishes_a_record_whose_last_save_failed(
    records: Repository, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away_at_the_end(self: Repository, lease: Lease, status: Status, *more: Any) -> None:
        if status == "done":
            raise DatabaseUnavailable("away")
        save(self, lease, status, *more)

    save, events = Repository.save, list[Event]()
    monkeypatch.setattr("contend.graph.checkpoints.outages.PATIENCE", 0)
    with monkeypatch.context() as patch:
        patch.setattr(Repository, "save", away_at_the_end)
        paused = await run(records, await begin(records), events=events)
    assert (paused.status, paused.error, len(paused.turns)) == ("paused", "away", 6)
    assert events[-1]["event"] == "paused"
    assert records.find(paused.id).status == "interrupted"
    calls = len(server.calls)
    done = await run(records, paused, events=events)
    assert (done.status, done.turns, len(server.calls)) == ("done", paused.turns, calls)
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("locked_in", range(1, 7))
async def test_a_locked_database_pauses_the_debate_and_repeats_no_paid_call(
    locked_in: int, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contend.graph.checkpoints.outages.PATIENCE", 0)
    monkeypatch.setattr("contend.graph.checkpoints.sqlite.BUSY_TIMEOUT_MS", 0)
    calm = debaters()
    with (
        closing(open_repository()) as records,
        closing(
            sqlite3.connect(database_path(), isolation_level=None, check_same_thread=False)
        ) as holder,
    ):

        def lock(request: Request) -> Reply | str:
            if len(server.calls) == locked_in:
                holder.execute("PRAGMA busy_timeout=10000")
                holder.execute("BEGIN IMMEDIATE")
            answer: Reply = calm(request)
            return answer

        debate, server.script = await begin(records), lock
        paused = await run(records, debate)
        assert (paused.status, len(server.calls)) == ("paused", locked_in)
        assert "another program keeps it locked" in (paused.error or "")
        holder.execute("ROLLBACK")
        server.script = calm
        done = await run(records, debate)
    assert (done.status, len(done.turns), len(server.calls)) == ("done", 6, 6)


@pytest.mark.parametrize("failing_saves", [1, 1000])
async def test_a_save_error_fails_the_debate(
    failing_saves: int,
    records: Repository,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save, left = Repository.save, [failing_saves]

    def broken(self: Repository, *given: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise RuntimeError("cannot save, key sk-canary-0123456789abcdef")
        save(self, *given)

    monkeypatch.setattr(Repository, "save", broken)
    debate = await begin(records)
    with pytest.raises(RuntimeError, match="cannot save"):
        await run(records, debate)
    found = records.find(debate.id)
    assert found.status == "failed"
    assert "RuntimeError: cannot save" in (found.error or "")
    assert "canary" not in (found.error or "")
    monkeypatch.setattr(Repository, "save", save)
    assert (await run(records, debate)).status == "done"


async def test_ending_one_debate_does_not_close_connections_of_another(
    records: Repository, server: ModelServer
) -> None:
    calm = debaters()

    def script(request: Request) -> Reply | str:
        reply = calm(request)
        slow = "Slow?" in request.text and isinstance(reply, Reply)
        return Reply(reply.text, chunk_delay=0.05, chunk_size=4) if slow else reply

    server.script = script
    fast, slow = await begin(records), await begin(records)
    slow = slow.model_copy(update={"question": "Slow?"})
    ended = await asyncio.gather(run(records, fast), run(records, slow))
    assert [debate.status for debate in ended] == ["done", "done"]
    assert ended[1].as_json()["degraded"] == []
    assert spoken(ended[0].as_json()) == spoken(ended[1].as_json())


@pytest.mark.parametrize("remark", [Remark(say="Hello?"), Remark(finish=True)])
async def test_refuses_a_comment_that_no_speaker_would_see(
    records: Repository, remark: Remark
) -> None:
    debate = await begin(records)
    with pytest.raises(BadInput):
        await run(records, debate, remark)
    assert (await run(records, debate)).status == "done"
    with pytest.raises(BadInput, match="is done"):
        await run(records, debate, remark)


async def test_a_viewer_that_fails_ends_the_run_and_repeats_no_paid_call(
    records: Repository, server: ModelServer
) -> None:
    def watch(event: Event) -> None:
        if event["event"] == "skeptic_chunk" and event["content"]:
            raise BrokenPipeError("nobody reads")

    debate = await begin(records)
    with pytest.raises(BrokenPipeError, match="nobody reads"):
        await run_debate(records, debate, watch, RunControl())
    assert heard(server, "Why?") == ["Proposer", "Skeptic"]
    assert records.find(debate.id).status == "failed"


async def test_a_key_in_an_unexpected_exception_is_not_stored(
    records: Repository, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def leak(*_: Any, **_more: Any) -> None:
        raise RuntimeError("sent Authorization: Bearer sk-canary-0123456789abcdef")

    monkeypatch.setattr("contend.models.calls.stream_answer", leak)
    debate = await run(records, await begin(records))
    assert debate.status == "failed"
    assert "RuntimeError" in (debate.error or "")
    found = contents(records)
    assert debate.id in found
    assert "canary" not in found
    assert PASSWORD not in found


async def test_a_stored_setting_that_no_longer_exists_is_ignored(
    records: Repository, server: ModelServer
) -> None:
    debate = await begin(records)
    settings = json.dumps(debate.settings | {"bygone": 1})
    execute(records, "UPDATE debates SET settings=:settings", settings=settings)
    assert (await run(records, debate)).status == "done"


BROKEN = "nul \x00, half a pair \ud83d, "


async def test_text_that_databases_reject_does_not_fail_a_debate(
    records: Repository, server: ModelServer
) -> None:
    """The text comes from the question, from a comment and from every model."""
    server.script = debaters(lambda _, __, reply: replace(reply, text=BROKEN + reply.text))
    debate = await begin(records, checked_question(f"{BROKEN}Why?"), pause="each_round")
    paused = await run(records, debate)
    assert paused.status == "paused", paused.error
    done = await run(records, paused, Remark(say=f"{BROKEN}mind the cost."))
    done = await run(records, done)
    assert done.status == "done", done.error
    assert done.question == "nul , half a pair , Why?"
    texts = [turn.text for turn in done.turns]
    assert len(texts) == 7
    assert all(text.startswith("nul , half a pair ") for text in texts)


async def test_an_error_message_that_databases_reject_is_stored(
    records: Repository, server: ModelServer
) -> None:
    server.script = lambda _: openai_error(401, f"{BROKEN}no.")
    failed = await run(records, await begin(records))
    assert failed.status == "failed"
    assert "nul , half a pair , no." in str(failed.error)


async def test_damaged_checkpoints_are_reported_and_fail_the_debate(
    records: Repository, database: str
) -> None:
    paused = await run(records, await begin(records, pause="each_round"))
    column = "checkpoints SET checkpoint" if database == "sqlite" else "checkpoint_blobs SET blob"
    execute(records, f"UPDATE {column} = :junk", junk=b"\xc1\xc1")
    with pytest.raises(DamagedDebate, match="its checkpoints are damaged"):
        await run(records, paused)
    found = records.find(paused.id)
    assert (found.status, found.turns) == ("failed", paused.turns)
    assert "checkpoints are damaged" in (found.error or "")


@pytest.mark.parametrize("pause", ["never", "each_round"])
async def test_a_comment_is_kept_if_the_debate_pauses_again_immediately(
    records: Repository, server: ModelServer, pause: str
) -> None:
    """The debate pauses again at its first event after the resume."""
    first = RunControl()
    debate = await begin(records, pause=pause)

    def stop_first(event: Event) -> None:
        if event["event"] == "round_start":
            first.request_drain()

    if pause == "never":
        paused = await run_debate(records, debate, stop_first, first)
    else:
        paused = await run(records, debate)
    assert paused.status == "paused"
    control = RunControl()
    again = await run_debate(
        records, paused, lambda _: control.request_drain(), control, Remark(say="Mind the cost.")
    )
    assert again.status == "paused"
    while again.status == "paused":
        again = await run(records, again)
    assert again.status == "done"
    assert [turn.text for turn in again.turns if turn.phase == "remark"] == ["Mind the cost."]
    assert heard(server, "Mind the cost.")


def stored(records: Repository, debate: StoredDebate) -> list[Event]:
    return [each.as_event() for each in records.journal.read(debate.id, 0)]


def without_chunks(events: list[Event]) -> list[Event]:
    return [event for event in events if not event["event"].endswith("_chunk")]


async def test_a_finished_debate_has_all_its_events(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No event can be stored before the end, so all are stored with the record."""

    def away(_: Any) -> Any:
        raise DatabaseUnavailable("away")

    monkeypatch.setattr("contend.debates.journal.write", away)
    events: list[Event] = []
    done = await run(records, await begin(records), events=events)
    assert done.status == "done"
    assert events[-1]["event"] == "complete"
    as_sent: list[Event] = json.loads(json.dumps(events))
    assert without_chunks(stored(records, done)) == without_chunks(as_sent)
    assert records.journal._outboxes == {}


@pytest.mark.parametrize("ending", ["error", "paused", "complete"])
async def test_the_last_event_is_stored_with_the_record(
    records: Repository, server: ModelServer, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """A process killed right after saving the record sends no more events."""
    if ending == "error":
        server.script = failing("the Skeptic")
    monkeypatch.setattr("contend.debates.journal.Journal.confirm", lambda *_: None)
    debate = await begin(records, pause="each_round" if ending == "paused" else "never")
    await run(records, debate)
    newest = records.journal.newest(debate.id)
    assert newest is not None
    assert newest.name == ending


async def test_event_numbers_continue_after_the_newest_stored_event(records: Repository) -> None:
    paused = await run(records, await begin(records, pause="each_round"))
    before = stored(records, paused)
    # As a crash leaves it that came before the numbers of this run were reserved.
    execute(records, "UPDATE debates SET last_seq=0")
    await run(records, paused)
    after = stored(records, paused)
    assert after[: len(before)] == before
    assert after[len(before)]["event"] == "resumed"


async def test_a_debate_stored_without_events_can_be_watched_from_the_start(
    records: Repository,
) -> None:
    paused = await run(records, await begin(records, pause="each_round"))
    execute(records, "DELETE FROM debate_events")
    shown = events_of_record(records.find(paused.id))  # what a viewer sees before it goes on
    await run(records, paused, Remark(finish=True))
    events = stored(records, paused)
    about = [(event["seq"], event["event"], event["content"]) for event in events]
    assert about[: len(shown)] == [(e["seq"], e["event"], e["content"]) for e in shown]
    assert (events[0]["event"], events[len(shown)]["event"]) == ("debate_start", "resumed")
    turns = [e["metadata"]["turn"] for e in events if e["event"] == "seat_complete"]
    assert len(turns) == len(set(turns))
    assert events[-1]["event"] == "complete"


async def test_viewers_get_an_error_event_for_damaged_checkpoints(
    records: Repository, database: str
) -> None:
    paused = await run(records, await begin(records, pause="each_round"))
    column = "checkpoints SET checkpoint" if database == "sqlite" else "checkpoint_blobs SET blob"
    execute(records, f"UPDATE {column} = :junk", junk=b"\xc1\xc1")
    with pytest.raises(DamagedDebate):
        await run(records, paused)
    last = stored(records, paused)[-1]
    assert last["event"] == "error"
    assert "checkpoints are damaged" in last["content"]
