"""The two consoles of the command: what was asked for on stdout, all else on stderr."""

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
from contend.cli.view.wrap import lines_of

WIDEST_TEXT = 100
"""Lines of prose longer than this are hard to read."""


@dataclass(frozen=True)
class Output:
    """What the user wants to see, and where."""

    json: bool = False
    events: bool = False
    quiet: bool = False


class StreamConsole(Console):
    """A console on stdout or stderr that follows the size of its terminal.

    When its reader has gone it says so, instead of ending the program.
    """

    def __init__(self, file: TextIO, widest: int | None) -> None:
        self._widest = widest
        # Colour can be asked for on a pipe; lines that are taken back cannot be wanted there.
        interactive = None if file.isatty() else False
        super().__init__(
            file=file, highlight=False, markup=False, emoji=False, force_interactive=interactive
        )

    @property
    def size(self) -> ConsoleDimensions:
        """As the terminal is now, but never wider than asked for."""
        now = _size(self.file)
        width = min(now.columns, self._widest or now.columns) - self.legacy_windows
        return ConsoleDimensions(width, now.lines)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        raise NotImplementedError("the terminal decides")

    def on_broken_pipe(self) -> NoReturn:
        """Called by Rich inside its handler of BrokenPipeError."""
        raise BrokenPipeError


def console(file: TextIO, widest: int | None = WIDEST_TEXT) -> Console:
    """A console on stdout or stderr as wide as the terminal, but not too wide to read."""
    return StreamConsole(file, widest)


def _size(file: IO[str]) -> os.terminal_size:
    """The size of the terminal behind the stream itself, unless the environment says another."""
    if not os.environ.get("COLUMNS"):
        with suppress(OSError, ValueError):
            size = os.get_terminal_size(file.fileno())
            if size.columns and size.lines:
                return size
    return shutil.get_terminal_size((80, 24))


def stdout(widest: int | None = WIDEST_TEXT) -> Console:
    """The console for what was asked for."""
    return console(sys.stdout, widest)


def stderr(widest: int | None = WIDEST_TEXT) -> Console:
    """The console for everything else."""
    return console(sys.stderr, widest)


def print_message(message: str, style: str = "") -> None:
    """One message on stderr: one line whatever its length, unless a person's terminal wraps it."""
    screen = stderr()
    screen.print(Text(plain(message), style=style), soft_wrap=not screen.is_terminal)


def print_hanging(screen: Console, text: str, hang: int = 0, style: str = "") -> None:
    """One line for a pipe; a person's terminal gets lines that end at words and go on indented."""
    if not screen.is_terminal:
        screen.print(Text(text, style=style), soft_wrap=True)
        return
    head = text[:hang].replace(" ", "\u00a0")  # a space would be wrapped away
    for line in lines_of(head + text[hang:], screen.width, style, hang=hang):
        screen.print(line, soft_wrap=True)


def write_json(document: Any, *, one_line: bool = False) -> None:
    """One JSON document on stdout."""
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    text = json.dumps(document, ensure_ascii=not unicode, indent=None if one_line else 2)
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def silence(stream: TextIO) -> None:
    """Let later writes to a stream whose reader has gone vanish, the interpreter's own included."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
