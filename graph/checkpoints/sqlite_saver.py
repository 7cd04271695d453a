import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import RETURN
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver

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
Saver = TypeVar("Saver", bound="_Connection")

_DELETE_RESULTS = (
    "DELETE FROM writes WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? "
    "AND channel = ?"
)


@asynccontextmanager
async def sqlite_saver(path: Path, serde: SerializerProtocol) -> AsyncIterator["ThreadSaver"]:
    database = opened_file(path)
    await asyncio.to_thread(reserve_space)
    async with _opened(Writer, database, serde) as (writer, writing):
        await retry_until_available(lambda: _run(writing, writer.set_up))
        # A second connection, because reading must not wait until the file is free for a writer.
        async with _opened(CheckpointReader, database, serde) as (reader, reading):
            yield _Saver(database, reader, reading, writer, writing)


@asynccontextmanager
async def _opened(
    kind: type[Saver], database: SqliteFile, serde: SerializerProtocol
) -> AsyncIterator[tuple[Saver, ThreadPoolExecutor]]:
    """Open a saver, and the thread that runs its calls."""
    thread = ThreadPoolExecutor(1, "checkpoints")
    try:
        saver = await _run(thread, kind, database, serde)
        try:
            yield saver, thread
        finally:
            # Close it last: a canceled step may have left work in the queue.
            await _run(thread, saver.conn.close)
    finally:
        thread.shutdown(wait=False)


async def _run(thread: ThreadPoolExecutor, work: Callable[..., Result], *what: Any) -> Result:
    """Run work in the thread. Canceling the caller does not stop the work."""
    loop = asyncio.get_running_loop()
    return await asyncio.shield(loop.run_in_executor(thread, partial(work, *what)))


class _Connection(SqliteSaver):
    def __init__(self, database: SqliteFile, serde: SerializerProtocol) -> None:
        super().__init__(sqlite3.connect(database.path, check_same_thread=False), serde=serde)
        self.database = database
        self.conn.execute(f"PRAGMA busy_timeout={sqlite.BUSY_TIMEOUT_MS}")


class CheckpointReader(_Connection):
    @contextmanager
    def cursor(self, transaction: bool = False) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002 - inherited
        with closing(self.conn.cursor()) as cursor:
            yield cursor

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        self.conn.execute("BEGIN")  # one snapshot, because a deletion may come between the reads
        try:
            found = super().get_tuple(config)
            return self._restored(found, {}) if found else None
        finally:
            self.conn.rollback()

    def list(self, config: RunnableConfig | None, **options: Any) -> Iterator[CheckpointTuple]:
        known: shared_values.Known = {}
        for each in super().list(config, **options):
            yield self._restored(each, known)

    def _restored(self, found: CheckpointTuple, known: shared_values.Known) -> CheckpointTuple:
        given = thread_of(found.config), found.checkpoint, self.serde, known
        shared_values.restore_shared_values(self.conn, *given)
        return found


class Writer(_Connection):
    _cursor: sqlite3.Cursor | None = None

    def set_up(self) -> None:
        with self.database.outages_reported(), self.database.wait_in_queue():
            self.setup()
            self.conn.execute(shared_values.CREATE)

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[sqlite3.Cursor]:  # noqa: ARG002 - inherited
        """Open a transaction, or reuse the open one."""
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
        finished = finished_step(config, metadata)
        with self._unsynced() if finished else nullcontext(), self.cursor() as cursor:
            shared_values.add(cursor, thread, rows)
            if finished:
                cursor.execute(_DELETE_RESULTS, (thread, *finished, RETURN))
            return super().put(config, without, metadata, new_versions)

    @contextmanager
    def _unsynced(self) -> Iterator[None]:
        """Skip fsync, which takes milliseconds, for writes in the `with` block.

        After a power failure, a lost checkpoint is rebuilt from the stored results of its step.
        """
        self.conn.execute("PRAGMA synchronous=NORMAL")
        try:
            yield
        finally:
            self.conn.execute("PRAGMA synchronous=FULL")

    def delete_thread(self, thread_id: str) -> None:
        with self.cursor() as cursor:
            cursor.execute(shared_values.DELETE, (str(thread_id),))
            super().delete_thread(thread_id)


class ThreadSaver(BaseCheckpointSaver[str]):
    """A saver with one thread for reads and one for writes."""

    def __init__(
        self,
        reader: CheckpointReader,
        reading: ThreadPoolExecutor,
        writer: Writer,
        writing: ThreadPoolExecutor,
    ) -> None:
        super().__init__(serde=writer.serde)
        self.reader, self.writer = reader, writer
        self._read, self._write = partial(_run, reading), partial(_run, writing)

    def get_next_version(self, current: str | None, channel: None) -> str:
        return self.writer.get_next_version(current, channel)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._read(self.reader.get_tuple, config)

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        for each in await self._read(lambda: [*self.reader.list(config, **options)]):
            yield each

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        find = self.reader.get_delta_channel_history
        return await self._read(partial(find, config=config, channels=channels))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._write(self.writer.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Writes, task_id: str, task_path: str = ""
    ) -> None:
        await self._write(self.writer.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._write(self.writer.delete_thread, thread_id)


class _Saver(OutageTolerantSaver, ThreadSaver):
    def __init__(self, database: SqliteFile, *parts: Any) -> None:
        super().__init__(*parts)
        self.database = database

    async def _put_writes(self, config: RunnableConfig, *what: Any) -> bool:
        # There is no need to wait for earlier writes here: the thread runs them in order.
        return await self._write(self._put_or_refuse, config, *what)

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
