"""Saves checkpoints in SQLite, and survives locked files and full disks."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from contend.graph.checkpoints import sqlite
from contend.graph.checkpoints.outages import (
    KeepingSaver,
    Writes,
    reserve_space,
    retry_until_available,
    thread_of,
)
from contend.graph.checkpoints.sqlite import SqliteFile, opened_file
from contend.graph.errors import DatabaseUnavailable

Result = TypeVar("Result")


@asynccontextmanager
async def sqlite_saver(path: Path, serde: SerializerProtocol) -> AsyncIterator[AsyncSqliteSaver]:
    """Open a saver with separate connections for one debate; all writers share a queue."""
    where = opened_file(path)
    await asyncio.to_thread(reserve_space)
    thread = ThreadPoolExecutor(1, "checkpoints")
    run = partial(asyncio.get_running_loop().run_in_executor, thread)
    try:
        writer = await run(Writer, where, serde)
        try:
            await retry_until_available(lambda: run(writer.set_up))
            async with aiosqlite.connect(path) as reader:
                await reader.execute(f"PRAGMA busy_timeout={sqlite.BUSY_TIMEOUT_MS}")
                yield _Saver(where, reader, writer, thread)
        finally:
            # Close after the last write, which a canceled step may have left in the queue.
            await asyncio.shield(run(writer.conn.close))
    finally:
        thread.shutdown(wait=False)


class Writer(SqliteSaver):
    """Writes in one transaction, when first in the queue."""

    def __init__(self, where: SqliteFile, serde: SerializerProtocol) -> None:
        super().__init__(sqlite3.connect(where.path, check_same_thread=False), serde=serde)
        self.where = where
        self.conn.execute(f"PRAGMA busy_timeout={sqlite.BUSY_TIMEOUT_MS}")

    def set_up(self) -> None:
        with self.where.answering(), self.where.turn():
            self.setup()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002 - theirs
        with self.where.turn(), self.conn, closing(self.conn.cursor()) as cursor:
            yield cursor


class _ThreadSaver(AsyncSqliteSaver):
    """Writes in a separate thread, to wait only once for a busy event loop."""

    def __init__(
        self, reader: aiosqlite.Connection, writer: Writer, thread: ThreadPoolExecutor
    ) -> None:
        super().__init__(reader, serde=writer.serde)
        self.writer, self._thread = writer, thread
        self.is_setup = True

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self.in_thread(self.writer.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Writes, task_id: str, task_path: str = ""
    ) -> None:
        await self.in_thread(self.writer.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.in_thread(self.writer.delete_thread, thread_id)

    async def in_thread(self, write: Callable[..., Result], *what: Any) -> Result:
        """Write in the thread; finish the write even if the waiting step is canceled."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, partial(write, *what)))


class _Saver(KeepingSaver, _ThreadSaver):
    def __init__(self, where: SqliteFile, *parts: Any) -> None:
        super().__init__(*parts)
        self.where = where

    async def _put_writes(self, config: RunnableConfig, *what: Any) -> bool:
        # There is no need to wait for earlier writes here: the thread runs them in order.
        return await self.in_thread(self._put_or_refuse, config, *what)

    def _put_or_refuse(self, config: RunnableConfig, *what: Any) -> bool:
        if thread_of(config) in self.threads_with_files:
            return False
        try:
            with self.where.answering():
                self.writer.put_writes(config, *what)
        except DatabaseUnavailable:
            self.threads_with_files.add(thread_of(config))
            return False
        return True
