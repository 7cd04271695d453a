import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast
from uuid import UUID

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from contend.debates.events import Announcer, Event, Watch, answer_writer, start_event
from contend.debates.exports.folder import FolderState, FolderWriter
from contend.debates.feedback import send_auto_score
from contend.debates.fingerprint import describe_changes, fingerprint_of
from contend.debates.history import Graph, write_state
from contend.debates.leased import leased
from contend.debates.leases import Lease, LeaseLost
from contend.debates.record import StoredDebate
from contend.debates.recordings import load_recording
from contend.debates.remarks import answer_pause, refuse_unusable_remark
from contend.debates.repository import Repository
from contend.debates.server_debates import take_opening
from contend.debates.server_graph import graph_for, is_detached
from contend.debates.servers import ServerLost
from contend.debates.spending import budget_of, close_ledger, open_ledger, why_not_asked
from contend.graph.checkpoints.location import database
from contend.graph.checkpoints.outages import retry_until_available
from contend.graph.errors import (
    BUDGET,
    BadInput,
    DamagedDebate,
    DatabaseUnavailable,
    ModelFailed,
    NotRecorded,
    Paused,
)
from contend.graph.events import EventName, events_received_by, node_event, turn_event
from contend.graph.protocols.base import strategy_for
from contend.graph.record import Status
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, Remark
from contend.graph.values import Degradation
from contend.models.budget import using_ledger
from contend.models.failures import scrub
from contend.models.providers.registry import open_models
from contend.models.recording import CallKey, RecordedCall, Recording, using_recording
from contend.nodes.judge_continue import human_turn
from contend.nodes.record import build_record
from contend.nodes.timing import start_clock

_WritePolicy = Callable[[Callable[[], Awaitable[None]]], Coroutine[Any, Any, None]]

_RESERVED_EVENTS = 1_000_000


def open_repository() -> Repository:
    return Repository(database())


async def run_debate(
    records: Repository,
    debate: StoredDebate,
    watch: Watch,
    control: RunControl,
    remark: Remark | None = None,
    *,
    settings: DebateSettings | None = None,
    rate_again: bool = False,
) -> StoredDebate:
    """Run a debate until it is done, pauses or fails; with `rate_again`, run only the judge."""
    run: _Run | None = None
    try:
        if debate.last_seq:
            await asyncio.to_thread(records.store_missing_events, debate.id)
        async with (
            leased(records, debate.id) as lease,
            graph_for(debate, lease) as graph,
            open_models(),
        ):
            # Read it again, because the previous holder of the lease may have continued the debate.
            current = await asyncio.to_thread(records.find, debate.id)
            if not rate_again:
                _refuse_done(current)
            if settings:
                # Keep the internal settings, such as the use of a recording.
                changed = {**current.settings, **settings.model_dump(mode="json")}
                await asyncio.to_thread(records.change_settings, debate.id, changed)
                current = current.model_copy(update={"settings": changed})
            stored = await asyncio.to_thread(records.journal.last_seq, debate.id)
            current = current.model_copy(update={"last_seq": max(current.last_seq, stored)})
            run = _Run(records, lease, current, graph, watch, control)
            await asyncio.to_thread(load_recording, records, current, run.recording)
            if rate_again:
                await run.return_to_rating()
                run.recording.count(await asyncio.to_thread(records.recordings.read, debate.id))
            await run.go(remark or Remark())
        ended = await asyncio.to_thread(records.find, debate.id)
    except DatabaseUnavailable as outage:
        if run is None:
            raise
        return run.as_interrupted(outage)
    except (BadInput, LeaseLost):
        raise
    except Exception as error:
        with suppress(DatabaseUnavailable):
            await asyncio.to_thread(records.give_up, debate.id, _reason(error))
        raise
    finally:
        if run:
            records.journal.end(run.lease)
    await asyncio.to_thread(send_auto_score, ended)
    return ended


class _Run:
    def __init__(
        self,
        records: Repository,
        lease: Lease,
        debate: StoredDebate,
        graph: Graph,
        watch: Watch,
        control: RunControl,
    ) -> None:
        self.records, self.lease, self.debate, self.graph = records, lease, debate, graph
        self.watch, self.control = watch, control
        self.announcer = Announcer(debate.id, self._send, debate.last_seq)
        self.settings = debate.settings_to_run()
        self.recording = Recording(keep=self._record)
        self.state: DebateState = debate.as_state()
        self.config: Any = {
            "configurable": {"thread_id": debate.id},
            "recursion_limit": strategy_for(self.settings).max_steps,
        }
        self._folder, self._reported_trouble = FolderWriter(debate, self.settings), False
        self._saving: asyncio.Task[None] | None = None
        self._next: str | tuple[()] = ()
        self._status: Status = "running"
        self._error: str | None = None
        # Event numbers are reserved ahead, so that none is used twice after a crash.
        self._reserved = debate.last_seq + _RESERVED_EVENTS

    async def go(self, remark: Remark) -> None:
        start_clock()
        given = await self._input(remark)  # first, so that a refused comment changes nothing
        await self._save("running")
        ledger = await open_ledger(self.records, self.debate.id, self.settings, self.state)
        try:
            with using_recording(self.recording), using_ledger(self.debate.id, ledger):
                await self._run(given)
        finally:  # while we still hold the lease
            await close_ledger(self.records, self.debate, self.settings, self.state)
            await self.records.journal.flush(self.lease)

    async def _run(self, given: DebateState | Command[Any] | None) -> None:
        try:
            with events_received_by(self.announcer.pass_on):
                interrupted = await self._stream(given)
        except (LeaseLost, DatabaseUnavailable):
            raise
        except (GraphDrained, Paused, asyncio.CancelledError) as stopped:
            await self._pause(stopped)
            if isinstance(stopped, asyncio.CancelledError):
                raise
        except NotRecorded as unknown:
            await self._close("failed", "error", f"{unknown}. It fits another version of Contend")
        except ModelFailed as failed:
            if failed.kind == BUDGET:
                why = why_not_asked(failed, self.settings)
                limits = budget_of(self.settings)
                await self._close("paused", "paused", why, reason=BUDGET, **limits)
                return
            self.state["degraded"] = [*self.state.get("degraded", []), *failed.degraded]
            who = {"seat": failed.seat, "model": failed.model, "kind": failed.kind}
            await self._close("failed", "error", scrub(str(failed)), **who)
        except Exception as error:
            await self._close("failed", "error", _reason(error))
            raise
        else:
            if interrupted:
                await self._close("paused", "paused", "waiting for a person", ask=interrupted)
            else:
                answer = self.state.get("final_answer", "")
                writer = answer_writer(self.state.get("turns", []))
                await self._close("done", "complete", answer, **writer)

    async def _pause(self, stopped: BaseException) -> None:
        if is_detached(self.control):  # the next process follows the same run
            await self._saved()
        else:
            why = str(stopped) if isinstance(stopped, Paused) else ""
            await self._close("paused", "paused", why or "stopped by the user")

    async def _record(self, key: CallKey, call: RecordedCall) -> None:
        """Record a call, unless the database is unavailable."""
        with suppress(DatabaseUnavailable):  # the debate continues, but cannot be replayed
            await asyncio.to_thread(self.records.recordings.add, self.debate.id, key, call)

    def _send(self, event: Event) -> None:
        self.records.journal.add(event, self.lease)
        self.watch(event)

    async def return_to_rating(self) -> None:
        """Rewind to just after the answer was written, so that the judge runs next."""
        snapshot = await self.graph.aget_state(self.config)
        if "final_answer" not in snapshot.values:
            raise BadInput(f"The checkpoints of debate {self.debate.id[:8]} are missing.")
        if self.debate.server:  # only its runs know that we keep the record
            self._next = "score"
        else:
            await write_state(self.graph, self.config, {}, "synthesize")

    async def _input(self, remark: Remark) -> DebateState | Command[Any] | None:
        snapshot = await self._snapshot()
        if not snapshot.parent_config:  # the first run's trace gets the debate's id
            self.config["run_id"] = UUID(self.debate.id)
        if not snapshot.interrupts:
            refuse_unusable_remark(remark, snapshot)
        if not snapshot.created_at:
            await self._say_started()
            return {**self.state}
        if self.debate.server and not (self.debate.last_seq or self._next):  # only prepared there
            self.state = cast("DebateState", snapshot.values)
            opening = await take_opening(self.records, self.debate, self.state)
            await self._say_started()
            for each in opening:
                self.announcer.pass_on(each)
            return None
        recorded, self.state = self.state, cast("DebateState", snapshot.values)
        self._end_reuse()
        await self._store_missing_turn_events()
        await self._say_resumed()
        if snapshot.interrupts:
            saver = cast("BaseCheckpointSaver[Any]", self.graph.checkpointer)
            return await answer_pause(saver, self.config, snapshot, remark)
        # A command, because update_state would discard the finished calls of the current step.
        update: dict[str, Any] = {}
        if remark.say:
            said = human_turn(self.state, remark.say)
            self.announcer.pass_on(turn_event(said))
            update["turns"] = [said]
        update |= {"finish": True} if remark.finish else {}
        unsaved = recorded.get("degraded", [])[len(self.state.get("degraded", [])) :]
        update |= {"degraded": unsaved} if unsaved else {}
        return Command(update=update, goto=self._next) if update or self._next else None

    async def _say_started(self) -> None:
        begun = start_event(self.debate)
        begun["metadata"]["run_with"] = await asyncio.to_thread(fingerprint_of, self.settings)
        self.announcer.pass_on(begun)

    async def _say_resumed(self) -> None:
        now = await asyncio.to_thread(fingerprint_of, self.settings)
        before = await asyncio.to_thread(self.records.journal.last_fingerprint, self.debate.id)
        changed = describe_changes(before, now) if before else ""
        limits = budget_of(self.settings)
        self.announcer.say("resumed", self.state.get("round"), changed, run_with=now, **limits)

    async def _store_missing_turn_events(self) -> None:
        """Store the missing events of turns that ended just before a crash; do not show them."""
        journal = self.records.journal
        seen = await asyncio.to_thread(journal.completed_turns, self.debate.id)
        for turn in self.state.get("turns", []):
            if turn.id not in seen:
                journal.add(self.announcer.number(turn_event(turn)), self.lease)

    async def _snapshot(self) -> StateSnapshot:
        try:
            return await self.graph.aget_state(self.config)
        except ServerLost as lost:  # nothing has changed yet, and the debate may continue there
            raise BadInput(f"{lost}. Check the address, and that it is running.") from lost
        except (ValueError, TypeError, KeyError, sqlite3.DatabaseError) as error:
            debate = self.debate.id
            message = (
                f"Debate {debate} cannot continue: its checkpoints are damaged. Restore a backup "
                f"of the database; `contend show {debate[:8]}` prints what is recorded."
            )
            raise DamagedDebate(debate, message) from error

    async def _stream(self, given: DebateState | Command[Any] | None) -> Any:
        interrupted: Any = None
        async for part in self.graph.astream(
            given,
            self.config,
            context=self.settings,
            stream_mode=["custom", "values"],
            durability="sync",
            control=self.control,
            version="v2",
        ):
            if part["type"] == "custom" and isinstance(part["data"], Exception):
                raise part["data"]
            if part["type"] == "custom":
                self.announcer.pass_on(part["data"])
            elif part["type"] == "values":
                self.state = cast("DebateState", part["data"])
                interrupted = part["interrupts"][0].value if part["interrupts"] else None
                self._end_reuse()
                await self._save("running")
        return interrupted

    def _end_reuse(self) -> None:
        taken = {turn.id for turn in self.state.get("turns", [])}
        if self.debate.reused_turns and self.debate.reused_turns <= taken:
            self.recording.known = {}

    def as_interrupted(self, outage: DatabaseUnavailable) -> StoredDebate:
        """Return the in-memory debate, with the status `paused` instead of `running`."""
        if self._status == "running":
            self._status, self._error = "paused", str(outage)
            self.announcer.say("paused", self.state.get("round"), str(outage))
        return self.debate.with_state(self._status, self.state, self._error)

    async def _close(self, status: Status, event: EventName, content: str, **metadata: Any) -> None:
        await self._saved()
        error = content if status == "failed" or metadata.get("reason") == BUDGET else None
        # Write the folder before the record, so that the record includes its problems.
        await asyncio.to_thread(self._folder.write, FolderState(status, error, self.state))
        self._report_trouble()
        journal = self.records.journal
        await journal.flush(self.lease)
        said = node_event(event, self.state.get("round"), content, **metadata)
        last = self.announcer.number(said)
        self._reserved = last["seq"]
        # Stored with the record, so that a crash cannot lose the last event.
        unsaved = [*journal.pending(self.lease), last]
        self._start_saving(retry_until_available, status, error, unsaved)
        await self._saved()
        journal.confirm(self.lease, unsaved)
        self._status, self._error = status, error
        self.watch(last)

    async def _save(self, status: Status) -> None:
        """Wait for the previous save to finish, then start the next one in the background."""
        await self._saved()
        self._start_saving(_skip_if_unavailable, status)

    def _start_saving(
        self,
        policy: _WritePolicy,
        status: Status,
        error: str | None = None,
        said: Sequence[Event] = (),
    ) -> None:
        given = status, self.state, self._reserved, error, said
        self._saving = asyncio.create_task(policy(partial(asyncio.to_thread, self._write, *given)))

    def _write(
        self,
        status: Status,
        state: DebateState,
        last_seq: int,
        error: str | None,
        said: Sequence[Event],
    ) -> None:
        self.records.save(self.lease, status, state, last_seq, error, said)
        self._folder.write(FolderState(status, error, state))

    def _report_trouble(self) -> None:
        if self._folder.trouble and not self._reported_trouble:
            self._reported_trouble = True
            what = {"what": "folder_incomplete", "seat": None, "restart": False}
            self.announcer.say("degraded", None, self._folder.trouble, **what)
            problem = Degradation(what="folder_incomplete", why=self._folder.trouble)
            self.state["degraded"] = [*self.state.get("degraded", []), problem]
            if "trace" in self.state:
                self.state["trace"] = build_record(self.state, self.debate.id).as_json()

    async def _saved(self) -> None:
        """Wait for the save in progress, which finishes even if the run is cancelled."""
        if self._saving:
            try:
                await asyncio.shield(self._saving)
            finally:
                # Report a failed write only once, so that the last write can still happen.
                if self._saving.done():
                    self._saving = None


def _refuse_done(debate: StoredDebate) -> None:
    if debate.status == "done":
        raise BadInput(f"Debate {debate.id} is done; `contend show {debate.id[:8]}` prints it.")


def _reason(error: Exception) -> str:
    kind = "" if isinstance(error, DamagedDebate) else f"{type(error).__name__}: "
    return scrub(f"{kind}{error}")


async def _skip_if_unavailable(write: Callable[[], Awaitable[None]]) -> None:
    with suppress(DatabaseUnavailable):
        await write()
