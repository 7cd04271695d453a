import asyncio
import hashlib
from dataclasses import asdict
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from contend.cli.actions.export import write_document
from contend.cli.exit_codes import MODEL_FAILED, OK
from contend.cli.view.console import print_message, stderr, write_json
from contend.cli.view.format import one_line
from contend.debates.exports.page import ExportPage, Part, Rows, Title, Words
from contend.evals.judge_check import (
    JudgeCheck,
    JudgedPair,
    JudgeFigures,
    JudgePair,
    SelfPreference,
    planted_flaws,
    read_llmbar,
    sum_up_judge,
)
from contend.evals.measures import ENOUGH_ITEMS, share_cells
from contend.evals.run_store import RunStore
from contend.graph.errors import BadInput
from contend.graph.settings import data_home

_OPEN_QUESTIONS = 20


def check_judge(
    model: str,
    data: str | None,
    other: str | None,
    limit: int | None,
    parallel: int,
    *,
    as_json: bool,
) -> int:
    pairs = _read_pairs(data)[:limit]
    options = {"judge": model, "data": data or "planted flaws"}
    name = hashlib.sha256(repr(options).encode()).hexdigest()[:8]
    store = RunStore(data_home() / "evals" / f"judge-{name}")
    shown = TextColumn("Pairs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    screen = stderr(widest=None)
    off = as_json or not screen.is_terminal
    with store.locked(), Progress(*shown, console=screen, transient=True, disable=off) as bar:
        store.open(options)
        task = bar.add_task("", total=len(pairs))
        check = JudgeCheck(model, store, lambda: bar.advance(task))
        judged = asyncio.run(check.judge(pairs, parallel))
        own = None
        if other:
            count = min(limit or _OPEN_QUESTIONS, _OPEN_QUESTIONS)
            bar.update(task, total=len(pairs) + count)
            own = asyncio.run(check.compare_with(other, count, parallel))
    return _print(model, judged, own, as_json=as_json)


def _read_pairs(data: str | None) -> list[JudgePair]:
    if data is None:
        return planted_flaws()
    name, _, path = data.partition("=")
    if name != "llmbar" or not path:
        raise BadInput(f"'{data}' is not llmbar=PATH.")
    found = Path(path).expanduser()
    if not found.exists():
        raise BadInput(f"File not found: {found}.")
    return read_llmbar(found)


def _print(
    model: str, judged: list[JudgedPair], own: SelfPreference | None, *, as_json: bool
) -> int:
    found = sum_up_judge(judged)
    if as_json:
        write_json({**asdict(found), "self_preference": asdict(own) if own else None})
    else:
        parts: list[Part] = [Title(f"{model} as a judge", 2), *_warning(found)]
        parts.append(Rows(("measure", "share", "95 % interval", "n"), _rows(found, own)))
        counts = (
            f"Undecided judgments: {found.undecided}. Unreadable: {found.unreadable}. "
            f"Failed pairs: {found.failed} of {found.pairs}."
        )
        write_document(ExportPage([*parts, Words(counts)], {}).as_markdown(), None)
    if not found.failed:
        return OK
    why = next(each.error for each in judged if each.error) or ""
    print_message(f"Error: {found.failed} pairs failed: {one_line(why, 300)}", "error")
    return MODEL_FAILED


def _warning(found: JudgeFigures) -> list[Part]:
    n = found.both_orders.n
    if n >= ENOUGH_ITEMS:
        return []
    return [
        Words(
            f"**Too few pairs for a reliable result (n = {n}).** Rely on the intervals, not on the "
            "shares."
        )
    ]


def _rows(found: JudgeFigures, own: SelfPreference | None) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("correct judgments", *share_cells(found.accuracy)),
        ("pairs right in both orders", *share_cells(found.both_orders)),
        ("pairs judged the same in both orders", *share_cells(found.consistent)),
        ("chose the answer shown first (half is fair)", *share_cells(found.first_chosen)),
    ]
    if len(found.by_kind) > 1:
        rows += [
            (f"both orders, {kind}", *share_cells(each)) for kind, each in found.by_kind.items()
        ]
    if own:
        said = f"preferred its own answer to {own.other}'s, where it was consistent"
        rows.append((said, *share_cells(own.own)))
    return rows
