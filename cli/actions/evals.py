import asyncio
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from contend.cli.actions.ask import TerminalReporter
from contend.cli.actions.export import write_document
from contend.cli.ending import end_soon
from contend.cli.exit_codes import FAILED, MODEL_FAILED, OK, PAUSED
from contend.cli.garbage import start_collecting
from contend.cli.signals import on_stop_signal
from contend.cli.view.console import print_message, stderr, write_json
from contend.cli.view.format import counted, one_line
from contend.debates.exports.page import ExportPage, Part, Rows, Title, Words
from contend.evals.arms import ARMS
from contend.evals.compare import compare_stores
from contend.evals.measures import share_cells
from contend.evals.recorded import EQUAL_FAMILIES, measure_forecasts, measure_panel, read_panel
from contend.evals.report import EvalReport, build_report
from contend.evals.run import (
    MOST_FAILURES,
    DataItem,
    EvalOptions,
    EvalRun,
    check_arms,
    describe_items,
    load_items,
    plan_arms,
)
from contend.evals.run_store import EvalResult, RunStore
from contend.evals.signals import read_signals, signal_cases
from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.models.files import write_private_file

if TYPE_CHECKING:  # imported only for --langsmith
    from langsmith import Client

_MOST_PROBLEMS = 10


def split_arms(written: str) -> tuple[str, ...]:
    names = [name.strip() for name in written.split(",") if name.strip()]
    return tuple(ARMS) if names == ["all"] else tuple(dict.fromkeys(names))


def run_eval(
    options: EvalOptions, out: Path | None, parallel: int, *, langsmith: bool, quiet: bool
) -> int:
    """Check everything before the first paid call, run unfinished items, and print the report."""
    check_arms(options)
    client = _langsmith_client() if langsmith else None
    items, problems = load_items(options)
    for problem in problems[:_MOST_PROBLEMS]:
        print_message(f"Skipped: {problem}", style="warning")
    if len(problems) > _MOST_PROBLEMS:
        print_message(f"Skipped: {len(problems) - _MOST_PROBLEMS} more.", style="warning")
    store = RunStore((out or options.default_folder()).expanduser())
    reporter = TerminalReporter(quiet=quiet)
    with store.locked():
        plans, notices = asyncio.run(plan_arms(options, items, dict(os.environ), reporter))
        store.open(options.identity(), describe_items(items))
        session = _Session(store, options, items, quiet=quiet)
        for notice in [] if quiet else notices:
            print_message(notice)
        code = session.run(EvalRun(store, options, plans, session.report), parallel)
    if client and code in (OK, MODEL_FAILED):
        _upload(client, options, store, items)
    return code


def _langsmith_client() -> "Client":
    from contend.evals.langsmith_sets import open_client  # only if it is asked for

    return open_client()


def _upload(
    client: "Client", options: EvalOptions, store: RunStore, items: Sequence[DataItem]
) -> None:
    from contend.evals.langsmith_sets import push_items, upload_results

    push_items(client, items)
    about = {**options.identity(), "items": describe_items(items).digest}
    names = upload_results(client, items, store.results, options.arms, about)
    print_message(f"Uploaded to LangSmith: {', '.join(names)}.")


def push_data(data: tuple[str, ...], limit: int | None, seed: int) -> None:
    from contend.evals.langsmith_sets import address, open_client, push_items

    items, problems = load_items(EvalOptions((), data, limit=limit, seed=seed))
    for problem in problems[:_MOST_PROBLEMS]:
        print_message(f"Skipped: {problem}", style="warning")
    client = open_client()
    print_message(f"Pushing {counted(len(items), 'item')} to {address()}.")
    for each in push_items(client, items):
        print_message(
            f"{each.data}: {each.created} created, {each.updated} updated, "
            f"{each.unchanged} unchanged."
        )


class _Session:
    def __init__(
        self, store: RunStore, options: EvalOptions, items: Sequence[DataItem], *, quiet: bool
    ) -> None:
        self._store, self._options, self._items, self._quiet = store, options, items, quiet
        self._stopped = False
        screen = stderr(widest=None)
        shown = TextColumn("Answers"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        off = quiet or not screen.is_terminal
        self._bar = Progress(*shown, console=screen, transient=True, disable=off)
        self._total = len(items) * len(options.arms)
        self._task = self._bar.add_task("", total=self._total)

    def run(self, run: EvalRun, parallel: int) -> int:
        left = run.unfinished(self._items)
        self._bar.update(self._task, completed=self._total - left)
        if left < self._total:
            self._print(f"{self._total - left} of {self._total} answers are done already.")
        start_collecting()
        with self._bar:
            asyncio.run(self._run(run, parallel))
        return self._close(run)

    async def _run(self, run: EvalRun, parallel: int) -> None:
        def stop() -> None:
            self._stopped = True
            end_soon("Stopped. Run the same command again to continue.")
            run.stop()

        on_stop_signal(stop)
        await run.run(self._items, parallel)

    def report(self, result: EvalResult) -> None:
        self._bar.advance(self._task)
        if result.status == "failed":
            said = f"{result.item}, {result.arm} failed: {one_line(result.error or '', 300)}"
            self._print(said, "error")

    def _print(self, line: str, style: str = "") -> None:
        if not self._quiet:
            self._bar.console.print(Text(line, style=style), soft_wrap=True)

    def _close(self, run: EvalRun) -> int:
        shown = _shown_results(self._store, self._items, self._options.arms)
        if shown:
            found = build_report(self._store.options, shown, self._store.items)
            _write_report(self._store.folder, found)
            if not self._quiet:
                write_document(found.as_markdown(), None)
            print_message(f"Report: {self._store.folder / 'report.html'}")
        again = "Run the same command again to continue."
        failed = sum(each.status == "failed" for each in shown.values())
        if run.failures >= MOST_FAILURES:
            said = f"Stopped: {MOST_FAILURES} answers in a row failed. Fix the cause. {again}"
            print_message(said, "error")
            return MODEL_FAILED
        if self._stopped:
            print_message(f"Paused. {again}", "warning")
            return PAUSED
        if failed:
            print_message(f"Error: {counted(failed, 'answer')} failed. {again}", "error")
            return MODEL_FAILED
        return OK


def _shown_results(
    store: RunStore, items: Sequence[DataItem], arms: Sequence[str]
) -> dict[tuple[str, str], EvalResult]:
    wanted = {(each.key, arm) for each in items for arm in arms}
    return {key: result for key, result in store.results.items() if key in wanted}


def _write_report(folder: Path, report: EvalReport) -> None:
    try:
        write_private_file(folder / "report.md", report.as_markdown().encode())
        write_private_file(folder / "report.html", report.as_html().encode())
    except OSError as error:
        raise BadInput(f"Cannot write to {folder}: {error.strerror or error}.") from error


def print_report(folder: Path | None, *, as_json: bool) -> None:
    store = _opened(folder or _newest())
    if not store.results:
        raise BadInput(f"The run in {store.folder} has no results yet.")
    report = build_report(store.options, store.results, store.items)
    _write_report(store.folder, report)
    if as_json:
        arms = [asdict(each) for each in report.arms]
        compared = [asdict(each) for each in report.comparisons]
        about = {"versions": store.items.versions, "hash": store.items.digest}
        write_json(
            {"options": store.options, "items": about, "arms": arms, "comparisons": compared}
        )
        return
    write_document(report.as_markdown(), None)
    print_message(f"Report: {store.folder / 'report.html'}")


def _newest() -> Path:
    runs = sorted(
        (data_home() / "evals").glob("*/results.jsonl"), key=lambda file: file.stat().st_mtime
    )
    if not runs:
        raise BadInput("There is no eval run yet. Start one with: contend eval run")
    return runs[-1].parent


def _opened(folder: Path) -> RunStore:
    store = RunStore(folder.expanduser())
    store.read()
    return store


def compare_runs(before: Path, after: Path, *, as_json: bool) -> int:
    found = compare_stores(_opened(before), _opened(after))
    for note in found.notes:
        print_message(note, style="warning")
    if as_json:
        write_json([{**asdict(each), "dropped": each.is_drop} for each in found.changes])
    else:
        head = ("arm", "n", "before", "after", "result")
        rows = [
            (each.arm, str(each.pair.n), f"{each.before:.1%}", f"{each.after:.1%}", each.words)
            for each in found.changes
        ]
        write_document(ExportPage([Rows(head, rows)], {}).as_markdown(), None)
    return FAILED if any(each.is_drop for each in found.changes) else OK


def print_recorded(data: Sequence[str], models: str | None, *, as_json: bool) -> None:
    parts: list[Part] = []
    found: dict[str, Any] = {}
    for given in data:
        name, _, path = given.partition("=")
        if name not in _RECORDED or not path:
            known = ", ".join(f"{each}=PATH" for each in _RECORDED)
            raise BadInput(f"'{given}' is not one of {known}.")
        figures, shown = _RECORDED[name](Path(path).expanduser(), models)
        found[name] = figures
        parts += shown
    if as_json:
        write_json(found)
        return
    write_document(ExportPage(parts, {}).as_markdown(), None)


def _recorded_panel(path: Path, models: str | None) -> tuple[Any, list[Part]]:
    panel = [each.strip() for each in models.split(",")] if models else list(EQUAL_FAMILIES)
    if len(panel) < 2:
        raise BadInput("A panel needs at least two models.")
    found = measure_panel(panel, read_panel(path, panel))
    rows = [(name, *share_cells(each)) for name, each in found.each.items()]
    rows += [
        ("vote", *share_cells(found.vote)),
        ("any model right", *share_cells(found.any_right)),
        ("gate", *share_cells(found.gate)),
        *((f"vote where {name}", *share_cells(each)) for name, each in found.by_agreement.items()),
    ]
    about = (
        f"{found.n} questions that all of {', '.join(found.models)} answered. The gate (ask two "
        f"models, and the others only if the two differ) needs {found.gate_calls:.2f} calls per "
        f"question instead of {len(panel)}."
    )
    head = ("who", "right", "95 % interval", "n")
    return asdict(found), [Title("Recorded answers", 2), Words(about), Rows(head, rows)]


def _recorded_forecasts(path: Path, _models: str | None) -> tuple[Any, list[Part]]:
    found = measure_forecasts(path)
    half = found.n // 2
    rows = [
        (
            name.replace("extremised", "extremized"),
            f"{brier:.4f}",
            f"{loss:.4f}",
            str(half if "half" in name else found.n),
        )
        for name, (brier, loss) in found.figures.items()
    ]
    about = (
        f"{found.forecasters} recorded forecasts of {found.n} questions. Forecasts of the same "
        "question were made on different dates, so a pool also benefits from newer information. "
        "The extremizing factor (how far pooled probabilities are pushed away from 50%) is "
        f"{found.factor:g}, fitted on one half; the calibration error of the log-odds pool is "
        f"{found.calibration.ece:.3f}."
    )
    head = ("forecast", "Brier", "log loss", "n")
    return asdict(found), [Title("Recorded forecasts", 2), Words(about), Rows(head, rows)]


_RECORDED = {"mmlu_pro": _recorded_panel, "forecastbench": _recorded_forecasts}


def print_signals(*, as_json: bool) -> int:
    read = read_signals(signal_cases())
    right = sum(each.is_right for each in read)
    misread = [each for each in read if each.is_misread]
    if as_json:
        rows = [{**each.case.model_dump(), "read": each.read} for each in read]
        write_json({"n": len(read), "right": right, "misread": len(misread), "cases": rows})
    else:
        rows_shown = [
            (each.case.id, each.case.expected, each.read) for each in read if not each.is_right
        ]
        unread = len(read) - right - len(misread)
        about = (
            f"{len(read)} replies: {right} parsed correctly, {len(misread)} misread, "
            f"{unread} not parsed. In a debate, each reply that is not parsed costs one more call."
        )
        head = ("case", "means", "read as")
        write_document(ExportPage([Words(about), Rows(head, rows_shown)], {}).as_markdown(), None)
    return FAILED if misread else OK
