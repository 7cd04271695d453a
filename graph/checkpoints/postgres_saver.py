"""Checkpoints in PostgreSQL, by a saver that outlives its server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, LiteralString, TypeVar
from urllib.parse import quote
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg.errors import UndefinedTable

from contend.graph.checkpoints.outages import retry_until_available
from contend.graph.checkpoints.postgres import Connection, Pool, Postgres, shared_pool
from contend.graph.errors import DatabaseUnavailable
from contend.graph.settings import data_home
from contend.models.files import make_private_folder, write_private_file
from contend.models.text import clean

Result = TypeVar("Result")
Writes = Sequence[tuple[str, Any]]

# Any number will do, as long as it stays the same in every release.
_LOCK = 20_261_117
_PAUSE = 0.05
_TRY_LOCK: LiteralString = "SELECT pg_try_advisory_lock(%s) AS found"
_UNLOCK: LiteralString = "SELECT pg_advisory_unlock(%s) AS found"


@asynccontextmanager
async def postgres_saver(
    where: Postgres, serde: SerializerProtocol
) -> AsyncIterator[AsyncPostgresSaver]:
    """Open a saver for one debate: each has its own lock, over one pool."""
    async with shared_pool(where) as pool:
        await retry_until_available(lambda: _set_up(where, pool))
        yield ReconnectingSaver(where, pool, serde)


class ReconnectingSaver(AsyncPostgresSaver):
    """Keeps paid results in files while the server is away, and saves them before continuing."""

    # All that a step has produced passes through `aput_writes`. Only a checkpoint, which can be
    # rebuilt from the writes, is refused; that ends the run before anything else is paid.

    def __init__(self, where: Postgres, pool: Pool, serde: SerializerProtocol) -> None:
        super().__init__(pool, serde=serde)
        self._where = where
        self._threads_with_files: set[str] = set()
        # Writes are queued, so that only the first one waits for a server that is away.
        self._writing = asyncio.Lock()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        await self._save_kept_writes(_thread(config))
        return await self._retry(super().aget_tuple, config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint, never before the writes it depends on."""
        await self._save_kept_writes(_thread(config))
        cleaned = _cleaned(checkpoint)
        return await self._retry(super().aput, config, cleaned, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Writes, task_id: str, task_path: str = ""
    ) -> None:
        async with self._writing:
            if await self._put_writes(config, writes, task_id, task_path):
                return
        ids = {key: config["configurable"][key] for key in _IDS}
        _, data = self.serde.dumps_typed([ids, list(writes), task_id, task_path])
        await asyncio.to_thread(_keep_in_file, _thread(config), data)

    async def _put_writes(self, config: RunnableConfig, *what: Any) -> bool:
        """Save writes; return False if the server is away, or was for earlier writes."""
        if _thread(config) in self._threads_with_files:
            return False
        try:
            with self._where.answering():
                await super().aput_writes(config, *what)
        except DatabaseUnavailable:
            self._threads_with_files.add(_thread(config))
            return False
        return True

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        ask = partial(super().aget_delta_channel_history, config=config, channels=channels)
        return await self._retry(ask)

    async def _save_kept_writes(self, thread: str) -> None:
        for file in await asyncio.to_thread(_kept_files, thread):
            data = await asyncio.to_thread(file.read_bytes)
            ids, writes, task_id, task_path = self.serde.loads_typed(("msgpack", data))
            config: RunnableConfig = {"configurable": ids}
            await self._retry(super().aput_writes, config, writes, task_id, task_path)
            await asyncio.to_thread(file.unlink)
        self._threads_with_files.discard(thread)

    async def _retry(self, method: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
        async def attempt() -> Result:
            with self._where.answering():
                return await method(*arguments)

        return await retry_until_available(attempt)


def _cleaned(checkpoint: Checkpoint) -> Checkpoint:
    """Drop characters that JSON in PostgreSQL does not accept."""
    values = checkpoint["channel_values"]
    texts = {name: clean(value) for name, value in values.items() if isinstance(value, str)}
    return {**checkpoint, "channel_values": {**values, **texts}}


_IDS = ("thread_id", "checkpoint_ns", "checkpoint_id")


def _thread(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _folder(thread: str) -> Path:
    return data_home() / "unsaved" / quote(thread, safe="")


def _keep_in_file(thread: str, data: bytes) -> None:
    folder = _folder(thread)
    make_private_folder(folder)
    write_private_file(folder / f"{uuid4()}.writes", data)


def _kept_files(thread: str) -> list[Path]:
    return sorted(_folder(thread).glob("*.writes"))


async def _set_up(where: Postgres, pool: Pool) -> None:
    """Create or migrate the checkpoint tables; one process does it, the others wait."""
    with where.answering():
        async with pool.connection() as connection:
            if await _is_set_up(connection):
                return
            # Polled: CREATE INDEX CONCURRENTLY would wait for sessions that block on this lock,
            # and they for it.
            while not await _ask(connection, _TRY_LOCK, [_LOCK]):  # noqa: ASYNC110 - not ours
                await asyncio.sleep(_PAUSE)
            try:
                await AsyncPostgresSaver(connection).setup()
            finally:
                await _ask(connection, _UNLOCK, [_LOCK])


async def _is_set_up(connection: Connection) -> bool:
    try:
        found = await _ask(connection, "SELECT max(v) AS found FROM checkpoint_migrations")
    except UndefinedTable:
        return False
    return found is not None and found >= len(AsyncPostgresSaver.MIGRATIONS) - 1


async def _ask(connection: Connection, query: LiteralString, values: Sequence[Any] = ()) -> Any:
    cursor = await connection.execute(query, values)
    row = await cursor.fetchone()
    return row["found"] if row else None
