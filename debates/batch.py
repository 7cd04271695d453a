import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from langgraph.runtime import RunControl

from contend.debates import prepare
from contend.debates.batch_folder import BatchFolder, BatchResult
from contend.debates.batch_questions import BatchQuestion
from contend.debates.forecasts import PROTOCOL as FORECAST
from contend.debates.forecasts import parse_outcomes, plain_request
from contend.debates.leases import LeaseLost
from contend.debates.presets import Preset
from contend.debates.record import StoredDebate
from contend.debates.repository import DebateExists, Repository
from contend.debates.run import run_debate
from contend.debates.settings_sources import Given, configure
from contend.debates.spending import with_budget
from contend.graph.errors import BadInput, QuestionTooLong
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.settings import DebateSettings
from contend.models.failures import scrub
from contend.models.tokens import estimate_tokens

# After this many failures in a row, the next debate would probably fail for the same reason.
MOST_FAILURES = 5
# These settings may change when an interrupted batch continues.
_MAY_CHANGE = ("budget", "max_cost")


@dataclass(frozen=True)
class BatchOptions:
    protocol: str
    flags: Mapping[str, Any]
    model: str | None
    config: Path | None
    preset: Preset | None = None

    def identity(self) -> dict[str, Any]:
        """Return the options that must stay the same when a batch is continued."""
        kept = {name: value for name, value in self.flags.items() if name not in _MAY_CHANGE}
        found = {"protocol": self.protocol, "model": self.model, "settings": kept}
        if self.preset:
            found["preset"] = {"model": self.preset.model, **self.preset.settings}
        return found


@dataclass(frozen=True)
class CheckedQuestion:
    asked: BatchQuestion
    draft: prepare.DebateDraft
    request: DebateRequest | None


@dataclass(frozen=True)
class BatchJob:
    """A debate to start (if `prepared` is set) or to continue."""

    debate_id: str
    prepared: prepare.PreparedDebate | None = None
    request: DebateRequest | None = None
    settings: DebateSettings | None = None  # new settings of a paused debate


def check_questions(
    questions: Iterable[BatchQuestion],
    options: BatchOptions,
    source: str,
    environ: Mapping[str, str],
) -> tuple[list[CheckedQuestion], list[str]]:
    """Return the checked questions and any notices, without model calls. Errors name the row."""
    known: dict[str, DebateSettings] = {}
    checked, notices = [], []
    for each in questions:
        key = _settings_key(each)
        if key not in known:
            flags = {name: Given(value, source) for name, value in each.settings.items()}
            with _errors_name_row(each) if flags else nullcontext():
                found = configure(
                    options.protocol,
                    {**options.flags, **flags},
                    options.model,
                    options.config,
                    environ,
                    options.preset,
                )
                known[key] = _require_unattended(found.settings)
            notices += [note for note in found.notices if note not in notices]
        with _errors_name_row(each):
            draft = prepare.draft_debate(each.question, known[key])
            checked.append(CheckedQuestion(each, draft, _forecast(each, options.protocol)))
    return checked, notices


async def prepare_jobs(
    checked: Sequence[CheckedQuestion],
    ids: Sequence[str],
    records: Repository,
    reporter: prepare.Reporter,
) -> list[BatchJob]:
    stored = set(await asyncio.to_thread(records.ids))
    new = [each for each, debate_id in zip(checked, ids, strict=True) if debate_id not in stored]
    plans = await _prepare(new, reporter)
    jobs = []
    for each, debate_id in zip(checked, ids, strict=True):
        if debate_id in stored:
            debate = await asyncio.to_thread(records.find, debate_id)
            settings = None
            if debate.status != "done":
                wanted = each.draft.settings
                settings = await asyncio.to_thread(_other_budget, records, debate, wanted)
                await prepare.prepare_resume(debate, reporter, settings)
            jobs.append(BatchJob(debate_id, settings=settings))
        else:
            plan = plans[_settings_key(each.asked)]
            jobs.append(
                BatchJob(debate_id, replace(plan, question=each.draft.question), each.request)
            )
    return jobs


def _other_budget(
    records: Repository, debate: StoredDebate, wanted: DebateSettings
) -> DebateSettings | None:
    stored = debate.as_settings()
    changes = {
        name: Given(getattr(wanted, name), "batch")
        for name in _MAY_CHANGE
        if getattr(wanted, name) != getattr(stored, name)
    }
    return with_budget(records, debate, changes) if changes else None


async def _prepare(
    checked: Sequence[CheckedQuestion], reporter: prepare.Reporter
) -> dict[str, prepare.PreparedDebate]:
    groups: dict[str, CheckedQuestion] = {}
    for each in sorted(checked, key=lambda each: estimate_tokens(each.draft.question)):
        groups[_settings_key(each.asked)] = each
    plans = {}
    for key, longest in groups.items():
        try:
            plans[key] = await prepare.prepare_debate(longest.draft, reporter)
        except BadInput as refused:
            if longest.asked.settings or isinstance(refused, QuestionTooLong):
                raise BadInput(f"{longest.asked.where}: {refused}") from refused
            raise
    return plans


class Batch:
    def __init__(
        self,
        records: Repository,
        folder: BatchFolder,
        jobs: Iterable[BatchJob],
        report: Callable[[BatchResult], None],
    ) -> None:
        self._records, self._folder, self._report = records, folder, report
        self._waiting = deque(jobs)
        self._running: dict[str, RunControl] = {}
        self._workers: list[asyncio.Task[None]] = []
        self._writing = asyncio.Lock()
        self.failures = 0
        """How many debates in a row have failed."""

    async def run(self, parallel: int) -> None:
        count = min(parallel, len(self._waiting))
        self._workers = [asyncio.create_task(self._work()) for _ in range(count)]
        for ended in await asyncio.gather(*self._workers, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended

    def pause(self) -> None:
        self._waiting.clear()
        for control in self._running.values():
            control.request_drain("the batch was stopped")

    def cancel(self) -> None:
        """Stop immediately; finished turns stay stored."""
        self.pause()
        for worker in self._workers:
            worker.cancel()

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._debate(self._waiting.popleft())
        except BaseException:  # such as a full disk; do not pay for results that cannot be written
            self.pause()
            raise

    async def _debate(self, job: BatchJob) -> None:
        control = self._running[job.debate_id] = RunControl()
        error: str | None = None
        try:
            debate = await asyncio.to_thread(self._start, job)
            if debate.status != "done":
                await self._run(debate, control, job.settings)
        except (BadInput, LeaseLost) as refused:  # for example, another process runs the debate
            error = str(refused)
        except Exception as failed:  # noqa: BLE001 - one debate must not end the others
            error = scrub(f"{type(failed).__name__}: {failed}")
        finally:
            del self._running[job.debate_id]
        await self._record(job.debate_id, error)

    async def _run(
        self, debate: StoredDebate, control: RunControl, settings: DebateSettings | None
    ) -> None:
        # A separate task, because it is cancelled if another process takes over the debate.
        given = self._records, debate, lambda _: None, control
        running = asyncio.create_task(run_debate(*given, settings=settings))
        try:
            await running
        except asyncio.CancelledError:
            worker = asyncio.current_task()
            if worker and worker.cancelling():
                await asyncio.gather(running, return_exceptions=True)
                await asyncio.shield(self._record(debate.id, None))
                raise
            raise LeaseLost(debate.id) from None

    def _start(self, job: BatchJob) -> StoredDebate:
        if job.prepared is None:
            return self._records.find(job.debate_id)
        try:
            return prepare.write_debate(
                self._records, job.prepared, job.request, debate_id=job.debate_id
            )
        except DebateExists:  # another process is running a copy of this batch
            return self._records.find(job.debate_id)

    async def _record(self, debate_id: str, error: str | None) -> None:
        async with self._writing:
            debate = await asyncio.to_thread(self._records.find, debate_id)
            result = await asyncio.to_thread(self._folder.record, debate, error)
        self.failures = self.failures + 1 if result.status == "failed" else 0
        if self.failures >= MOST_FAILURES:
            self._waiting.clear()
        self._report(result)


@contextmanager
def _errors_name_row(each: BatchQuestion) -> Iterator[None]:
    try:
        yield
    except BadInput as refused:
        raise BadInput(f"{each.where}: {refused}") from refused


def _settings_key(each: BatchQuestion) -> str:
    return json.dumps(dict(each.settings), sort_keys=True)


def _require_unattended(settings: DebateSettings) -> DebateSettings:
    if settings.pause != "never":
        raise BadInput("A batch cannot wait for a person; leave the setting `pause` at never.")
    return settings


def _forecast(each: BatchQuestion, protocol: str) -> DebateRequest | None:
    if protocol != FORECAST:
        if each.outcomes or each.due:
            raise BadInput("outcomes and due work only with --protocol forecast.")
        return None
    if not each.outcomes:
        raise BadInput(
            "A forecast needs outcomes. Write them in a column `outcomes`, such as: "
            "yes: It opens; no: It does not."
        )
    return plain_request(each.question, parse_outcomes(each.outcomes), _day(each.due))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise BadInput(f"due must be a date such as 2027-05-01, not '{text}'.") from error
