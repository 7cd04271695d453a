import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from typing import TextIO

# Keep colors, and leave short output on the screen.
_LESS_OPTIONS = "FRX"


class _CapturedOutput(StringIO):
    """Collects terminal output while posing as the terminal."""

    def __init__(self, terminal: TextIO) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fileno()


@contextmanager
def paged() -> Iterator[None]:
    terminal = sys.stdout
    if not terminal.isatty():
        yield
        return
    sys.stdout = captured = _CapturedOutput(terminal)
    try:
        yield
    finally:
        sys.stdout = terminal
        _show(captured.getvalue(), terminal)


def _show(text: str, terminal: TextIO) -> None:
    command = shlex.split(os.environ.get("PAGER", "")) or ["less"]
    is_long = text.count("\n") >= os.get_terminal_size(terminal.fileno()).lines
    if is_long and os.environ.get("TERM") != "dumb":
        env = {"LESS": _LESS_OPTIONS, **os.environ}
        with suppress(FileNotFoundError, PermissionError):
            # Ctrl-C belongs to the pager while it runs.
            with suppress(KeyboardInterrupt):
                subprocess.run(command, input=text.encode(), env=env, check=False)  # noqa: S603
            return
    terminal.write(text)
    terminal.flush()
