"""Debates run for callers. A client disconnect does not cancel a debate."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from langgraph.runtime import RunControl

from contend.debates.forecasts import PROTOCOL
from contend.debates.leases import LEASE, LeaseLost
from contend.debates.live import LiveEvents
from contend.debates.prepare import draft_debate, prepare_debate, write_debate
from contend.debates.record import StoredDebate
from contend.debates.repository import DebateExists, Repository, TaskAccepted, UnfinishedTask
from contend.debates.run import open_repository, run_debate
from contend.debates.settings_sources import configure
from contend.debates.waiting import wait_for_event
from contend.graph.errors import BadInput, DatabaseUnavailable, QuestionTooLong
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.settings import SETTINGS, DebateSettings, snake_case
from contend.graph.settings.forecast import ForecastSettings, settings_of
from contend.graph.state import Remark
from contend.models.failures import scrub
from contend.service.errors import Refused, database_away
from contend.service.logs import log_error, log_note, log_trouble

# After the debate's own limit, which ends it with a partial result.
_GRACE = 5.0
_SECONDS_TO_STOP = 20.0
_SECONDS_BETWEEN_CHECKS = 30.0
# For the machine that ran a debate last: it checks several times in this period.
_HEAD_START = 4 * _SECONDS_BETWEEN_CHECKS
_STOPS = "the service stops"


@dataclass(frozen=True)
class ServiceOptions:
    """Models and settings of the service's debates, as on the command line."""

    model: str | None = None
    assignments: Mapping[str, str] = field(default_factory=dict)
    config: Path | None = None
    max_running: int = 32
    """How many debates may run at the same time."""

    open_to_network: bool = False
    """Whether other machines can connect, so that every request needs the token."""
    allowed_models: tuple[str, ...] = ("*",)
    """Patterns of the models that callers may choose."""

    def settings(self, wanted: Mapping[str, object] = MappingProxyType({})) -> ForecastSettings:
        loaded = self.settings_of(PROTOCOL, wanted)
        if loaded.pause != "never":
            raise BadInput("pause must be 'never' in a service, because nobody can answer.")
        return cast("ForecastSettings", loaded)

    def settings_of(
        self, protocol: str, wanted: Mapping[str, object], model: str | None = None
    ) -> DebateSettings:
        """Combine the caller's settings with those of the service that the protocol has."""
        others = {name for each in SETTINGS.values() for name in each.model_fields}
        if protocol in SETTINGS:
            others -= SETTINGS[protocol].model_fields.keys()
        given = self.assignments.items()
        ours = {name: value for name, value in given if snake_case(name) not in others}
        flags: dict[str, Any] = {**ours, **wanted}
        model = model or self.model
        return configure(protocol, flags, model, self.config, dict(os.environ)).settings


@dataclass
class Run:
    debate: StoredDebate
    control: RunControl
    begun: asyncio.Event
    task: asyncio.Task[StoredDebate | None]
    refusal: str = ""

    async def wait_for_start(self) -> None:
        """Wait until the debate runs; refuse the request if it cannot."""
        begun = asyncio.create_task(self.begun.wait())
        await asyncio.wait({self.task, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if self.refusal:
            raise Refused(409, "not_possible", self.refusal, debate_id=self.debate.id)


class Runs:
    def __init__(self, options: ServiceOptions) -> None:
        self.options = options
        self._records: Repository | None = None
        self._live: LiveEvents | None = None
        self._running: dict[str, Run] = {}
        self._starting = 0
        self._stopping = asyncio.Event()
        self._resuming: asyncio.Task[None] | None = None
        self._going_on: set[asyncio.Task[None]] = set()
        self._seen: dict[str, float] = {}
        """When each abandoned debate was first noticed."""

    async def open(self) -> None:
        self._records = await asyncio.to_thread(open_repository)
        self._live = LiveEvents(self._records)
        self._live.forget_old_chunks_hourly()
        self._resuming = asyncio.create_task(self._resume_unfinished())

    async def stop(self) -> None:
        self._stopping.set()
        if self._live:
            await self._live.close()
        if self._running:
            log_note(f"Finishing the current turn of {_debates(len(self._running))}.")
        for each in self._running.values():
            each.control.request_drain(_STOPS)
        tasks = {each.task for each in self._running.values()}
        if self._resuming:  # not cancelled: a check in progress would leak its connection
            await self._resuming
        tasks |= {each.task for each in self._running.values()}
        await _end(tasks)
        # They start once more, to keep what a person said.
        await asyncio.gather(*self._going_on, return_exceptions=True)
        again = {each.task for each in self._running.values()}
        await _end(again)
        tasks |= again
        left = sum(_is_left(task) for task in tasks)
        if left:
            log_note(f"{_debates(left)} paused; the service resumes them when it starts again.")

    async def close(self) -> None:
        await self.stop()
        if self._records:
            await asyncio.to_thread(self._records.close)

    async def _resume_unfinished(self) -> None:
        """Periodically resume debates left unfinished by a stopped service or a lost database."""
        while True:
            try:
                due = self._due(await asyncio.to_thread(self.records.unfinished, LEASE))
                if due:
                    log_note(f"Resuming {_debates(len(due))} left unfinished.")
                for debate in due:
                    self.begin(debate)
            except DatabaseUnavailable:  # reported to callers
                pass
            except Exception as error:  # noqa: BLE001 - the next check may succeed
                log_error("could not check for unfinished debates", error)
            if await wait_for_event(_SECONDS_BETWEEN_CHECKS, self._stopping):
                return

    def _due(self, unfinished: list[UnfinishedTask]) -> list[StoredDebate]:
        now = asyncio.get_running_loop().time()
        self._seen = {each.debate.id: self._seen.get(each.debate.id, now) for each in unfinished}
        free = self.options.max_running - len(self._running) - self._starting
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
        """Return whether this service runs the debate."""
        return debate_id in self._running

    async def find(self, debate_id: str) -> StoredDebate:
        """Return a forecast by its whole id, or refuse with 404."""
        missing = Refused(404, "not_found", f"No forecast has the id {debate_id}.")
        try:
            found = await asyncio.to_thread(self.records.find, debate_id, with_turns=False)
        except BadInput as error:
            raise missing from error
        if found.protocol != PROTOCOL:
            raise missing
        return self.with_live_status(found)

    def with_live_status(self, found: StoredDebate) -> StoredDebate:
        # Our own debate looks abandoned until it has its lease.
        ours = found.status == "interrupted" and self.is_here(found.id)
        return found.model_copy(update={"status": "running"}) if ours else found

    async def find_task(self, task_id: str) -> StoredDebate:
        """Return the newest forecast of a task, or refuse with 404."""
        # PostgreSQL cannot even compare with NUL.
        known = "\x00" not in task_id
        found = await asyncio.to_thread(self.records.newest_of_task, task_id) if known else None
        if found is None:
            raise Refused(404, "not_found", "No forecast has this task_id.")
        return await self.find(found)

    async def find_repeated(
        self, request: DebateRequest, debate_id: str, *, wait: bool
    ) -> StoredDebate | None:
        """Return the debate of an earlier request with the same key, if there was one."""
        try:
            found = await self.find(debate_id)
        except Refused:
            return None
        if found.state.get("request") != request.model_dump(mode="json"):
            detail = "This Idempotency-Key was used for another request. Use a new one."
            raise Refused(422, "key_reused", detail, debate_id=debate_id)
        run = self._running.get(debate_id)
        return await self.wait(run) if run and wait else found

    async def check_ready(self) -> None:
        """Refuse if the service is stopping or cannot reach its database."""
        if self._stopping.is_set():
            raise Refused(503, "stopping", "The service is stopping.")
        await asyncio.to_thread(self.records.debate_of, "")

    async def start(self, request: DebateRequest, debate_id: str | None = None) -> Run:
        with self.one_more():
            try:
                debate = await self._prepared(request, debate_id)
            except DebateExists as taken:
                detail = "A request with the same Idempotency-Key was accepted just now."
                raise Refused(409, "already_running", detail, debate_id=debate_id) from taken
            except TaskAccepted as taken:
                detail = f"Task {request.task_id!r} already has a running debate."
                running = await asyncio.to_thread(self.records.debate_of, request.task_id)
                raise Refused(409, "already_running", detail, debate_id=running) from taken
        return self.begin(debate)

    @contextmanager
    def one_more(self) -> Iterator[None]:
        """Reserve a place for a debate that is being prepared; refuse if there is none."""
        if self._stopping.is_set():
            raise Refused(503, "stopping", "The service is stopping; try again later.")
        if len(self._running) + self._starting >= self.options.max_running:
            detail = f"{self.options.max_running} debates are running; try again later."
            raise Refused(429, "busy", detail)
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    def begin(self, debate: StoredDebate, remark: Remark | None = None) -> Run:
        debate = debate.model_copy(update={"status": "running"})
        control = RunControl()
        if self._stopping.is_set():  # after the debate was accepted
            control.request_drain(_STOPS)
        begun = asyncio.Event()
        task = asyncio.create_task(self._run(debate, control, begun, remark))
        run = Run(debate, control, begun, task)
        self._running[debate.id] = run
        task.add_done_callback(lambda _: self._running.pop(debate.id, None))
        return run

    async def _prepared(self, request: DebateRequest, debate_id: str | None) -> StoredDebate:
        with _refusing(503, "misconfigured", "The settings of this service cannot be used"):
            settings = await asyncio.to_thread(self.options.settings, settings_of(request))
        draft = draft_debate(request.prediction_context.task.question, settings)
        with _refusing(503, "models_unavailable", "The models of this service are not available"):
            prepared = await prepare_debate(draft, fetch=False)
        return await asyncio.to_thread(
            write_debate,
            self.records,
            prepared,
            request,
            task_id=request.task_id,
            debate_id=debate_id,
        )

    def pause(self, debate_id: str) -> None:
        """Stop a debate of this service after its current turn."""
        self._running[debate_id].control.request_drain("paused by a user")

    def go_on_in_background(self, debate_id: str, remark: Remark) -> None:
        """Stop a debate after its current turn, and go on with what a person says."""
        task = asyncio.create_task(self._pause_and_resume(debate_id, remark))
        self._going_on.add(task)
        task.add_done_callback(self._going_on.discard)

    async def _pause_and_resume(self, debate_id: str, remark: Remark) -> None:
        run = self._running[debate_id]
        run.control.request_drain("a user has something to say")
        await asyncio.wait({run.task})
        try:
            stopped = await asyncio.to_thread(self.records.find, debate_id)
        except DatabaseUnavailable as away:
            log_trouble(f"debate {debate_id} cannot continue now: {away}")
            return
        if stopped.status == "paused" and not self.is_here(debate_id):
            self.begin(stopped, remark)

    async def _run(
        self,
        debate: StoredDebate,
        control: RunControl,
        begun: asyncio.Event,
        remark: Remark | None,
    ) -> StoredDebate | None:
        """Return the debate as it ended; None after an error."""
        try:
            return await run_debate(self.records, debate, lambda _: begun.set(), control, remark)
        # Another process runs it, or it cannot be read.
        except (BadInput, LeaseLost, DatabaseUnavailable) as unable:
            self._running[debate.id].refusal = str(unable)
            log_trouble(f"debate {debate.id} cannot continue now: {unable}")
        except Exception as error:  # noqa: BLE001 - no caller could catch it
            log_error(f"debate {debate.id} ended in an error", error)
        return None

    async def wait(self, run: Run) -> StoredDebate:
        limit = run.debate.settings["overall_timeout"] + _GRACE
        await asyncio.wait({run.task}, timeout=limit)
        ended = run.task.result() if run.task.done() and not run.task.cancelled() else None
        try:
            return ended or await self.find(run.debate.id)
        except DatabaseUnavailable as away:
            raise database_away(run.debate.id) from away


async def _end(tasks: set[asyncio.Task[StoredDebate | None]]) -> None:
    """Wait for tasks that were asked to stop; cancel those that take too long."""
    if tasks:
        _, slow = await asyncio.wait(tasks, timeout=_SECONDS_TO_STOP)
        for task in slow:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_left(task: asyncio.Task[StoredDebate | None]) -> bool:
    ended = None if task.cancelled() or task.exception() else task.result()
    return task.cancelled() or (ended is not None and ended.status == "paused")


def _debates(count: int) -> str:
    return f"{count} debate{'' if count == 1 else 's'}"


@contextmanager
def _refusing(code: int, error: str, what: str) -> Iterator[None]:
    """Refuse with the right status: the caller's question or the service's settings."""
    try:
        yield
    except QuestionTooLong as long:
        raise Refused(422, "too_long", f"{long.what} Shorten it.") from long
    except BadInput as unusable:
        raise Refused(code, error, scrub(f"{what}: {unusable}")) from unusable
