import asyncio
import os
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from contend.cli import database
from contend.cli.actions.ask import TerminalReporter
from contend.cli.ending import end_soon
from contend.cli.exit_codes import MODEL_FAILED, OK, PAUSED
from contend.cli.garbage import start_collecting
from contend.cli.signals import on_stop_signal
from contend.cli.view.console import print_message, stderr
from contend.cli.view.format import cost, counted, estimate_words, one_line
from contend.debates.batch import (
    MOST_FAILURES,
    Batch,
    BatchJob,
    BatchOptions,
    CheckedQuestion,
    check_questions,
    prepare_jobs,
)
from contend.debates.batch_folder import BatchFolder, BatchResult
from contend.debates.batch_questions import read_questions
from contend.debates.estimate import estimate, estimate_all
from contend.debates.exports.wording import duration
from contend.debates.repository import Repository

_LONGEST_ERROR = 300
_STYLES = {"done": "success", "failed": "error"}


def run_batch(file: Path, out: Path, options: BatchOptions, parallel: int, *, quiet: bool) -> int:
    questions = read_questions(file)
    checked, notices = check_questions(questions, options, file.name, dict(os.environ))
    reporter = _BatchReporter(quiet=quiet)
    folder = BatchFolder(out.expanduser())
    with folder.locked():
        ids = folder.open(questions, options.identity())
        for notice in [] if quiet else notices:
            reporter.note(notice)
        debates = zip(checked, ids, strict=True)
        return _run(folder, debates, parallel, reporter, quiet=quiet)


def _run(
    folder: BatchFolder,
    debates: Iterable[tuple[CheckedQuestion, str]],
    parallel: int,
    reporter: TerminalReporter,
    *,
    quiet: bool,
) -> int:
    todo = [
        (each, debate_id) for each, debate_id in debates if not folder.results[debate_id].is_done
    ]
    with database.records() as records:
        jobs = asyncio.run(
            prepare_jobs([each for each, _ in todo], [each for _, each in todo], records, reporter)
        )
        folder.write_plan()
        session = _Session(folder, jobs, records, quiet=quiet)
        session.announce(jobs, parallel)
        return session.run(parallel)


def _estimate_lines(jobs: list[BatchJob]) -> list[str]:
    new = [job.prepared for job in jobs if job.prepared]
    if not new:
        return []
    found = [estimate(each.question, each.settings, each.plan.seats) for each in new]
    words = estimate_words(estimate_all(found), datetime.now(UTC).date())
    total = " in total" if len(new) > 1 else ""
    return [f"Estimate for {counted(len(new), 'new debate')}{total}: {words}."]


class _BatchReporter(TerminalReporter):
    """Prints each note once, even if it applies to several debates."""

    def __init__(self, *, quiet: bool) -> None:
        super().__init__(quiet=quiet)
        self._noted: set[str] = set()

    def note(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            super().note(text)


class _Session:
    def __init__(
        self, folder: BatchFolder, jobs: list[BatchJob], records: Repository, *, quiet: bool
    ) -> None:
        self._folder, self._quiet, self._signals = folder, quiet, 0
        self._total, self._done = len(folder.results), len(folder.results) - len(jobs)
        screen = stderr(widest=None)
        shown = TextColumn("Debates"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        off = quiet or not screen.is_terminal
        self._bar = Progress(*shown, console=screen, transient=True, disable=off)
        self._task = self._bar.add_task("", total=self._total, completed=self._done)
        self._batch = Batch(records, folder, jobs, self._report)

    def announce(self, jobs: list[BatchJob], parallel: int) -> None:
        lines = dict.fromkeys(job.prepared.plan.notice for job in jobs if job.prepared)
        if self._done:
            lines[f"{counted(self._done, 'question')} of {self._total} already answered."] = None
        if jobs:
            at_once = min(parallel, len(jobs))
            lines[f"Debating {counted(len(jobs), 'question')}, {at_once} at a time."] = None
            lines |= dict.fromkeys(_estimate_lines(jobs))
        for line in lines:
            self._print(line, "")

    def run(self, parallel: int) -> int:
        start_collecting()
        with self._bar:
            asyncio.run(self._run(parallel))
        return self._close()

    async def _run(self, parallel: int) -> None:
        on_stop_signal(self._stop)
        await self._batch.run(parallel)

    def _stop(self) -> None:
        self._signals += 1
        if self._signals == 1:
            self._batch.pause()
            self._print("Finishing the current turns; press Ctrl-C again to stop immediately.")
        elif self._signals == 2:
            end_soon("Stopped. Run the same command again to continue.")
            self._batch.cancel()

    def _report(self, result: BatchResult) -> None:
        if result.is_done:
            self._done += 1
        self._bar.update(self._task, completed=self._done)
        said = [result.debate_id[:8], f"{result.status:7}", duration((result.seconds or 0) * 1000)]
        said += [one_line(result.question, 60), one_line(result.error or "", _LONGEST_ERROR)]
        self._print("  ".join(filter(None, said)), _STYLES.get(result.status, "warning"))

    def _print(self, line: str, style: str = "warning") -> None:
        if not self._quiet:
            self._bar.console.print(Text(line, style=style), soft_wrap=True)

    def _close(self) -> int:
        counts = Counter(each.status for each in self._folder.results.values())
        costs = [each.cost_usd for each in self._folder.results.values() if each.seconds]
        known = [each for each in costs if each is not None]
        total = cost(sum(known) if len(known) == len(costs) else None)
        states = ", ".join(f"{count} {status}" for status, count in counts.items())
        print_message(f"{counted(self._total, 'question')}: {states}. Cost: {total}.")
        print_message(f"Results: {self._folder.path / 'results.csv'}")
        if self._done == self._total:
            return OK
        again = "Run the same command again to continue."
        if self._batch.failures >= MOST_FAILURES:
            print_message(
                f"Stopped: {MOST_FAILURES} debates in a row failed. Fix the cause. {again}", "error"
            )
            return MODEL_FAILED
        if counts["failed"] and not self._signals:
            print_message(f"Error: {counted(counts['failed'], 'debate')} failed. {again}", "error")
            return MODEL_FAILED
        print_message(f"Paused. {again}", "warning")
        return PAUSED
