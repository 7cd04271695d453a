"""The SQLite saver keeps paid results despite a lock or a full disk."""

import asyncio
import errno
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from contend.graph.checkpoints import outages
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.checkpoints.sqlite import opened_file
from contend.graph.checkpoints.sqlite_saver import ThreadSaver, Writer
from contend.graph.errors import DatabaseUnavailable
from contend.graph.settings import data_home
from contend.graph.values import Usage
from contend.models.files import write_private_file

CONFIG: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
PAID = [("turns", Usage(input_tokens=7)), ("round", 2)]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contend.graph.checkpoints.outages.PATIENCE", 0)
    monkeypatch.setattr("contend.graph.checkpoints.sqlite.BUSY_TIMEOUT_MS", 0)


@contextmanager
def locked() -> Iterator[None]:
    with closing(sqlite3.connect(data_home() / "contend.db")) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield


def writer_of(saver: object) -> Writer:
    assert isinstance(saver, ThreadSaver)
    return saver.writer


def aside() -> list[Path]:
    return list((data_home() / "unsaved").rglob("*.writes"))


async def writes_found() -> list[tuple[str, Any]]:
    async with checkpointer() as saver:
        found = await saver.aget_tuple(CONFIG)
    assert found
    return [(channel, value) for _, channel, value in found.pending_writes or []]


async def test_locked_database_loses_no_paid_result() -> None:
    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        with locked():
            await saver.aput_writes(at, PAID, "task", "path")
            with pytest.raises(DatabaseUnavailable, match="locked"):
                await saver.aput(at, empty_checkpoint(), {"step": 2}, {})
        assert len(aside()) == 1
    assert await writes_found() == PAID
    assert aside() == []


async def test_full_database_loses_no_paid_result_and_holds_no_lock() -> None:
    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        writer_of(saver).conn.execute("PRAGMA max_page_count=1")
        paid = [*PAID, ("answer", token_hex(50_000))]  # random, so that it stays long
        await saver.aput_writes(at, paid, "task", "path")
        assert not writer_of(saver).conn.in_transaction
        with closing(sqlite3.connect(data_home() / "contend.db", timeout=0)) as other:
            other.execute("BEGIN IMMEDIATE")
        assert len(aside()) == 1
    assert await writes_found() == paid


async def test_reserved_space_is_used_for_paid_results_on_a_full_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Unsaved results are stored on the same disk, so reserved space is freed for them."""
    reserve, write = data_home() / "unsaved" / "reserve", write_private_file

    def no_space(file: Path, content: bytes) -> None:
        if reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        write(file, content)

    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        assert reserve.stat().st_size == 1_000_000
        monkeypatch.setattr(outages, "write_private_file", no_space)
        with locked():
            await saver.aput_writes(at, PAID, "task", "path")
        assert not reserve.exists()
    assert await writes_found() == PAID


async def test_result_that_cannot_be_stored_raises_an_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_space(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        monkeypatch.setattr(outages, "write_private_file", no_space)
        with locked(), pytest.raises(DatabaseUnavailable, match="No space left"):
            await saver.aput_writes(at, PAID, "task", "path")


async def test_cancelled_write_completes_and_leaves_the_file_unlocked() -> None:
    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        with opened_file(data_home() / "contend.db").wait_in_queue():
            writing = asyncio.create_task(saver.aput_writes(at, PAID, "task", "path"))
            await asyncio.sleep(0)
            writing.cancel()
            await asyncio.wait({writing})
    assert writing.cancelled()
    with closing(sqlite3.connect(data_home() / "contend.db", timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
    assert await writes_found() == PAID


async def test_finished_calls_are_written_while_the_event_loop_is_blocked() -> None:
    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        writing = [
            asyncio.create_task(saver.aput_writes(at, PAID, f"task{number}", "path"))
            for number in range(5)
        ]
        await asyncio.sleep(0)  # from here on the loop is blocked
        with closing(sqlite3.connect(data_home() / "contend.db")) as other:
            tries = 3000
            while tries and other.execute("SELECT count(*) FROM writes").fetchone() != (10,):
                tries -= 1
                time.sleep(0.01)  # noqa: ASYNC251 - on purpose
        assert tries
        await asyncio.gather(*writing)


async def test_writes_of_a_call_are_saved_all_or_none() -> None:
    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        with pytest.raises(TypeError):
            await saver.aput_writes(at, [*PAID, ("answer", object())], "task", "path")
        writer_of(saver).conn.execute("PRAGMA max_page_count=1")
        await saver.aput_writes(at, [*PAID, ("answer", token_hex(50_000))], "task", "path")
        with closing(sqlite3.connect(data_home() / "contend.db")) as other:
            assert other.execute("SELECT count(*) FROM writes").fetchone() == (0,)


async def test_concurrent_savers_all_succeed_without_a_busy_timeout() -> None:
    """Without a busy timeout, SQLite itself would refuse most of them."""

    async def save(number: int) -> None:
        config: Any = {"configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}}
        async with checkpointer() as saver:
            for step in range(5):
                at = await saver.aput(config, empty_checkpoint(), {"step": step}, {})
                await saver.aput_writes(at, PAID, "task", "path")

    await asyncio.gather(*(save(number) for number in range(24)))
    assert aside() == []


async def test_a_list_of_checkpoints_is_read_while_a_writer_waits() -> None:
    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        with opened_file(data_home() / "contend.db").wait_in_queue():
            writing = asyncio.create_task(saver.aput_writes(at, PAID, "task", "path"))
            (found,) = [each async for each in saver.alist(CONFIG)]
            assert found.pending_writes == []
        await writing
        (found,) = [each async for each in saver.alist(CONFIG)]
    assert [(channel, value) for _, channel, value in found.pending_writes or []] == PAID


async def test_results_are_synced_to_the_disk_and_checkpoints_with_them() -> None:
    def synchronous(connection: sqlite3.Connection) -> int:
        return int(connection.execute("PRAGMA synchronous").fetchone()[0])

    async with checkpointer() as saver:
        writer, levels = writer_of(saver), list[int]()
        writer.conn.set_trace_callback(
            lambda what: levels.append(synchronous(writer.conn)) if what == "COMMIT" else None
        )
        at = await saver.aput(CONFIG, empty_checkpoint(), {"source": "input", "step": 0}, {})
        at = await saver.aput(at, empty_checkpoint(), {"source": "loop", "step": 1}, {})
        await saver.aput_writes(at, PAID, "task", "path")
        writer.conn.set_trace_callback(None)
    assert levels == [2, 1, 2]  # FULL, NORMAL, FULL
