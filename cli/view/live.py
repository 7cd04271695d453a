"""The live area: lines below the page that are redrawn in place and taken back in the end."""

import os
from collections.abc import Callable, Iterable

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlType
from rich.text import Text

from contend.cli.view.format import elapsed, plain
from contend.cli.view.wrap import cut

Frame = Callable[[int, int], list[Text]]
"""Draws the area anew: its lines for a width and a height, none wider and no more of them."""

_FRAMES_PER_SECOND = 10
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
# A line for the cursor, and one more so that leaving the area scrolls nothing out of reach.
_SPARE_LINES = 2


def spinner(now: float) -> str:
    """A sign that turns as the seconds go by."""
    return _SPINNER[int(now * _FRAMES_PER_SECOND) % len(_SPINNER)]


def waiting_line(text: str, clock: Callable[[], float]) -> Frame:
    """One line that says what is being waited for, and for how long."""
    began = clock()

    def frame(width: int, _: int) -> list[Text]:
        now = clock()
        told = (f"{plain(text)} · {elapsed(now - began)}", "dim")
        return [cut(Text.assemble((f"{spinner(now)} ", "green"), told), width)]

    return frame


class LiveArea:
    """Shows one frame at a time; whoever prints hides it first, and it comes back afterwards."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._frame: Frame | None = None
        self._live: _Redrawn | None = None

    @property
    def possible(self) -> bool:
        """Whether lines can be taken back here, as on no pipe, log or dumb terminal."""
        return self._console.is_terminal and self._console.is_interactive

    def set(self, frame: Frame) -> None:
        """Show this from the next `resume` on."""
        if self.possible:
            self.hide()
            self._frame = frame

    def resume(self) -> None:
        """Put the frame on the screen, if there is one."""
        if self._frame and not self._live:
            self._live = _Redrawn(self._console, self._frame)
            self._live.start(refresh=True)

    def hide(self) -> None:
        """Take it off the screen, to come back with `resume`."""
        if self._live:
            self._live.stop()
            self._live = None

    def clear(self) -> None:
        """Take it off the screen for good."""
        self.hide()
        self._frame = None


class _Redrawn(Live):
    """Rich's live display, which also takes back what a narrowed terminal has wrapped."""

    def __init__(self, console: Console, frame: Frame) -> None:
        self._drawing = _Drawing(frame)
        super().__init__(
            self._drawing,
            console=console,
            refresh_per_second=_FRAMES_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
            # Whoever writes to the streams themselves means them, not this console.
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Go up over the rows that Rich does not know of before it goes up over its own."""
        row = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
        gained = self._drawing.rows_gained(self.console.width)
        return [Control(*row * gained), *super().process_renderables(renderables)]


class _Drawing:
    """What is on the screen: the frame as it was drawn last."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._widths: list[int] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = self._frame(options.max_width, max(1, options.size.height - _SPARE_LINES))
        self._widths = [cell_len(line.plain) for line in lines]
        for line in lines:
            yield Text.assemble(line, no_wrap=True, overflow="crop")
        # What is typed meanwhile, such as ^C, is echoed here and makes no line longer.
        yield Text()

    def rows_gained(self, width: int) -> int:
        """How many more rows its lines take now, in a terminal that has become narrower."""
        return rows_gained(self._widths, width) if _reflows() else 0


def rows_gained(widths: Iterable[int], width: int) -> int:
    """The rows that lines of these widths take beyond one each."""
    return sum((each - 1) // max(1, width) for each in widths if each)


def _reflows() -> bool:
    """Whether the terminal wraps its lines anew when it is resized; nearly all do."""
    return "XTERM_VERSION" not in os.environ and os.environ.get("TERM") != "linux"
