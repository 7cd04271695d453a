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
from langgraph._internal._constants import RETURN
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from contend.graph.checkpoints import shared_values, sqlite
from contend.graph.checkpoints.outages import (
    OutageTolerantSaver,
    Writes,
    finished_step,
    reserve_space,
    retry_until_available,
    thread_of,
)
from contend.graph.checkpoints.sqlite import SqliteFile, opened_file
from contend.graph.errors import DatabaseUnavailable

Result = TypeVar("Result")

_DELETE_RESULTS = (
    "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? "
    "AND channel = ?"
)


@asynccontextmanager
async def sqlite_saver(path: Path, serde: SerializerProtocol) -> AsyncIterator[AsyncSqliteSaver]:
    database = opened_file(path)
    await asyncio.to_thread(reserve_space)
    thread = ThreadPoolExecutor(1, "checkpoints")
    run = partial(asyncio.get_running_loop().run_in_executor, thread)
    try:
        writer = await run(Writer, database, serde)
        try:
            await retry_until_available(lambda: run(writer.set_up))
            async with aiosqlite.connect(path) as reader:
                await reader.execute(f"PRAGMA busy_timeout={sqlite.BUSY_TIMEOUT_MS}")
                yield _Saver(database, reader, writer, thread)
        finally:
            # Close after the last write, which a canceled step may have left in the queue.
            await asyncio.shield(run(writer.conn.close))
    finally:
        thread.shutdown(wait=False)


class Writer(SqliteSaver):
    def __init__(self, database: SqliteFile, serde: SerializerProtocol) -> None:
        super().__init__(sqlite3.connect(database.path, check_same_thread=False), serde=serde)
        self.database = database
        self._cursor: sqlite3.Cursor | None = None
        self.conn.execute(f"PRAGMA busy_timeout={sqlite.BUSY_TIMEOUT_MS}")

    def set_up(self) -> None:
        with self.database.outages_reported(), self.database.wait_in_queue():
            self.setup()
            self.conn.execute(shared_values.CREATE)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002 - inherited
        """Open a transaction, or continue the one that is open."""
        if self._cursor:
            yield self._cursor
            return
        with self.database.wait_in_queue(), self.conn, closing(self.conn.cursor()) as cursor:
            self._cursor = cursor
            try:
                yield cursor
            finally:
                self._cursor = None

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread = thread_of(config)
        without, rows = shared_values.extract_shared_values(checkpoint, metadata, self.serde)
        with self.cursor() as cursor:
            shared_values.add(cursor, thread, rows)
            if finished := finished_step(config, metadata):
                cursor.execute(_DELETE_RESULTS, (thread, *finished, RETURN))
            return super().put(config, without, metadata, new_versions)

    def delete_thread(self, thread_id: str) -> None:
        with self.cursor() as cursor:
            cursor.execute(shared_values.DELETE, (str(thread_id),))
            super().delete_thread(thread_id)


class _ThreadSaver(AsyncSqliteSaver):
    """A saver that writes in a thread of its own, because the event loop may be busy."""

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
        """Run a write in the saver's thread; it completes even if the awaiting step is canceled."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, partial(write, *what)))


class _Reader(_ThreadSaver):
    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        found = await super().aget_tuple(config)
        return await self._restored(found, {}) if found else None

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        known: shared_values.Known = {}
        async for each in super().alist(config, **options):
            yield await self._restored(each, known)

    async def _restored(
        self, found: CheckpointTuple, known: shared_values.Known
    ) -> CheckpointTuple:
        given = thread_of(found.config), found.checkpoint, self.serde, known
        await shared_values.restore_shared_values(self.conn, *given)
        return found


class _Saver(OutageTolerantSaver, _Reader):
    def __init__(self, database: SqliteFile, *parts: Any) -> None:
        super().__init__(*parts)
        self.database = database

    async def _put_writes(self, config: RunnableConfig, *what: Any) -> bool:
        # There is no need to wait for earlier writes here: the thread runs them in order.
        return await self.in_thread(self._put_or_refuse, config, *what)

    def _put_or_refuse(self, config: RunnableConfig, *what: Any) -> bool:
        if thread_of(config) in self.threads_with_files:
            return False
        try:
            with self.database.outages_reported():
                self.writer.put_writes(config, *what)
        except DatabaseUnavailable:
            self.threads_with_files.add(thread_of(config))
            return False
        return True
