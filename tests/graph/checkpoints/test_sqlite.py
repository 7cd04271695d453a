"""SQLite: which errors count as outages, and the queue of writers."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from time import sleep
from typing import TypeVar

import pytest

from contend.graph.checkpoints.sqlite import SqliteFile, opened_file
from contend.graph.errors import DatabaseUnavailable

T = TypeVar("T")


@pytest.fixture
def file(tmp_path: Path) -> SqliteFile:
    return opened_file(tmp_path / "some.db")


def test_a_locked_file_is_an_outage(file: SqliteFile) -> None:
    with closing(sqlite3.connect(file.path)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with (
            closing(sqlite3.connect(file.path, timeout=0)) as other,
            pytest.raises(DatabaseUnavailable, match="another program keeps it locked"),
            file.outages_reported(),
        ):
            other.execute("CREATE TABLE more (x)")


def test_full_disk_is_reported_as_an_outage(file: SqliteFile) -> None:
    with closing(sqlite3.connect(file.path)) as opened:
        opened.execute("CREATE TABLE some (x)")
        opened.execute("PRAGMA max_page_count=1")
        with pytest.raises(DatabaseUnavailable) as full, file.outages_reported():
            opened.execute("INSERT INTO some VALUES (zeroblob(100000))")
    expected = f"The database {file.path} cannot be used: the disk is full; free some space"
    assert str(full.value) == expected


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_BUSY_SNAPSHOT]
)
def test_extended_error_codes_count_as_their_primary_ones(code: int, file: SqliteFile) -> None:
    error = sqlite3.OperationalError("trouble")
    error.sqlite_errorcode = code
    assert isinstance(file.as_outage(error), DatabaseUnavailable)


def test_invalid_statement_is_not_an_outage(file: SqliteFile) -> None:
    with (
        closing(sqlite3.connect(file.path)) as opened,
        pytest.raises(sqlite3.OperationalError, match="no such table"),
        file.outages_reported(),
    ):
        opened.execute("SELECT * FROM missing")


def test_the_same_file_has_one_queue(tmp_path: Path) -> None:
    assert opened_file(tmp_path / "a") is opened_file(tmp_path / "a")
    assert opened_file(tmp_path / "a") is not opened_file(tmp_path / "b")


@contextmanager
def queued(file: SqliteFile, writers: Sequence[Callable[[], T]]) -> Iterator[list[Future[T]]]:
    """Queue writers in this order; they run after the block."""
    with ThreadPoolExecutor(len(writers)) as pool, file.wait_in_queue():
        waiting = []
        for number, write in enumerate(writers):
            waiting.append(pool.submit(write))
            while len(file._queue) < number + 2:
                sleep(0)
        yield waiting


def test_writers_run_in_the_order_they_queued(file: SqliteFile) -> None:
    order = list[int]()

    def write(number: int) -> None:
        with file.wait_in_queue():
            order.append(number)

    with queued(file, [partial(write, number) for number in range(8)]):
        assert order == []
    assert order == list(range(8))


def test_failing_writer_does_not_block_the_next(file: SqliteFile) -> None:
    with pytest.raises(ZeroDivisionError), file.wait_in_queue():
        raise ZeroDivisionError
    with file.wait_in_queue():
        pass


def test_queued_writers_fail_without_retrying_a_locked_file(
    file: SqliteFile,
) -> None:
    attempts = list[int]()

    def write() -> None:
        with file.outages_reported(), file.wait_in_queue():
            attempts.append(1)

    with closing(sqlite3.connect(file.path)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with (
            pytest.raises(DatabaseUnavailable),
            closing(sqlite3.connect(file.path, timeout=0)) as other,
            file.outages_reported(),
            queued(file, [write] * 3) as waiting,
        ):
            other.execute("CREATE TABLE more (x)")
    for each in waiting:
        with pytest.raises(DatabaseUnavailable, match="another program keeps it locked"):
            each.result()
    assert attempts == []
    write()
    assert attempts == [1]
