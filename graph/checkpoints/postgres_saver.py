import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, LiteralString

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import RETURN
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg.errors import UndefinedTable

from contend.graph.checkpoints.outages import (
    OutageTolerantSaver,
    finished_step,
    retry_until_available,
    thread_of,
)
from contend.graph.checkpoints.postgres import Connection, Pool, Postgres, shared_pool
from contend.graph.errors import DatabaseUnavailable
from contend.models.text import clean

# An arbitrary number that must be the same in every release.
_LOCK = 20_261_117
_PAUSE = 0.05
_TRY_LOCK: LiteralString = "SELECT pg_try_advisory_lock(%s) AS found"
_DELETE_RESULTS: LiteralString = (
    "DELETE FROM checkpoint_writes WHERE thread_id = %s AND checkpoint_ns = %s "
    "AND checkpoint_id = %s AND channel = %s"
)
_UNLOCK: LiteralString = "SELECT pg_advisory_unlock(%s) AS found"


@asynccontextmanager
async def postgres_saver(
    database: Postgres, serde: SerializerProtocol
) -> AsyncIterator[AsyncPostgresSaver]:
    async with shared_pool(database) as pool:
        await retry_until_available(lambda: _set_up(database, pool))
        yield ReconnectingSaver(database, pool, serde)


class ReconnectingSaver(OutageTolerantSaver, AsyncPostgresSaver):
    def __init__(self, database: Postgres, pool: Pool, serde: SerializerProtocol) -> None:
        super().__init__(pool, serde=serde)
        self.database = database

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        saved = await super().aput(config, _cleaned(checkpoint), metadata, new_versions)
        if finished := finished_step(config, metadata):
            # The checkpoint is saved, and results that stay because of an outage do no harm.
            with suppress(DatabaseUnavailable), self.database.outages_reported():
                async with self._cursor() as cursor:
                    await cursor.execute(_DELETE_RESULTS, (thread_of(config), *finished, RETURN))
        return saved


def _cleaned(checkpoint: Checkpoint) -> Checkpoint:
    values = checkpoint["channel_values"]
    texts = {name: clean(value) for name, value in values.items() if isinstance(value, str)}
    return {**checkpoint, "channel_values": {**values, **texts}}


async def _set_up(database: Postgres, pool: Pool) -> None:
    with database.outages_reported():
        async with pool.connection() as connection:
            if await _is_set_up(connection):
                return
            # Poll, because a session that blocks on the lock would deadlock with the
            # CREATE INDEX CONCURRENTLY in the session that holds it.
            while not await _ask(connection, _TRY_LOCK, [_LOCK]):  # noqa: ASYNC110 - no event to wait for
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
