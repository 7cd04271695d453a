"""SQLite as the home of debates: what counts as an outage, and one queue of writers per file."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from threading import Lock

from contend.graph.errors import DatabaseUnavailable

# Longer than a backup tool holds its lock.
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


class SqliteFile:
    """One database file; `opened_file` returns the same object for the same path."""

    def __init__(self, path: Path) -> None:
        self.path, self.queue = path, WriteQueue()

    def __str__(self) -> str:
        return f"database {self.path}"

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Raise DatabaseUnavailable for errors that mean an outage, not a bad statement."""
        try:
            yield
        except sqlite3.Error as error:
            if away := self.away(error):
                raise away from error
            raise

    def away(self, error: BaseException) -> DatabaseUnavailable | None:
        code = getattr(error, "sqlite_errorcode", None) or 0
        why = _OUTAGES.get(code & _PRIMARY)
        return DatabaseUnavailable(f"The {self} cannot be used: {why}") if why else None


@cache
def opened_file(path: Path) -> SqliteFile:
    return SqliteFile(path)


class WriteQueue:
    """Lets one writer of this process at a time use a file, in the order they came."""

    # SQLite itself makes writers poll: among many, some would wait until they time out.

    def __init__(self) -> None:
        self._mutex, self._busy = Lock(), False
        self._waiting: deque[Future[None]] = deque()

    @contextmanager
    def turn(self) -> Iterator[None]:
        self._enter().result()
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def turn_of_task(self) -> AsyncIterator[None]:
        entered = self._enter()
        try:
            await asyncio.wrap_future(entered)
        except asyncio.CancelledError:
            if not entered.cancel():  # it was our turn already
                self._leave()
            raise
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> Future[None]:
        entered: Future[None] = Future()
        with self._mutex:
            if self._busy:
                self._waiting.append(entered)
            else:
                self._busy = True
                entered.set_result(None)
        return entered

    def _leave(self) -> None:
        with self._mutex:
            while self._waiting:
                following = self._waiting.popleft()
                if following.set_running_or_notify_cancel():
                    following.set_result(None)
                    return
            self._busy = False
