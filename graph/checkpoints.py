"""Opening a checkpoint saver, so that debates pause, survive a crash and resume."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph.settings import data_home
from graph.state import Value

BUSY_TIMEOUT_MS = 30_000


def database_path() -> Path:
    """The one database of checkpoints and records, private to its user, made if missing."""
    home = data_home()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / "contend.db"
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return path


@asynccontextmanager
async def checkpointer() -> AsyncIterator[AsyncSqliteSaver]:
    """A saver on the user's database; also what langgraph.json names."""
    async with aiosqlite.connect(await asyncio.to_thread(database_path)) as connection:
        await connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        saver = AsyncSqliteSaver(connection, serde=_serializer())
        try:
            yield saver
        finally:
            # A cancelled step may still be writing: closed amid that, SQLite stays locked.
            async with saver.lock:
                await connection.commit()


def _serializer() -> JsonPlusSerializer:
    """Loads the values of our own state and nothing else, so that no checkpoint can run code.

    langgraph makes such a list when it compiles a graph with a saver; a server that adds the
    saver later has none.
    """
    ours = [(value.__module__, value.__name__) for value in Value.__subclasses__()]
    return JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=ours)
