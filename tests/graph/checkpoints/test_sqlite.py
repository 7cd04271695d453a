"""SQLite below the records: which errors are outages, and the queue of writers."""

import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from contend.graph.checkpoints.sqlite import SqliteFile, WriteQueue, opened_file
from contend.graph.errors import DatabaseUnavailable


@pytest.fixture
def file(tmp_path: Path) -> SqliteFile:
    return opened_file(tmp_path / "some.db")


def test_a_locked_file_is_an_outage(file: SqliteFile) -> None:
    with closing(sqlite3.connect(file.path)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with (
            closing(sqlite3.connect(file.path, timeout=0)) as other,
            pytest.raises(DatabaseUnavailable, match="another program keeps it locked"),
            file.answering(),
        ):
            other.execute("CREATE TABLE more (x)")


def test_a_full_disk_is_an_outage_and_says_so(file: SqliteFile) -> None:
    with closing(sqlite3.connect(file.path)) as opened:
        opened.execute("CREATE TABLE some (x)")
        opened.execute("PRAGMA max_page_count=1")
        with pytest.raises(DatabaseUnavailable) as full, file.answering():
            opened.execute("INSERT INTO some VALUES (zeroblob(100000))")
    expected = f"The database {file.path} cannot be used: the disk is full; free some space"
    assert str(full.value) == expected


@pytest.mark.parametrize(
    "code", [sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_BUSY_SNAPSHOT]
)
def test_extended_error_codes_count_as_their_primary_ones(code: int, file: SqliteFile) -> None:
    error = sqlite3.OperationalError("trouble")
    error.sqlite_errorcode = code
    assert isinstance(file.away(error), DatabaseUnavailable)


def test_a_broken_statement_is_no_outage(file: SqliteFile) -> None:
    with (
        closing(sqlite3.connect(file.path)) as opened,
        pytest.raises(sqlite3.OperationalError, match="no such table"),
        file.answering(),
    ):
        opened.execute("SELECT * FROM missing")


def test_the_same_file_has_one_queue(tmp_path: Path) -> None:
    assert opened_file(tmp_path / "a").queue is opened_file(tmp_path / "a").queue
    assert opened_file(tmp_path / "a").queue is not opened_file(tmp_path / "b").queue


async def test_threads_and_tasks_write_in_the_order_they_came() -> None:
    queue, order = WriteQueue(), list[int]()

    def thread(number: int) -> None:
        with queue.turn():
            order.append(number)

    async def task(number: int) -> None:
        async with queue.turn_of_task():
            order.append(number)

    with ThreadPoolExecutor(4) as pool:
        async with queue.turn_of_task():
            running = []
            for number in range(8):
                if number % 2:
                    running.append(asyncio.wrap_future(pool.submit(thread, number)))
                else:
                    running.append(asyncio.create_task(task(number)))
                while len(queue._waiting) <= number:  # noqa: ASYNC110 - a thread adds itself
                    await asyncio.sleep(0)
            assert order == []
        await asyncio.gather(*running)
    assert order == list(range(8))


async def test_a_cancelled_writer_gives_its_place_to_the_next() -> None:
    queue, written = WriteQueue(), list[str]()

    async def write(name: str) -> None:
        async with queue.turn_of_task():
            written.append(name)

    async with queue.turn_of_task():
        waiting, granted, last = (asyncio.create_task(write(name)) for name in "abc")
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    # Its turn has come, but it is cancelled before it notices.
    granted.cancel()
    await asyncio.wait({granted, last})
    assert written == ["c"]
    with queue.turn():
        pass


async def test_a_writer_in_a_thread_does_not_block_the_event_loop() -> None:
    queue, holding, done = WriteQueue(), Event(), Event()

    def hold() -> None:
        with queue.turn():
            holding.set()
            done.wait()

    running = asyncio.create_task(asyncio.to_thread(hold))
    await asyncio.to_thread(holding.wait)

    async def write() -> None:
        async with queue.turn_of_task():
            pass

    waiting = asyncio.create_task(write())
    await asyncio.sleep(0)
    done.set()
    await asyncio.gather(running, waiting)
