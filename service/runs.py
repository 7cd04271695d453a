"""Runs debates for clients; a debate continues even if its client disconnects."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from langgraph.runtime import RunControl

from contend.debates.forecasts import PROTOCOL
from contend.debates.leases import LEASE, LeaseLost
from contend.debates.live import LiveEvents
from contend.debates.prepare import DebateDraft, draft_debate, prepare_debate, write_debate
from contend.debates.record import StoredDebate
from contend.debates.repository import DebateExists, Repository, TaskAccepted, UnfinishedTask
from contend.debates.run import open_repository, run_debate
from contend.debates.server_debates import begin_on_server, is_only_prepared
from contend.debates.waiting import wait_for_event
from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.settings import DebateSettings
from contend.graph.settings.forecast import settings_of
from contend.graph.state import Remark
from contend.service.errors import (
    Refused,
    database_unavailable,
    refusing_models,
    refusing_settings,
)
from contend.service.logs import log_error, log_note, log_trouble
from contend.service.options import ServiceOptions
from contend.service.run import PAUSED, Run

# Added to the debate's own time limit, after which it returns a partial result.
_GRACE = 5.0
_SECONDS_TO_STOP = 20.0
_SECONDS_BETWEEN_CHECKS = 30.0
# The machine that ran a debate last may resume it first; it checks several times in this period.
_HEAD_START = 4 * _SECONDS_BETWEEN_CHECKS
_LAST_EVENTS = ("paused", "error", "complete")
_STOPS = "the service stops"


class Runs:
    def __init__(self, options: ServiceOptions) -> None:
        self.options = options
        self._records: Repository | None = None
        self._live: LiveEvents | None = None
        self._running: dict[str, Run] = {}
        self._starting: list[str] = []
        """The client of each debate that is being prepared."""
        self._stopping = asyncio.Event()
        self._resuming: asyncio.Task[None] | None = None
        self._seen: dict[str, float] = {}
        """When each abandoned debate was first noticed."""

    async def open(self) -> None:
        self._records = await asyncio.to_thread(open_repository)
        self._live = LiveEvents(self._records)
        self._live.forget_old_chunks_hourly()
        if self.options.resumes_debates:
            self._resuming = asyncio.create_task(self._resume_unfinished())

    async def stop(self) -> None:
        self._stopping.set()
        if self._live:
            await self._live.close()
        for each in self._running.values():
            each.stop(_STOPS)
        if here := sum(not each.is_detached for each in self._running.values()):
            log_note(f"Finishing the current turn of {_debates(here)}.")
        running = list(self._running.values())
        if self._resuming:  # not cancelled, because a check in progress would leak its connection
            await self._resuming
        running += [each for each in self._running.values() if each not in running]
        await _end({each.task for each in running})
        there = sum(each.is_detached and each.task.cancelled() for each in running)
        left = sum(_is_unfinished(each) for each in running) - there
        by = "the service resumes them" if self.options.resumes_debates else "resume them"
        for count, what in ((left, "paused"), (there, "left to the server")):
            if count:
                log_note(f"{_debates(count)} {what}; {by} when it starts again.")

    async def close(self) -> None:
        await self.stop()
        if self._records:
            await asyncio.to_thread(self._records.close)

    async def _resume_unfinished(self) -> None:
        while True:
            try:
                await self.resume_unfinished_once()
            except DatabaseUnavailable:  # clients get an error when they send a request
                pass
            except Exception as error:  # noqa: BLE001 - the next check may succeed
                log_error("could not check for unfinished debates", error)
            if await wait_for_event(_SECONDS_BETWEEN_CHECKS, self._stopping):
                return

    async def resume_unfinished_once(self) -> list[Run]:
        found = await asyncio.to_thread(self.records.unfinished, LEASE)
        # A debate that waits for an answer or a larger budget would only pause again.
        found = [each for each in found if not each.debate.is_out_of_budget]
        due = self._debates_to_resume(
            [each for each in found if not await self.is_waiting(each.debate)]
        )
        if due:
            log_note(f"Resuming {_debates(len(due))} left unfinished.")
        return [self.begin(debate) for debate in due]

    def _debates_to_resume(self, unfinished: list[UnfinishedTask]) -> list[StoredDebate]:
        now = asyncio.get_running_loop().time()
        self._seen = {each.debate.id: self._seen.get(each.debate.id, now) for each in unfinished}
        free = self.options.max_running - len(self._running) - len(self._starting)
        due = [
            each.debate
            for each in unfinished
            if each.debate.id not in self._running
            and not (each.elsewhere and now - self._seen[each.debate.id] < _HEAD_START)
        ]
        return due[: max(free, 0)]

    @property
    def records(self) -> Repository:
        if self._records is None:
            raise RuntimeError("the service is not started")
        return self._records

    @property
    def live(self) -> LiveEvents:
        if self._live is None:
            raise RuntimeError("the service is not started")
        return self._live

    def is_here(self, debate_id: str) -> bool:
        return self.find_run(debate_id) is not None

    def ids_here(self) -> tuple[str, ...]:
        return tuple(self._running)

    def find_run(self, debate_id: str) -> Run | None:
        return self._running.get(debate_id)

    async def find_active_run(self, debate_id: str) -> Run | None:
        """Return a debate's run, or None. If the run is about to end, wait for the end first."""
        run = self.find_run(debate_id)
        if run and not run.remark and await self._is_ending(run):
            await asyncio.wait({run.task})
        return self.find_run(debate_id)

    async def _is_ending(self, run: Run) -> bool:
        newest = await asyncio.to_thread(self.records.journal.newest, run.debate.id)
        if newest is None or run.last_seq is None:
            return False
        return newest.name in _LAST_EVENTS and newest.seq >= run.last_seq

    async def is_waiting(self, debate: StoredDebate) -> bool:
        if debate.status != "paused":
            return False
        return bool(await asyncio.to_thread(self.records.journal.pending_request, debate.id))

    async def find(self, debate_id: str) -> StoredDebate:
        """Return the forecast with this full id; raise Refused if there is none."""
        missing = Refused(404, "not_found", f"No forecast has the id {debate_id}.")
        try:
            found = await asyncio.to_thread(self.records.find, debate_id, with_turns=False)
        except BadInput as error:
            raise missing from error
        if found.protocol != PROTOCOL:
            raise missing
        return self.with_live_status(found)

    def with_live_status(self, found: StoredDebate) -> StoredDebate:
        # A debate that we run looks abandoned until it has its lease.
        ours = found.status == "interrupted" and self.is_here(found.id)
        return found.model_copy(update={"status": "running"}) if ours else found

    async def find_task(self, task_id: str) -> StoredDebate:
        # PostgreSQL does not accept NUL characters, even in a comparison.
        known = "\x00" not in task_id
        found = await asyncio.to_thread(self.records.newest_of_task, task_id) if known else None
        if found is None:
            raise Refused(404, "not_found", "No forecast has this task_id.")
        return await self.find(found)

    async def find_repeated(
        self, request: DebateRequest, debate_id: str, *, wait: bool
    ) -> StoredDebate | None:
        try:
            found = await self.find(debate_id)
        except Refused:
            return None
        if is_only_prepared(found):  # nothing runs it, so it is started anew or refused
            return None
        if found.state.get("request") != request.model_dump(mode="json"):
            detail = "This Idempotency-Key was used for another request. Use a new one."
            raise Refused(422, "key_reused", detail, debate_id=debate_id)
        run = self._running.get(debate_id)
        return await self.wait(run) if run and wait else found

    async def check_ready(self) -> None:
        if self._stopping.is_set():
            raise Refused(503, "stopping", "The service is stopping.")
        await asyncio.to_thread(self.records.debate_of, "")

    async def start(self, request: DebateRequest, client: str, debate_id: str | None = None) -> Run:
        with self.reserve_slot(client):
            try:
                debate = await self._prepared(request, debate_id)
            except DebateExists as taken:
                detail = "A request with the same Idempotency-Key was accepted just now."
                raise Refused(409, "already_running", detail, debate_id=debate_id) from taken
            except TaskAccepted as taken:
                detail = f"Task {request.task_id!r} already has a running debate."
                running = await asyncio.to_thread(self.records.debate_of, request.task_id)
                raise Refused(409, "already_running", detail, debate_id=running) from taken
        return self.begin(debate, client=client)

    @contextmanager
    def reserve_slot(self, client: str) -> Iterator[None]:
        """Reserve a slot while a debate is prepared; raise Refused if no slot is free."""
        if self._stopping.is_set():
            raise Refused(503, "stopping", "The service is stopping; try again later.")
        clients = [*(run.client for run in self._running.values()), *self._starting]
        if len(clients) >= self.options.max_running:
            detail = f"{_debates(self.options.max_running)} may run at once; try again later."
            raise Refused(429, "busy", detail)
        if clients.count(client) >= self.options.max_running_per_client:
            detail = f"You have {_debates(clients.count(client))} running; try again later."
            raise Refused(429, "too_many_debates", detail)
        self._starting.append(client)
        try:
            yield
        finally:
            self._starting.remove(client)

    def begin(
        self,
        debate: StoredDebate,
        remark: Remark | None = None,
        *,
        client: str = "",
        settings: DebateSettings | None = None,
    ) -> Run:
        run = Run(debate.model_copy(update={"status": "running"}), client, settings=settings)
        self._running[debate.id] = run
        run.task = asyncio.create_task(self._run(run, remark))
        return run

    async def _prepared(self, request: DebateRequest, debate_id: str | None) -> StoredDebate:
        with refusing_settings():
            settings = await asyncio.to_thread(self.options.settings, settings_of(request))
        draft = draft_debate(request.prediction_context.task.question, settings)
        with refusing_models():
            return await self.store(draft, request, debate_id or str(uuid4()), request.task_id)

    async def store(
        self, draft: DebateDraft, request: DebateRequest | None, debate_id: str, task_id: str
    ) -> StoredDebate:
        if self.options.server:
            given = self.records, self.options.server, draft, request, debate_id, task_id
            return await begin_on_server(*given)
        prepared = await prepare_debate(draft, fetch=False)
        about = {"task_id": task_id, "debate_id": debate_id}
        return await asyncio.to_thread(write_debate, self.records, prepared, request, **about)

    async def _run(self, run: Run, remark: Remark | None) -> StoredDebate | None:
        debate_id = run.debate.id
        try:
            return await self._run_with_remarks(run, remark)
        # Another process is running the debate, or it cannot be read.
        except (BadInput, LeaseLost, DatabaseUnavailable) as unable:
            run.failure = unable
            log_trouble(f"debate {debate_id} cannot continue now: {unable}")
        except Exception as error:  # noqa: BLE001 - no caller could catch it
            run.failure = error
            log_error(f"debate {debate_id} ended in an error", error)
        finally:  # no await here, so no comment can be added between these lines
            self._running.pop(debate_id, None)
            if run.remark:
                log_trouble(f"Debate {debate_id} ended before it could use a user's comment.")
        return None

    async def _run_with_remarks(self, run: Run, remark: Remark | None) -> StoredDebate:
        ended = await self._run_once(run, remark)
        while run.remark and ended.status == "paused":
            ended = await self._continue_with_remark(run, run.remark)
        return ended

    async def _run_once(self, run: Run, remark: Remark | None) -> StoredDebate:
        if self._stopping.is_set() and remark:  # store the remark, and stop again
            run.control.request_drain(_STOPS)
        elif self._stopping.is_set():
            run.stop(_STOPS)
        try:
            given = self.records, run.debate, run.observe, run.control, remark
            return await run_debate(*given, settings=run.settings)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not (run.remark and self._stopping.is_set() and task):
                raise
            task.uncancel()  # run once more, only to store the comment
            return await asyncio.to_thread(self.records.find, run.debate.id)

    async def _continue_with_remark(self, run: Run, remark: Remark) -> StoredDebate:
        """Continue with the user's comment; if the comment comes too late, continue without it."""
        run.remark, run.last_seq, run.control = None, None, RunControl()
        if run.is_paused:  # store the remark, and stop again
            run.control.request_drain(PAUSED)
        # If the rounds are already over, the comment alone may still be accepted.
        for usable in (remark, Remark(say=remark.say)) if remark.finish else (remark,):
            try:
                return await self._run_once(run, usable)
            except BadInput as refused:
                log_trouble(f"debate {run.debate.id} cannot use a user's comment: {refused}")
        return await self._run_once(run, None)

    async def wait(self, run: Run) -> StoredDebate:
        limit = run.debate.settings["overall_timeout"] + _GRACE
        await asyncio.wait({run.task}, timeout=limit)
        ended = run.task.result() if run.task.done() and not run.task.cancelled() else None
        try:
            return ended or await self.find(run.debate.id)
        except DatabaseUnavailable as outage:
            raise database_unavailable(run.debate.id) from outage


async def _end(tasks: set[asyncio.Task[StoredDebate | None]]) -> None:
    if tasks:
        _, slow = await asyncio.wait(tasks, timeout=_SECONDS_TO_STOP)
        for task in slow:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_unfinished(run: Run) -> bool:
    if run.task.cancelled():
        return True
    ended = run.task.result()
    return ended is not None and ended.status == "paused" and not run.is_paused


def _debates(count: int) -> str:
    return f"{count} debate{'' if count == 1 else 's'}"
