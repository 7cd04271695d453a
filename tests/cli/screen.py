"""An in-memory terminal, and debate events to show on it."""

import re
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import pairwise
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from contend.cli.view.renderer import Renderer
from contend.cli.view.theme import THEME
from contend.debates.events import Event
from contend.debates.record import StoredDebate
from contend.graph.events import EventName
from contend.graph.settings import DebateSettings
from tests.support.scripted import refine_settings

_PIECE = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])|[^\x1b]")
DEBATE = "11111111-2222-4333-8444-555555555555"


class Screen:
    """The visible output of a terminal, including lines that scrolled away.

    It knows what Rich sends, wraps at the edge, and wraps anew when it is resized.
    """

    def __init__(self, width: int, height: int = 40) -> None:
        self.width, self.height = width, height
        self._rows: list[list[str]] = [[]]
        """Cell by cell; the second cell of a wide sign is empty."""
        self._goes_on = [False]
        """Whether a row was wrapped, and goes on in the next."""
        self._row = self._column = 0

    @property
    def text(self) -> str:
        """Return all lines without trailing blanks."""
        return "\n".join("".join(row).rstrip() for row in self._rows).rstrip()

    def feed(self, text: str) -> None:
        for piece in _PIECE.finditer(text):
            if piece[3]:
                self._control(piece[1], piece[2], piece[3])
            elif piece[0] == "\r":
                self._column = 0
            elif piece[0] == "\n":
                self._down(goes_on=False)
            else:
                self._put(piece[0])

    def resize(self, width: int) -> None:
        """Rewrap the lines as terminals do; the cursor stays at the end, where Rich leaves it."""
        assert not any(self._rows[self._row + 1 :])
        rows, going_on = self._rows[: self._row + 1], self._goes_on[: self._row + 1]
        self.width, self._rows, self._goes_on = width, [[]], [False]
        self._row = self._column = 0
        for row, goes_on in zip(rows, going_on, strict=True):
            for sign in row:
                if sign:
                    self._put(sign)
            if not goes_on and row is not rows[-1]:
                self._down(goes_on=False)

    def _put(self, sign: str) -> None:
        cells = cell_len(sign)
        if self._column + cells > self.width:
            self._down(goes_on=True)
        row = self._rows[self._row]
        row += [" "] * (self._column - len(row))
        row[self._column : self._column + cells] = [sign, *[""] * (cells - 1)]
        self._column += cells

    def _down(self, *, goes_on: bool) -> None:
        self._goes_on[self._row] = goes_on
        self._row, self._column = self._row + 1, 0
        if self._row == len(self._rows):
            self._rows.append([])
            self._goes_on.append(False)

    def _control(self, private: str | None, numbers: str, letter: str) -> None:
        if private or letter == "m":
            return
        if letter == "A":
            top = max(0, len(self._rows) - self.height)
            self._row = max(top, self._row - int(numbers or 1))
        elif (numbers, letter) == ("2", "K"):
            self._rows[self._row], self._goes_on[self._row] = [], False
        else:
            raise AssertionError(f"Rich sends ESC [ {numbers} {letter}")


class Clock:
    """A clock that tests set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Show:
    """A debate rendered on a console of a given size, and what is visible of it."""

    def __init__(
        self,
        width: int = 80,
        height: int = 40,
        *,
        terminal: bool = True,
        is_raw: bool = False,
        settings: DebateSettings | None = None,
        **state: Any,
    ) -> None:
        self.out, self.clock, self.screen = StringIO(), Clock(), Screen(width, height)
        self._seen = 0
        self.console = Console(
            file=self.out,
            theme=THEME,
            force_terminal=terminal,
            width=width,
            height=height,
            color_system="standard" if terminal else None,
            highlight=False,
            markup=False,
            emoji=False,
            _environ={"TERM": "xterm"},
        )
        self.renderer = Renderer(self.console, self.clock, is_raw=is_raw)
        self.debate = debate_of(settings or refine_settings(), **state)
        self.renderer.header(self.debate, "")
        self._skipped = len(self._text())

    def __call__(self, *events: Event) -> "Show":
        for each in events:
            self.renderer.show(each)
        return self

    def resize(self, width: int) -> None:
        """Resize the terminal during the debate."""
        self._text()
        self.screen.resize(width)
        self.console.width = width

    @property
    def now(self) -> str:
        """Return what is visible now, below the header."""
        self.renderer._page.live.hide()
        self.renderer.sections.resume_waiting()
        return self._text()[self._skipped :].strip("\n")

    @property
    def left(self) -> str:
        """Return what remains below the header after the live area is removed."""
        self.renderer.sections.stop_waiting()
        return self._text()[self._skipped :].strip("\n")

    def _text(self) -> str:
        printed = self.out.getvalue()
        self.screen.feed(printed[self._seen :])
        self._seen = len(printed)
        return self.screen.text


def debate_of(settings: DebateSettings, **state: Any) -> StoredDebate:
    seats = [seat.model_dump() for seat in settings.build_seats()]
    return StoredDebate(
        id=DEBATE,
        protocol=settings.protocol,
        question="What now?",
        status="running",
        created_at="2026-01-02T03:04:05+00:00",
        updated_at="2026-01-02T03:04:05+00:00",
        settings=settings.model_dump(mode="json"),
        state={"seats": seats, **state},
        error=None,
        demonstration=False,
        user_rating=None,
        last_seq=0,
    )


def event(name: EventName, number: int = 1, content: str = "", **metadata: Any) -> Event:
    return {
        "type": "debate_event",
        "v": 1,
        "debate_id": DEBATE,
        "seq": 1,
        "ts": "",
        "event": name,
        "round": number,
        "content": content,
        "metadata": metadata,
    }


def opened(number: int, *active: str, at_once: bool, first: Sequence[str] = ()) -> Event:
    told: dict[str, Any] = {
        "active": list(active),
        "at_once": at_once,
        "first": list(first or active),
    }
    return event("round_start", number, **told)


def chunk(seat: str, text: str, number: int = 1, phase: str = "propose") -> Event:
    names: dict[str, EventName] = {"judge": "judge_chunk", "proposer": "proposer_chunk"}
    name: EventName = "synthesis_chunk" if phase == "synthesize" else names.get(seat, "seat_chunk")
    who = {"seat": seat, "role": seat, "model": f"scripted:{seat}", "phase": phase}
    return event(name, number, text, **who)


def asked(*seats: str, number: int = 1, phase: str = "propose") -> list[Event]:
    return [chunk(seat, "", number, phase) for seat in seats]


def complete(seat: str, text: str, number: int = 1, phase: str = "propose", **more: Any) -> Event:
    who = {"seat": seat, "role": seat, "model": f"scripted:{seat}", "phase": phase}
    facts = {"usage": {"output_tokens": 5}, "elapsed_ms": 1200, "status": "ok", "quotes": []}
    return event("seat_complete", number, text, **{**who, **facts, **more})


def troubled(seat: str | None, what: str, why: str, number: int = 1, **more: Any) -> Event:
    return event("degraded", number, why, seat=seat, what=what, **more)


def pieces(text: str, cuts: Iterable[int]) -> list[str]:
    """Split a text at these positions."""
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(text)), len(text)]
    return [text[start:end] for start, end in pairwise(edges)]
