"""Ends the process without waiting for threads, after the user has pressed Ctrl-C twice."""

import os
import sys
import threading
from typing import NoReturn

from contend.cli.exit_codes import PAUSED

_SECONDS_TO_SAVE = 1.5
_SHOW_CURSOR = b"\x1b[?25h"
_threads_abandoned = threading.Event()


def abandon_threads() -> None:
    """Make `exit_process` skip waiting for threads."""
    _threads_abandoned.set()


def end_soon(message: str) -> None:
    """Abandon threads; if saving takes too long, print the message and end the process."""
    abandon_threads()
    timer = threading.Timer(_SECONDS_TO_SAVE, _end_by_force, [message])
    timer.daemon = True
    timer.start()


def exit_process(code: int) -> NoReturn:
    if _threads_abandoned.is_set():
        os._exit(code)
    sys.exit(code)


def _end_by_force(message: str) -> NoReturn:
    # Written without the consoles, which the main thread may have locked.
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), _SHOW_CURSOR)
    os.write(sys.stderr.fileno(), f"{message}\n".encode())
    os._exit(PAUSED)
