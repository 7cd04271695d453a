"""Long output goes to the pager, on a terminal only."""

import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest

from contend.cli.view.pager import paged


@contextmanager
def _terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Make stdout a terminal of four lines, and return the descriptor to read it from."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    with os.fdopen(theirs, "w", encoding="utf-8") as file, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", file)
        patched.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((80, 4)))
        patched.setenv("TERM", "xterm")
        yield ours
    os.close(ours)


def _pager(folder: Path) -> tuple[str, Path]:
    shown, script = folder / "shown", folder / "pager"
    script.write_text(f"#!/bin/sh\ncat > {shown}\n", "utf-8")
    script.chmod(0o700)
    return str(script), shown


@pytest.mark.parametrize(("lines", "is_paged"), [(3, False), (4, True)])
def test_only_long_output_is_paged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lines: int, is_paged: bool
) -> None:
    command, shown = _pager(tmp_path)
    monkeypatch.setenv("PAGER", command)
    with _terminal(monkeypatch) as terminal:
        with paged():
            assert sys.stdout.isatty()
            sys.stdout.write("line\n" * lines)
        assert shown.exists() == is_paged
        if is_paged:
            assert shown.read_text("utf-8") == "line\n" * lines
        else:
            assert os.read(terminal, 1000) == b"line\r\n" * lines


def test_a_pipe_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    with paged():
        assert sys.stdout is pipe


def test_output_without_a_pager_goes_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "/no/such/pager")
    with _terminal(monkeypatch) as terminal:
        with paged():
            sys.stdout.write("line\n" * 9)
        assert os.read(terminal, 1000) == b"line\r\n" * 9
