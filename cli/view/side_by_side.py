"""Shows parallel seats in columns, side by side or stacked."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from contend.cli.view.console import WIDEST_TEXT
from contend.cli.view.format import elapsed, plain
from contend.cli.view.live import spinner
from contend.cli.view.page import Paragraph
from contend.cli.view.seats import SeatTable
from contend.cli.view.turns import ShownTurn, about
from contend.cli.view.wrap import Lines, cut, lines_of
from contend.debates.exports.wording import duration, number

if TYPE_CHECKING:
    from contend.cli.view.markdown import MarkdownLines

Clock = Callable[[], float]
State = Literal[
    "waiting", "writing", "deciding", "trying again", "done", "kept", "sat out", "failed"
]

LEAST_WIDTH = 36
_GAP = " │ "
_TALLEST_TAIL = 12
_MARKS: dict[State, tuple[str, str]] = {
    "waiting": ("·", "muted"),
    "writing": ("", ""),
    "deciding": ("", ""),
    "trying again": ("↻", "warning"),
    "done": ("✓", "success"),
    "kept": ("↩", "warning"),
    "sat out": ("–", "warning"),
    "failed": ("✗", "error"),
}
_WORDS: dict[State, str] = {
    "deciding": "reading its verdict",
    "kept": "kept previous answer",
    "sat out": "skipped this round",
}
_AFTER: dict[str, State] = {"sat_out": "sat out", "failed": "failed", "not_asked": "failed"}
_GIVEN_UP = ("sat_out", "not_asked", "out_of_budget")
_GROWING: tuple[State, ...] = ("waiting", "writing", "deciding", "trying again")


def per_row(count: int, width: int) -> int:
    fit = (width + len(_GAP)) // (LEAST_WIDTH + len(_GAP))
    if count <= fit:
        return count
    if fit < 3:
        return 1
    rows = math.ceil(count / fit)
    return math.ceil(count / rows)


def column_width(columns: int, width: int) -> int:
    return min(WIDEST_TEXT, (width - len(_GAP) * (columns - 1)) // columns)


class Draft:
    def __init__(self, text: str = "", *, is_raw: bool = False) -> None:
        self.text, self._is_raw = text, is_raw
        self._width, self._read = 0, 0
        self._lines = self._new_lines(0)

    def tail(self, count: int, width: int) -> list[Text]:
        """Return the last `count` lines; rewrap the whole text if the width changed."""
        if width != self._width:
            self._lines, self._width, self._read = self._new_lines(width), width, 0
        # Text may arrive while this runs, so count only what is read now.
        text = self.text
        self._lines.feed(text[self._read :])
        self._read = len(text)
        return self._lines.tail(count)

    def lines(self, width: int) -> list[Text]:
        if self._is_raw:
            return lines_of(self.text, width)
        from contend.cli.view.markdown import markdown_lines  # slow to import

        return [*markdown_lines(self.text, width)]

    def _new_lines(self, width: int) -> "Lines | MarkdownLines":
        if self._is_raw:
            return Lines(width)
        from contend.cli.view.markdown import MarkdownLines  # slow to import

        return MarkdownLines(width)


class Column:
    def __init__(self, seat: str, seats: SeatTable, clock: Clock, *, is_raw: bool) -> None:
        self.seat, self.model, self._is_raw = seat, seats.model(seat), is_raw
        self.state: State = "waiting"
        self.draft = Draft(is_raw=is_raw)
        self.turn: ShownTurn | None = None
        self._given_up = False
        self._seats, self._clock, self._began = seats, clock, clock()

    @property
    def is_settled(self) -> bool:
        return self.turn is not None or self._given_up

    def feed(self, piece: str, model: str) -> None:
        self.model = model
        if piece:
            self.state = "writing"
            self.draft.text += piece

    def report_problem(self, what: str, *, restart: bool) -> None:
        self._given_up = self._given_up or what in _GIVEN_UP
        if restart or self._given_up:
            self.draft = Draft(is_raw=self._is_raw)
            self.state = _AFTER.get(what, "trying again")

    def finish(self, turn: ShownTurn) -> None:
        self.state = "kept" if turn.status == "kept_previous" else "done"
        self.turn, self.model = turn, turn.model
        # The line break tells the wrapper that the last word is complete.
        text = "" if turn.is_repeated else f"{turn.text}\n"
        self.draft = Draft(text, is_raw=self._is_raw)

    def drawn(self, width: int, height: int, *, stacked: bool) -> list[Text]:
        name, state = self._title(), self._state_words()
        if not stacked:
            return [cut(name, width), cut(state, width), *self.draft.tail(height, width)]
        head = Text.assemble(cut(name, width - state.cell_len - 2), "  ", state)
        tail = self.draft.tail(height, width - 2)
        return [cut(head, width), *(Text.assemble("  ", line) for line in tail)]

    def column(self, width: int) -> list[Text]:
        parts = [self._heading(width), self.draft.lines(width)]
        parts += [
            lines_of(each.text, width, each.style, hang=each.hang) or [Text()]
            for each in self.remarks()
        ]
        return [line for part in parts for line in part]

    def remarks(self) -> list[Paragraph]:
        if self.turn:
            return about(self.turn)
        words = "not finished" if self.state in _GROWING else _WORDS.get(self.state, self.state)
        return [Paragraph(words, "muted")]

    def _heading(self, width: int) -> list[Text]:
        title = self._title()
        if title.cell_len <= width:
            return [title]
        style = f"{self._seats.style(self.seat)}.title"
        name = lines_of(self._seats.name(self.seat), width, style)
        return name + lines_of(self.model, width, "muted")

    def _title(self) -> Text:
        return self._seats.title(self.seat).append(f" · {plain(self.model)}", style="muted")

    def _state_words(self) -> Text:
        now = self._clock()
        mark, style = _MARKS[self.state]
        facts = [_WORDS.get(self.state, self.state)]
        if self.state in _GROWING:
            facts.append(elapsed(now - self._began))
        elif self.state == "done" and self.turn:
            facts += [duration(self.turn.elapsed_ms), f"{number(self.turn.tokens)} tokens"]
        return Text(f"{mark or spinner(now)} {' · '.join(facts)}", style=style)


class Columns(dict[str, Column]):
    def __init__(self, seats: SeatTable, clock: Clock, *, is_raw: bool = False) -> None:
        self._seats, self._clock, self._is_raw = seats, clock, is_raw
        self.phase = ""

    @property
    def is_settled(self) -> bool:
        return all(column.is_settled for column in self.values())

    def add(self, seats: Iterable[str]) -> None:
        for seat in seats:
            if seat not in self:
                self[seat] = Column(seat, self._seats, self._clock, is_raw=self._is_raw)

    def in_order(self) -> list[Column]:
        return [self[seat] for seat in self._seats.in_order(self)]

    def frame(self, width: int, height: int) -> list[Text]:
        shown = self.in_order()
        columns = per_row(len(shown), width)
        stacked, each = columns == 1, column_width(columns, width)
        rows = _rows(shown, columns)
        # Every row has a heading and an empty line above it.
        tail = (height - len(rows) * (2 if stacked else 3)) // len(rows)
        lines: list[Text] = []
        for row in rows:
            tail_lines = min(_TALLEST_TAIL, max(0, tail))
            drawn = [column.drawn(each, tail_lines, stacked=stacked) for column in row]
            lines += [Text()] * (tail >= 0) + join_columns(drawn, each)
        return lines[:height]

    def columns(self, width: int) -> list[Text]:
        """Draw the finished turns side by side; return no lines if the terminal is too narrow."""
        shown = self.in_order()
        columns = per_row(len(shown), width)
        if columns == 1:
            return []
        each = column_width(columns, width)
        lines: list[Text] = []
        for row in _rows(shown, columns):
            lines += [Text(), *join_columns([column.column(each) for column in row], each)]
        return lines


def _rows(shown: Sequence[Column], columns: int) -> list[Sequence[Column]]:
    return [shown[at : at + columns] for at in range(0, len(shown), columns)]


def join_columns(columns: Sequence[Sequence[Text]], width: int) -> list[Text]:
    lines = []
    for at in range(max(map(len, columns), default=0)):
        reach = max(place for place, column in enumerate(columns) if at < len(column))
        line = Text()
        for place, column in enumerate(columns[: reach + 1]):
            if place:
                line.append(" " * (place * (width + len(_GAP)) - len(_GAP) - line.cell_len))
                line.append(_GAP, style="muted")
            line.append_text(column[at] if at < len(column) else Text())
        line.rstrip()
        lines.append(line)
    return lines
