"""kill -9 in calls that are made at once, and what of a debate a checkpoint holds by then."""

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
"""What tells a call from all others, and is the same for a call that is made again."""


def is_kept(home: Path, text: str) -> bool:
    """Whether a checkpoint holds this text already."""
    with closing(sqlite3.connect(home / "contend.db")) as database:
        written = database.execute("SELECT type, value FROM writes").fetchall()
    serde = CompactSerializer()
    return any(text in repr(serde.loads_typed(each)) for each in written)


def up_to(layers: Sequence[Sequence[Key]]) -> Callable[[Key], list[Key]]:
    """All calls of the layers before a victim's, and the others of its own."""

    def kept(victim: Key) -> list[Key]:
        at = next(at for at, layer in enumerate(layers) if victim in layer)
        return [key for layer in layers[: at + 1] for key in layer if key != victim]

    return kept


def mark(key: tuple[str | int, ...]) -> str:
    """What a reply carries, so that it can be found in a checkpoint."""
    return f"({' '.join(map(str, key))})"


class Killer(Generic[Key]):
    """Starts the command again and again, and kills it once in each of the victims."""

    def __init__(
        self,
        contend: Command,
        ask: Sequence[str],
        victims: Sequence[Key],
        kept: Callable[[Key], Iterable[Key]],
        key: Callable[[Request], Key],
        script: Callable[[Request], Reply],
    ) -> None:
        """`kept` gives the calls that a checkpoint must hold before the axe falls on a victim."""
        self.contend, self.ask, self.victims = contend, ask, victims
        self.kept, self.key, self.calm = kept, key, script
        self.killed: list[Key] = []
        self.pid = 0

    def run(self) -> dict[str, Any]:
        """Ask, be killed, resume, be killed, ... until the debate is done; gives its record."""
        process = self._start(*self.ask)
        while process.wait(timeout=200) == -signal.SIGKILL:
            process.communicate()
            process = self._start("resume", self._debate(), "--quiet")
        _, err = process.communicate()
        assert process.returncode == 0, err
        record: dict[str, Any] = self.contend.here("show", self._debate(), "--json").json
        return record

    def script(self, request: Request) -> Reply:
        """A victim is not answered; once all that is finished is kept, the axe falls."""
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
