"""The two consoles of the command: what was asked for on stdout, all else on stderr."""

import json
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO

from rich.console import Console
from rich.text import Text

from cli.words import plain

_WIDEST = 100


@dataclass(frozen=True)
class Output:
    """What the user wants to see, and where."""

    json: bool = False
    events: bool = False
    quiet: bool = False


class PipeConsole(Console):
    """A console that says when its reader has gone, instead of ending the program."""

    def on_broken_pipe(self) -> NoReturn:
        """Called by Rich inside its handler of BrokenPipeError."""
        raise BrokenPipeError


def console(file: TextIO, widest: int = _WIDEST) -> Console:
    """A console on stdout or stderr as wide as the terminal, but never too wide to read."""
    size = _size(file)
    return PipeConsole(
        file=file,
        highlight=False,
        markup=False,
        emoji=False,
        width=min(size.columns, widest),
        height=size.lines,
    )


def _size(file: TextIO) -> os.terminal_size:
    """The size of the terminal behind the stream itself, unless the environment says another."""
    if not os.environ.get("COLUMNS"):
        with suppress(OSError, ValueError):
            size = os.get_terminal_size(file.fileno())
            if size.columns and size.lines:
                return size
    return shutil.get_terminal_size((80, 24))


def stdout(widest: int = _WIDEST) -> Console:
    """The console for what was asked for."""
    return console(sys.stdout, widest)


def stderr() -> Console:
    """The console for everything else."""
    return console(sys.stderr)


def tell(message: str, style: str = "") -> None:
    """One message on stderr: one line whatever its length, unless a person's terminal wraps it."""
    screen = stderr()
    screen.print(Text(plain(message), style=style), soft_wrap=not screen.is_terminal)


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
