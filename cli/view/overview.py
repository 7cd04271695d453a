from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from contend.cli.view.format import plain
from contend.cli.view.page import INDENT, Page
from contend.debates.exports.objections import COLUMNS, ObjectionRow
from contend.debates.exports.verdict import short_answer, verdict_facts

_NARROWEST_TABLE = 90
_HANG = 3


def print_verdict(page: Page, record: Mapping[str, Any]) -> None:
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="muted", no_wrap=True)
    # With "ellipsis", Rich truncates a line that an emoji makes as wide as the column.
    facts.add_column(overflow="fold")
    shown = ""
    for name, value in verdict_facts(record):
        facts.add_row("" if name == shown else name, Text(plain(value)))
        shown = name
    warnings = [Text(f"⚠ {plain(each)}", style="warning") for each in record["warnings"]]
    answer = Text(plain(short_answer(record["final_answer"])))
    title = Text("In short", style="heading")
    page.line()
    page.live.hide()
    inside = Group(*warnings, *[Text()] * bool(warnings), answer, Text(), facts)
    page.console.print(Panel(inside, title=title, title_align="left"), width=page.width)


def print_objections(page: Page, rows: Sequence[ObjectionRow]) -> None:
    if page.width >= _NARROWEST_TABLE:
        _print_table(page, rows)
    else:
        for row in rows:
            _print_block(page, row)


def _print_table(page: Page, rows: Sequence[ObjectionRow]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), expand=True)
    for name in COLUMNS:
        fixed = name in ("Severity", "Raised")
        share, width = (None, 11) if fixed else (1, None)
        table.add_column(name, ratio=share, width=width, overflow="fold")
    for row in rows:
        text, severity, raised, *_ = row.cells()
        lines = (text, severity, raised, "\n".join(row.replies), "\n".join(row.reviews))
        style = "" if row.is_open else "muted"
        table.add_row(*(Text(plain(cell), style=style) for cell in lines), end_section=True)
    page.live.hide()
    page.console.print(table, width=page.width)


def _print_block(page: Page, row: ObjectionRow) -> None:
    page.line()
    page.paragraph(f"{row.mark} {row.id} {row.text} ({row.severity}, {row.raised})", hang=_HANG)
    for line in (*row.replies, *row.reviews):
        page.paragraph(line, "muted", indent=INDENT + _HANG, hang=2)
