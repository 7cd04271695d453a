"""Checkpoints in SQLite, by a saver that outlasts locks and a full disk."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from contend.graph.checkpoints import sqlite
from contend.graph.checkpoints.outages import (
    IDS,
    KeepingSaver,
    Writes,
    reserve_space,
    retry_until_available,
)
from contend.graph.checkpoints.sqlite import SqliteFile, opened_file

_INSERT = (
    "INSERT OR {} INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, "
    "channel, type, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


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

    file: SqliteFile
    _jobs = 0
    _outage: sqlite3.Error | None = None

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
        """Save results in one job, because each return to a busy event loop delays it."""
        ids = [str(config["configurable"][key]) for key in IDS]
        rows = [
            (*ids, task_id, task_path, WRITES_IDX_MAP.get(name, at), name, *self._dumped(value))
            for at, (name, value) in enumerate(writes)
        ]
        conflict = "REPLACE" if all(name in WRITES_IDX_MAP for name, _ in writes) else "IGNORE"
        if not self._jobs:
            self._outage = None
        self._jobs += 1
        try:
            await self.conn._execute(self._insert, _INSERT.format(conflict), rows)  # type: ignore[no-untyped-call]
        finally:
            self._jobs -= 1

    def _dumped(self, value: Any) -> tuple[str, bytes]:
        return self.serde.dumps_typed(value)

    def _insert(self, query: str, rows: list[tuple[Any, ...]]) -> None:
        if self._outage:  # only the first of several jobs waits for it
            raise self._outage
        connection = self.conn._conn
        with self.file.queue.turn():
            try:
                connection.executemany(query, rows)
                connection.commit()
            except sqlite3.Error as error:
                self._outage = error if self.file.away(error) else None
                with suppress(sqlite3.Error):
                    connection.rollback()
                raise

    async def adelete_thread(self, thread_id: str) -> None:
        async with self.turn_to_write():
            await super().adelete_thread(thread_id)

    @asynccontextmanager
    async def turn_to_write(self) -> AsyncIterator[None]:
        """Wait for the turn, and leave no transaction open: it would lock the file for others."""
        async with self.file.queue.turn_of_task():
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
        self.where = self.file = where
        self._writing = nullcontext()  # the connection's thread is the queue

    async def set_up_in_turn(self) -> None:
        with self.where.answering():
            async with self.turn_to_write():
                await self.setup()
