"""Keeps records and leases for threads that a LangGraph server runs."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy.exc import IntegrityError

from contend.debates.adoption import adopt, write_origin_of_copy
from contend.debates.checkpoint_threads import SEEN_CHECKPOINT
from contend.debates.leased import leased
from contend.debates.leases import LEASE, RECORD, RUN, Lease, LeaseColumns
from contend.debates.loading import UNREADABLE
from contend.debates.record import StoredDebate, settings_in
from contend.debates.repository import Repository
from contend.debates.spending import why_not_asked
from contend.graph.errors import BUDGET, BadInput, DatabaseUnavailable, ModelFailed
from contend.graph.record import Status
from contend.graph.runners import RECORDED_BY
from contend.graph.settings import SETTINGS
from contend.graph.state import DebateState
from contend.models.failures import scrub
from contend.models.recording import (
    CallKey,
    RecordedCall,
    Recording,
    is_recording,
    recording_debate,
)
from contend.nodes.own_settings import stored_settings

# How often to check whether a crashed worker's lease has expired.
_SECONDS_BETWEEN_TRIES = 1.0

_log = logging.getLogger("contend.debates")


class Ending(NamedTuple):
    status: Status
    error: str | None = None


@dataclass
class _Run:
    runner: asyncio.Task[Any] | None
    stack: AsyncExitStack
    is_copy: bool = False
    """Whether the thread may be a copy: it had checkpoints before its first run."""
    is_kept_elsewhere: bool = False
    """Whether another process follows this run and writes the record in our database."""
    lease: Lease | None = None
    last_seq: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    """The record's settings, including those that are missing from the state."""
    recorded: DebateState = field(default_factory=DebateState)
    """A partial state: the protocol and settings of the record or of the original debate."""


class ThreadRunner:
    """Ensures that only one process runs a LangGraph thread, and updates the thread's record."""

    def __init__(self, records: Callable[[], Repository], where: str) -> None:
        self._records, self._where = records, where
        self._runs: dict[str, _Run] = {}

    @asynccontextmanager
    async def hold_lease(self, graph: Any, config: Any) -> AsyncIterator[None]:
        thread = str(config["configurable"].get("thread_id", ""))
        # Our own runner holds its lease itself; a run without checkpoints cannot be continued.
        if is_recording() or not graph.checkpointer or not is_debate_id(thread):
            yield
            return
        async with AsyncExitStack() as stack:
            run = _Run(asyncio.current_task(), stack)
            found = await asyncio.to_thread(_find_or_none, self._records(), thread)
            if found is None:
                await asyncio.to_thread(self._note_original, run, thread)
            else:
                await self._take(run, thread, RUN)
                run.is_kept_elsewhere = await self._is_kept_elsewhere(found, config)
                if not run.is_kept_elsewhere:
                    await self._acquire_for_run(run, found)
            self._runs[thread] = run
            failure: BaseException | None = None
            recording = Recording(keep=partial(self._record, run, thread))
            try:
                with recording_debate(thread, recording):
                    yield
            except BaseException as error:
                failure = error
                raise
            finally:
                self._runs.pop(thread, None)
                with _log_errors(thread) if failure else nullcontext():
                    await asyncio.shield(self._end(run, graph, thread, failure))

    def _note_original(self, run: _Run, thread: str) -> None:
        """Set `is_copy`; for a copy, also set `recorded` from the original debate's settings."""
        records = self._records()
        run.is_copy = records.threads.first_checkpoint(thread) is not None
        if run.is_copy and (original := records.threads.find_original(thread)):
            with suppress(BadInput, *UNREADABLE):  # deleted or damaged; a copy rarely needs it
                run.recorded = _settings_of(records.find(original[0], with_turns=False))

    async def save_state(self, protocol: str, debate_id: str, state: DebateState) -> None:
        """Save the state; the first state with seats creates the debate record."""
        run = self._runs.get(debate_id)
        if run and not run.is_kept_elsewhere and state.get("settings") and state.get("retrieval"):
            await self._save(run, protocol, debate_id, state, Ending("running"))

    def recorded_settings(self, debate_id: str) -> DebateState:
        run = self._runs.get(debate_id)
        return run.recorded if run else {}

    async def _record(self, run: _Run, thread: str, key: CallKey, call: RecordedCall) -> None:
        """Record a call, unless the debate has no record yet or has just been deleted."""
        if run.lease or run.is_kept_elsewhere:
            with suppress(DatabaseUnavailable, IntegrityError):
                await asyncio.to_thread(self._records().recordings.add, thread, key, call)

    async def _is_kept_elsewhere(self, found: StoredDebate, config: Any) -> bool:
        """Return whether this run's client, or a later client, holds the record's lease."""
        asker = config.get("metadata", {}).get(RECORDED_BY)
        if not asker:
            return False
        # If the client is gone, another one may have resumed the debate, which follows this run.
        owner = None if found.server else asker
        return await asyncio.to_thread(self._records().is_held_by, found.id, owner)

    async def _adopt(self, run: _Run, protocol: str, debate_id: str, state: DebateState) -> Lease:
        given = self._records(), protocol, debate_id, state, self._where
        debate = await asyncio.to_thread(adopt, *given)
        await self._take(run, debate_id, RUN)
        return await self._acquire_for_run(run, debate)

    async def _acquire_for_run(self, run: _Run, debate: StoredDebate) -> Lease:
        _note_record(run, debate)
        run.lease = await self._take(run, debate.id, RECORD)
        return run.lease

    async def _take(self, run: _Run, debate_id: str, columns: LeaseColumns) -> Lease:
        # A worker on another machine may have crashed in this run: wait until its lease expires.
        for _ in range(int(LEASE.total_seconds())):
            with suppress(BadInput):
                return await self._enter(run, debate_id, columns)
            if not await asyncio.to_thread(self._records().is_held_elsewhere, debate_id, columns):
                break
            await asyncio.sleep(_SECONDS_BETWEEN_TRIES)
        return await self._enter(run, debate_id, columns)

    async def _enter(self, run: _Run, debate_id: str, columns: LeaseColumns) -> Lease:
        holding = leased(self._records(), debate_id, run.runner, columns)
        return await run.stack.enter_async_context(holding)

    async def _save(
        self,
        run: _Run,
        protocol: str,
        debate_id: str,
        state: DebateState,
        ending: Ending,
        seen: Mapping[str, str] | None = None,
    ) -> None:
        lease = run.lease or await self._adopt(run, protocol, debate_id, state)
        settings = {**run.settings, **settings_in(state, protocol), **(seen or {})}
        changed = settings if settings != run.settings else None
        given = lease, ending.status, state, run.last_seq, ending.error
        await asyncio.to_thread(self._records().save, *given, settings=changed)
        run.settings = settings

    async def _end(self, run: _Run, graph: Any, thread: str, failure: BaseException | None) -> None:
        if run.is_kept_elsewhere and not await self._take_record_over(run, thread):
            return
        snapshot = await graph.aget_state({"configurable": {"thread_id": thread}})
        state = snapshot.values
        if not state.get("settings"):
            state = {**state, **run.recorded}
        if run.lease or (state.get("settings") and state.get("retrieval")):
            protocol = state.get("protocol", graph.name)
            ending = ending_of(state, protocol, failure, is_done=not snapshot.next)
            # This ending is what is known of the newest checkpoint, not what an adoption guesses.
            newest = {SEEN_CHECKPOINT: snapshot.config["configurable"].get("checkpoint_id", "")}
            seen = newest if SEEN_CHECKPOINT in run.settings else None
            await self._save(run, protocol, thread, state, ending, seen)
            if run.is_copy:
                await write_origin_of_copy(self._records(), graph, thread)

    async def _take_record_over(self, run: _Run, thread: str) -> bool:
        """Try to take over the record's lease; return False if another process holds the lease."""
        try:
            found = await asyncio.to_thread(self._records().find, thread)
            run.lease = await self._enter(run, thread, RECORD)
        except BadInput:  # a process keeps the record, or has deleted it
            return False
        _note_record(run, found)
        return True


def _note_record(run: _Run, debate: StoredDebate) -> None:
    run.last_seq, run.settings = debate.last_seq, debate.settings
    run.recorded = _settings_of(debate)


def _settings_of(debate: StoredDebate) -> DebateState:
    about = debate.as_settings().model_dump(mode="json")
    return {"protocol": debate.protocol, "settings": about}


@contextmanager
def _log_errors(thread: str) -> Iterator[None]:
    """Log errors instead of raising them, so that the run's own error is not hidden."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - any error is only logged
        why = scrub(f"{type(error).__name__}: {error}")
        _log.error("The end of debate %s could not be stored: %s", thread, why)


def is_debate_id(thread: str) -> bool:
    return 0 < len(thread) <= 36


def _find_or_none(records: Repository, thread: str) -> StoredDebate | None:
    try:
        return records.find(thread, with_turns=False)
    except BadInput:
        return None


def ending_of(
    state: DebateState, protocol: str, failure: BaseException | None, *, is_done: bool
) -> Ending:
    """Return the status and error with which a run ended."""
    if isinstance(failure, ModelFailed) and failure.kind == BUDGET:
        settings = stored_settings(state, SETTINGS[protocol])
        return Ending("paused", why_not_asked(failure, settings))
    if isinstance(failure, Exception) and not isinstance(failure, BadInput):
        return Ending("failed", scrub(str(failure)))
    return Ending("done" if is_done else "paused")
