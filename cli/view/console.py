"""Provides two consoles: stdout for results, and stderr for everything else."""

import json
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, NoReturn, TextIO

from rich.console import Console, ConsoleDimensions
from rich.text import Text

from contend.cli.view.format import plain
from contend.cli.view.theme import THEME
from contend.cli.view.wrap import lines_of
from contend.models.text import UNSAFE

WIDEST_TEXT = 100


@dataclass(frozen=True)
class Output:
    json: bool = False
    events: bool = False
    quiet: bool = False
    plain: bool = False


class StreamConsole(Console):
    """A console that adapts to the terminal size and raises BrokenPipeError instead of exiting."""

    def __init__(self, file: TextIO, widest: int | None = WIDEST_TEXT) -> None:
        self._widest = widest
        # Output to a pipe may be colored, but must never be redrawn.
        interactive = None if file.isatty() else False
        super().__init__(
            file=file,
            theme=THEME,
            highlight=False,
            markup=False,
            emoji=False,
            force_interactive=interactive,
        )

    @property
    def size(self) -> ConsoleDimensions:
        now = _size(self.file)
        width = min(now.columns, self._widest or now.columns) - self.legacy_windows
        return ConsoleDimensions(width, now.lines)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        raise NotImplementedError("the terminal sets the size")

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def _size(file: IO[str]) -> os.terminal_size:
    if not os.environ.get("COLUMNS"):
        with suppress(OSError, ValueError):
            size = os.get_terminal_size(file.fileno())
            if size.columns and size.lines:
                return size
    return shutil.get_terminal_size((80, 24))


def stdout(widest: int | None = WIDEST_TEXT) -> Console:
    return StreamConsole(sys.stdout, widest)


def stderr(widest: int | None = WIDEST_TEXT) -> Console:
    return StreamConsole(sys.stderr, widest)


def print_message(message: str, style: str = "") -> None:
    """Print a message on stderr as one line, which a terminal may wrap."""
    screen = stderr()
    screen.print(Text(plain(message), style=style), soft_wrap=not screen.is_terminal)


def print_hanging(screen: Console, text: str, hang: int = 0, style: str = "") -> None:
    if not screen.is_terminal:
        screen.print(Text(text, style=style), soft_wrap=True)
        return
    head = text[:hang].replace(" ", "\u00a0")  # wrapping drops plain spaces
    for line in lines_of(head + text[hang:], screen.width, style, hang=hang):
        screen.print(line, soft_wrap=True)


def write_json(document: Any, *, one_line: bool = False) -> None:
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    text = json.dumps(document, ensure_ascii=not unicode, indent=None if one_line else 2)
    safe = UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    sys.stdout.write(f"{safe}\n")
    sys.stdout.flush()


def silence(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
