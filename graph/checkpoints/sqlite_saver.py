"""Checkpoints in SQLite, by a saver that outlasts locks and a full disk."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from contend.graph.checkpoints import sqlite
from contend.graph.checkpoints.outages import (
    KeepingSaver,
    Writes,
    reserve_space,
    retry_until_available,
)
from contend.graph.checkpoints.sqlite import SqliteFile, WriteQueue, opened_file


@asynccontextmanager
async def sqlite_saver(path: Path, serde: SerializerProtocol) -> AsyncIterator[AsyncSqliteSaver]:
    """Open a saver for one debate: each has its own connection, and all writers one queue."""
    where = opened_file(path)
    await asyncio.to_thread(reserve_space)
    async with aiosqlite.connect(path) as connection:
        await connection.execute(f"PRAGMA busy_timeout={sqlite.BUSY_TIMEOUT_MS}")
        saver = _Saver(where, connection, serde)
        await retry_until_available(saver.set_up_in_turn)
        try:
            yield saver
        finally:
            # A cancelled step may still be writing: closed amid that, SQLite stays locked.
            async with saver.lock:
                with where.answering():
                    await connection.commit()


class _QueuedSaver(AsyncSqliteSaver):
    """Waits for its turn to write."""

    queue: WriteQueue

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        async with self.turn_to_write():
            return await super().aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Writes, task_id: str, task_path: str = ""
    ) -> None:
        async with self.turn_to_write():
            await super().aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        async with self.turn_to_write():
            await super().adelete_thread(thread_id)

    @asynccontextmanager
    async def turn_to_write(self) -> AsyncIterator[None]:
        """Wait for the turn, and leave no transaction open: it would lock the file for others."""
        async with self.queue.turn_of_task():
            try:
                yield
            except asyncio.CancelledError:
                with suppress(sqlite3.Error):
                    await self.conn.commit()
                raise
            except sqlite3.Error:
                with suppress(sqlite3.Error):
                    await self.conn.rollback()
                raise


class _Saver(KeepingSaver, _QueuedSaver):
    def __init__(
        self, where: SqliteFile, connection: aiosqlite.Connection, serde: SerializerProtocol
    ) -> None:
        super().__init__(connection, serde=serde)
        self.where, self.queue = where, where.queue

    async def set_up_in_turn(self) -> None:
        with self.where.answering():
            async with self.turn_to_write():
                await self.setup()
