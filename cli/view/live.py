"""Redraws a live area below the printed text, and removes it at the end."""

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
"""Draws the live area, given its maximum width and height."""

_FRAMES_PER_SECOND = 10
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
# One line for the cursor, and one more so that nothing scrolls away when the area is removed.
_SPARE_LINES = 2


def spinner(now: float) -> str:
    return _SPINNER[int(now * _FRAMES_PER_SECOND) % len(_SPINNER)]


def waiting_line(text: str, clock: Callable[[], float]) -> Frame:
    began = clock()

    def frame(width: int, _: int) -> list[Text]:
        now = clock()
        status = (f"{plain(text)} · {elapsed(now - began)}", "muted")
        return [cut(Text.assemble((f"{spinner(now)} ", "spinner"), status), width)]

    return frame


class LiveArea:
    """Shows one frame at a time. Call `hide` before printing, and `resume` afterwards."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._frame: Frame | None = None
        self._live: _ReflowingLive | None = None

    @property
    def can_redraw(self) -> bool:
        return self._console.is_terminal and self._console.is_interactive

    def set(self, frame: Frame) -> None:
        if self.can_redraw and frame is not self._frame:
            self.hide()
            self._frame = frame

    def resume(self) -> None:
        if self._frame and not self._live:
            self._live = _ReflowingLive(self._console, self._frame)
            self._live.start(refresh=True)

    def hide(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def clear(self) -> None:
        self.hide()
        self._frame = None

    def remove(self, frame: Frame) -> None:
        if frame is self._frame:
            self.clear()


class _ReflowingLive(Live):
    """A Rich live display that also erases lines wrapped because the terminal got narrower."""

    def __init__(self, console: Console, frame: Frame) -> None:
        self._drawing = _Drawing(frame)
        super().__init__(
            self._drawing,
            console=console,
            refresh_per_second=_FRAMES_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
            # Direct writes to the streams must not go to this console.
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        row = ((ControlType.ERASE_IN_LINE, 2), (ControlType.CURSOR_UP, 1))
        gained = rows_gained(self._drawing.widths, self.console.width) if _reflows() else 0
        return [Control(*row * gained), *super().process_renderables(renderables)]


class _Drawing:
    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self.widths: list[int] = []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = self._frame(options.max_width, max(1, options.size.height - _SPARE_LINES))
        self.widths = [cell_len(line.plain) for line in lines]
        for line in lines:
            yield Text.assemble(line, no_wrap=True, overflow="crop")
        # The terminal echoes typed keys, such as ^C, on this extra line.
        yield Text()


def rows_gained(widths: Iterable[int], width: int) -> int:
    return sum((each - 1) // max(1, width) for each in widths if each)


def _reflows() -> bool:
    return "XTERM_VERSION" not in os.environ and os.environ.get("TERM") != "linux"
