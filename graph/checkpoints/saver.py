import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver

from contend.graph.checkpoints.location import database
from contend.graph.serializer import serializer


# langgraph.json refers to this function by name.
@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    where = await asyncio.to_thread(database)
    if isinstance(where, Path):
        from contend.graph.checkpoints.sqlite_saver import sqlite_saver

        async with sqlite_saver(where, serializer()) as saver:
            yield saver
    else:
        from contend.graph.checkpoints.postgres_saver import postgres_saver

        async with postgres_saver(where, serializer()) as saver:
            yield saver
