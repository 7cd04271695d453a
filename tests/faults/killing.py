"""Kill a debate during parallel calls, and read what its checkpoints hold."""

import os
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from contend.graph.serializer import CompactSerializer
from tests.cli.support import Command
from tests.support.model_server import Reply, Request

Key = TypeVar("Key", bound=tuple[str | int, ...])
"""Identifies a call; equal for a repeated call."""


def is_kept(home: Path, text: str) -> bool:
    """Return whether a checkpoint contains this text."""
    with closing(sqlite3.connect(home / "contend.db")) as database:
        written = database.execute("SELECT type, value FROM writes").fetchall()
    serde = CompactSerializer()
    return any(text in repr(serde.loads_typed(each)) for each in written)


def up_to(layers: Sequence[Sequence[Key]]) -> Callable[[Key], list[Key]]:
    """Return a function that gives the calls before a victim and those parallel to it."""

    def kept(victim: Key) -> list[Key]:
        at = next(at for at, layer in enumerate(layers) if victim in layer)
        return [key for layer in layers[: at + 1] for key in layer if key != victim]

    return kept


def mark(key: tuple[str | int, ...]) -> str:
    """Return the text that marks a reply in a checkpoint."""
    return f"({' '.join(map(str, key))})"


class Killer(Generic[Key]):
    """Start the command repeatedly and kill it once in each of the victims."""

    def __init__(
        self,
        contend: Command,
        ask: Sequence[str],
        victims: Sequence[Key],
        kept: Callable[[Key], Iterable[Key]],
        key: Callable[[Request], Key],
        script: Callable[[Request], Reply],
    ) -> None:
        """`kept` returns the calls that must be in a checkpoint before a victim is killed."""
        self.contend, self.ask, self.victims = contend, ask, victims
        self.kept, self.key, self.calm = kept, key, script
        self.killed: list[Key] = []
        self.pid = 0

    def run(self) -> dict[str, Any]:
        """Start, kill and resume the debate until it is done; return its record."""
        process = self._start(*self.ask)
        while process.wait(timeout=200) == -signal.SIGKILL:
            process.communicate()
            process = self._start("resume", self._debate(), "--quiet")
        _, err = process.communicate()
        assert process.returncode == 0, err
        record: dict[str, Any] = self.contend.here("show", self._debate(), "--json").json
        return record

    def script(self, request: Request) -> Reply:
        """Leave a victim unanswered and kill it once all finished calls are stored."""
        key = self.key(request)
        reply = self.calm(request)
        if key not in self.victims or key in self.killed:
            return reply
        return replace(reply, until=self._axe(key))

    def _axe(self, key: Key) -> Callable[[], bool]:
        # What ended a few milliseconds before a kill may be paid again: langgraph writes a task's
        # result while the next call is already on its way.
        others = [mark(other) for other in self.kept(key)]

        def fall() -> bool:
            if key in self.killed or not all(is_kept(self.contend.home, m) for m in others):
                return False
            self.killed.append(key)
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            return False

        return fall

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        process = self.contend.start(*arguments)
        self.pid = process.pid
        return process

    def _debate(self) -> str:
        with closing(sqlite3.connect(self.contend.home / "contend.db")) as database:
            return str(database.execute("SELECT id FROM debates").fetchone()[0])
