from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from contend.cli.view.console import StreamConsole
from contend.cli.view.live import LiveArea, rows_gained, spinner, waiting_line
from contend.cli.view.theme import THEME
from tests.cli.screen import Clock, Screen


class Area:
    """A live area of full-width lines below some text."""

    def __init__(self, width: int, lines: int = 3, height: int = 20) -> None:
        self.out, self.screen = StringIO(), Screen(width, height)
        self.console = Console(
            file=self.out,
            theme=THEME,
            force_terminal=True,
            width=width,
            height=height,
            _environ={"TERM": "xterm"},
        )
        self.live = LiveArea(self.console)
        self.lines = lines
        self.console.print("Text above.")
        self.live.set(self.frame)

    def frame(self, width: int, height: int) -> list[Text]:
        return [Text(f"{n}" * width) for n in range(min(self.lines, height))]

    def resize(self, width: int) -> None:
        self.screen.resize(width)
        self.console.width = width

    @property
    def seen(self) -> list[str]:
        self.screen.feed(self.out.getvalue())
        self.out.seek(0)
        self.out.truncate()
        return self.screen.text.splitlines()


def test_live_area_can_be_hidden_resumed_and_cleared() -> None:
    area = Area(30)
    assert area.seen == ["Text above."]
    area.live.resume()
    assert area.seen == ["Text above.", "0" * 30, "1" * 30, "2" * 30]
    area.live.hide()
    assert area.seen == ["Text above."]
    area.console.print("More text.")
    area.live.resume()
    assert area.seen == ["Text above.", "More text.", "0" * 30, "1" * 30, "2" * 30]
    area.live.clear()
    area.live.resume()
    assert area.seen == ["Text above.", "More text."]


def test_hiding_a_frame_that_became_shorter_leaves_no_lines() -> None:
    area = Area(30, lines=6)
    area.live.resume()
    area.lines = 1
    area.live.hide()
    assert area.seen == ["Text above."]


@pytest.mark.parametrize("width", [11, 15, 29, 31, 90])
def test_hiding_after_a_resize_leaves_no_lines(width: int) -> None:
    area = Area(30)
    area.live.resume()
    assert len(area.seen) == 4
    area.resize(width)
    area.live.hide()
    assert area.seen == ["Text above."]


def test_terminal_that_does_not_rewrap_keeps_the_text_above(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XTERM_VERSION", "XTerm(390)")
    area = Area(30)
    area.live.resume()
    area.console.width = 15  # the screen stays as it is
    area.live.hide()
    assert area.seen == ["Text above."]


def test_frame_taller_than_the_terminal_is_removed_completely() -> None:
    area = Area(30, lines=50, height=10)
    area.live.resume()
    assert len(area.seen) == 1 + 8
    area.live.hide()
    assert area.seen == ["Text above."]


@pytest.mark.parametrize(
    ("widths", "width", "gained"),
    [
        ([0, 1, 30], 30, 0),
        ([31], 30, 1),
        ([60, 61], 30, 1 + 2),
        ([160, 0, 160], 80, 2),
        ([5], 0, 4),
    ],
)
def test_rows_gained_counts_the_extra_rows_of_wrapped_lines(
    widths: list[int], width: int, gained: int
) -> None:
    assert rows_gained(widths, width) == gained


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_terminal_that_cannot_redraw_gets_no_live_area(term: str) -> None:
    out = StringIO()
    live = LiveArea(Console(file=out, force_terminal=True, _environ={"TERM": term}))
    live.set(lambda _width, _height: [Text("never")])
    live.resume()
    live.clear()
    assert (live.can_redraw, out.getvalue()) == (False, "")


def test_colour_on_a_pipe_does_not_make_it_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    pipe = StreamConsole(StringIO())
    assert pipe.is_terminal
    assert not LiveArea(pipe).can_redraw


def test_waiting_line_shows_the_time_and_fits() -> None:
    clock = Clock()
    frame = waiting_line("Ann is\x1b thinking", clock)
    clock.now = 12.3
    (line,) = frame(60, 10)
    assert line.plain == f"{spinner(12.3)} Ann is thinking · 12 s"
    (short,) = frame(12, 10)
    assert (short.plain[-1], short.cell_len) == ("…", 12)
