"""Detects SQLite outages, and queues the writers of each file."""

import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Event, Lock

from contend.graph.errors import DatabaseUnavailable

# Longer than a backup tool locks the file.
BUSY_TIMEOUT_MS = 60_000

_LOCKED = "another program keeps it locked"
_OUTAGES = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_IOERR: "the disk reports an I/O error",
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
}
_PRIMARY = 0xFF  # an extended error code has its primary code in the lowest byte


class _QueueEntry:
    def __init__(self) -> None:
        self.turn, self.refusal = Event(), ""


class SqliteFile:
    def __init__(self, path: Path) -> None:
        self.path, self._mutex, self._queue = path, Lock(), deque[_QueueEntry]()

    def __str__(self) -> str:
        return f"database {self.path}"

    @contextmanager
    def outages_reported(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if outage := self.as_outage(error):
                raise outage from error
            raise

    @contextmanager
    def wait_in_queue(self) -> Iterator[None]:
        """Let one writer at a time use the file. If it stays locked, refuse all waiting writers."""
        # SQLite itself makes writers poll; with many writers, some would wait until they time out.
        ours = _QueueEntry()
        with self._mutex:
            self._queue.append(ours)
            self._queue[0].turn.set()
        ours.turn.wait()
        try:
            if ours.refusal:
                raise DatabaseUnavailable(ours.refusal)
            with self._refusing_others_if_locked():
                yield
        finally:
            with self._mutex:
                self._queue.popleft()
                if self._queue:
                    self._queue[0].turn.set()

    @contextmanager
    def _refusing_others_if_locked(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, DatabaseUnavailable) as error:
            cause = error if isinstance(error, sqlite3.Error) else error.__cause__
            if _why(cause) == _LOCKED:
                with self._mutex:
                    for each in self._queue:
                        each.refusal = str(self.as_outage(cause))
            raise

    def as_outage(self, error: BaseException | None) -> DatabaseUnavailable | None:
        why = _why(error)
        return DatabaseUnavailable(f"The {self} cannot be used: {why}") if why else None


def _why(error: BaseException | None) -> str | None:
    code = getattr(error, "sqlite_errorcode", None) or 0
    return _OUTAGES.get(code & _PRIMARY)


@cache
def opened_file(path: Path) -> SqliteFile:
    return SqliteFile(path)
