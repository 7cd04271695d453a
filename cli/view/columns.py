"""Lanes: several seats speak at the same time, each in a column or a block of its own."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from rich.text import Text

from contend.cli.view.console import WIDEST_TEXT
from contend.cli.view.format import duration, elapsed, number, plain
from contend.cli.view.live import spinner
from contend.cli.view.page import Paragraph
from contend.cli.view.seats import SeatTable
from contend.cli.view.turns import ShownTurn, about
from contend.cli.view.wrap import Lines, cut, lines_of

Clock = Callable[[], float]
State = Literal["waiting", "writing", "trying again", "done", "kept", "sat out", "failed"]

LEAST_WIDTH = 36
"""A narrower column is no pleasure to read."""
_GAP = " │ "
_TALLEST_TAIL = 12
_MARKS: dict[State, tuple[str, str]] = {
    "waiting": ("·", "dim"),
    "writing": ("", ""),
    "trying again": ("↻", "yellow"),
    "done": ("✓", "green"),
    "kept": ("↩", "yellow"),
    "sat out": ("–", "yellow"),
    "failed": ("✗", "red"),
}
_WORDS: dict[State, str] = {"kept": "kept previous answer", "sat out": "sits this round out"}
_AFTER: dict[str, State] = {"sat_out": "sat out", "failed": "failed", "not_asked": "failed"}
_GIVEN_UP = ("sat_out", "not_asked")
_GROWING: tuple[State, ...] = ("waiting", "writing", "trying again")


def per_row(count: int, width: int) -> int:
    """How many lanes stand side by side; one where they are stacked.

    All of them if each has room to be read. In a terminal with room for three or more they stand in
    rows of about the same length; in a narrower one nothing is won by pairs.
    """
    fit = (width + len(_GAP)) // (LEAST_WIDTH + len(_GAP))
    if count <= fit:
        return count
    if fit < 3:
        return 1
    rows = math.ceil(count / fit)
    return math.ceil(count / rows)


def lane_width(columns: int, width: int) -> int:
    """The width of each of so many columns."""
    return min(WIDEST_TEXT, (width - len(_GAP) * (columns - 1)) // columns)


class Draft:
    """What a seat has written so far, wrapped as it comes."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._width, self._wrapped = 0, 0
        self._lines = Lines(0)

    def tail(self, count: int, width: int) -> list[Text]:
        """Its last lines; after a change of width all of it is wrapped anew."""
        if width != self._width:
            self._lines, self._width, self._wrapped = Lines(width), width, 0
        # Words may arrive while this runs: what is taken now is what is counted.
        text = self.text
        self._lines.feed(text[self._wrapped :])
        self._wrapped = len(text)
        return self._lines.tail(count)


class Column:
    """One of several seats that speak at the same time."""

    def __init__(self, seat: str, standing: SeatTable, clock: Clock) -> None:
        self.seat, self.model = seat, standing.model(seat)
        self.state: State = "waiting"
        self.draft = Draft()
        self.speech: ShownTurn | None = None
        self._given_up = False
        self._standing, self._clock, self._began = standing, clock, clock()

    @property
    def settled(self) -> bool:
        """Whether nothing more is to come in this lane."""
        return self.speech is not None or self._given_up

    def feed(self, piece: str, model: str) -> None:
        """The seat writes."""
        self.model = model
        if piece:
            self.state = "writing"
            self.draft.text += piece

    def hinder(self, what: str, *, restart: bool) -> None:
        """Something went wrong with the seat; a restart voids what it has written."""
        self._given_up = self._given_up or what in _GIVEN_UP
        if restart or self._given_up:
            self.draft = Draft()
            self.state = _AFTER.get(what, "trying again")

    def finish(self, speech: ShownTurn) -> None:
        """The seat has spoken, or an earlier answer of its stands in."""
        self.state = "kept" if speech.status == "kept_previous" else "done"
        self.speech, self.model = speech, speech.model
        # The end of the line tells the wrapper that the last word is whole.
        self.draft = Draft("" if speech.is_repeated else f"{speech.text}\n")

    def drawn(self, width: int, height: int, *, stacked: bool) -> list[Text]:
        """Who writes, how it goes, and the last lines of what is written."""
        name, state = self._title(), self._state_words()
        if not stacked:
            return [cut(name, width), cut(state, width), *self.draft.tail(height, width)]
        head = Text.assemble(cut(name, width - state.cell_len - 2), "  ", state)
        tail = self.draft.tail(height, width - 2)
        return [cut(head, width), *(Text.assemble("  ", line) for line in tail)]

    def column(self, width: int) -> list[Text]:
        """The whole speech for the scroll-back, and what there is to know about it."""
        parts = [self._heading(width), lines_of(self.draft.text, width)]
        parts += [_column_part(each, width) for each in self.remarks()]
        return [line for part in parts for line in part]

    def remarks(self) -> list[Paragraph]:
        """What there is to know about the speech, or why there is none."""
        if self.speech:
            return about(self.speech)
        growing = self.state in _GROWING
        return [Paragraph("not finished" if growing else _WORDS.get(self.state, self.state), "dim")]

    def _heading(self, width: int) -> list[Text]:
        """The title, on as many lines as it takes."""
        title = self._title()
        if title.cell_len <= width:
            return [title]
        style = f"bold {self._standing.colour(self.seat)}"
        name = lines_of(self._standing.name(self.seat), width, style)
        return name + lines_of(self.model, width, "dim")

    def _title(self) -> Text:
        return self._standing.called(self.seat).append(f" · {plain(self.model)}", style="dim")

    def _state_words(self) -> Text:
        now = self._clock()
        mark, style = _MARKS[self.state]
        facts = [_WORDS.get(self.state, self.state)]
        if self.state in _GROWING:
            facts.append(elapsed(now - self._began))
        elif self.state == "done" and self.speech:
            facts += [duration(self.speech.elapsed_ms), f"{number(self.speech.tokens)} tokens"]
        return Text(f"{mark or spinner(now)} {' · '.join(facts)}", style=style)


class Columns:
    """All who speak at the same time, in the order of the table."""

    def __init__(self, standing: SeatTable, clock: Clock) -> None:
        self._standing, self._clock = standing, clock
        self._lanes: dict[str, Column] = {}
        self.phase = ""

    def __contains__(self, seat: str) -> bool:
        return seat in self._lanes

    def __getitem__(self, seat: str) -> Column:
        return self._lanes[seat]

    @property
    def settled(self) -> bool:
        """Whether nothing more is to come in any lane."""
        return all(lane.settled for lane in self._lanes.values())

    def add(self, seats: Iterable[str]) -> None:
        """Make room for those who have no lane yet."""
        for seat in seats:
            if seat not in self._lanes:
                self._lanes[seat] = Column(seat, self._standing, self._clock)

    def in_order(self) -> list[Column]:
        """The lanes as their seats sit at the table."""
        return [self._lanes[seat] for seat in self._standing.in_order(self._lanes)]

    def frame(self, width: int, height: int) -> list[Text]:
        """What the live area shows: as much of each lane as there is room for."""
        lanes = self.in_order()
        columns = per_row(len(lanes), width)
        stacked, each = columns == 1, lane_width(columns, width)
        rows = _rows(lanes, columns)
        # Every row has its head and an empty line above.
        tail = (height - len(rows) * (2 if stacked else 3)) // len(rows)
        lines: list[Text] = []
        for row in rows:
            shown = min(_TALLEST_TAIL, max(0, tail))
            drawn = [lane.drawn(each, shown, stacked=stacked) for lane in row]
            lines += [Text()] * (tail >= 0) + beside(drawn, each)
        return lines[:height]

    def columns(self, width: int) -> list[Text]:
        """The finished speeches side by side; no lines where there is no room for it."""
        lanes = self.in_order()
        columns = per_row(len(lanes), width)
        if columns == 1:
            return []
        each = lane_width(columns, width)
        lines: list[Text] = []
        for row in _rows(lanes, columns):
            lines += [Text(), *beside([lane.column(each) for lane in row], each)]
        return lines


def _rows(lanes: Sequence[Column], columns: int) -> list[Sequence[Column]]:
    return [lanes[at : at + columns] for at in range(0, len(lanes), columns)]


def beside(columns: Sequence[Sequence[Text]], width: int) -> list[Text]:
    """Columns of lines as lines; nothing stands behind the last word of a line."""
    lines = []
    for at in range(max(map(len, columns), default=0)):
        reach = max(place for place, column in enumerate(columns) if at < len(column))
        line = Text()
        for place, column in enumerate(columns[: reach + 1]):
            if place:
                line.append(" " * (place * (width + len(_GAP)) - len(_GAP) - line.cell_len))
                line.append(_GAP, style="dim")
            line.append_text(column[at] if at < len(column) else Text())
        line.rstrip()
        lines.append(line)
    return lines


def _column_part(paragraph: Paragraph, width: int) -> list[Text]:
    if not paragraph.text:
        return [Text()]
    return lines_of(paragraph.text, width, paragraph.style, hang=paragraph.hang)
