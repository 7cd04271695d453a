"""Opening a checkpoint saver, so that debates pause, survive a crash and resume."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ormsgpack
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
    _create_msgpack_ext_hook,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from contend.graph.readings import (
    DebateScores,
    SideScore,
    StageScores,
    StatedProbabilities,
    StatementScores,
)
from contend.graph.settings import data_home
from contend.graph.state import CallSubject
from contend.graph.values import TurnLength, Value, WorkSpan

if TYPE_CHECKING:  # the driver is loaded only if a server is used
    from contend.graph.checkpoints.postgres import Postgres

# Where checkpoints of earlier versions find our values.
_OLD_MODULES = ("graph.state", "contend.graph.state")
_OLD_NAMES: dict[str, type[Value]] = {
    **{value.__name__: value for value in Value.__subclasses__()},
    "Cue": CallSubject,
    "Length": TurnLength,
    "Marking": StageScores,
    "Marks": StatementScores,
    "Span": WorkSpan,
    "Standing": SideScore,
    "Stated": StatedProbabilities,
    "Verdict": DebateScores,
}

CHECKPOINT_TABLES = {
    "sqlite": ("checkpoints", "writes"),
    "postgresql": ("checkpoints", "checkpoint_blobs", "checkpoint_writes"),
}


def database() -> "Path | Postgres":
    """Return where checkpoints and records are stored: the server of DATABASE_URL, or a file."""
    if not is_on_server():
        return database_path()
    from contend.graph.checkpoints.postgres import read_address

    return read_address(os.environ["DATABASE_URL"].strip())


def is_on_server() -> bool:
    return bool(os.environ.get("DATABASE_URL", "").strip())


def database_path() -> Path:
    """Return the private file of checkpoints and records, created if missing."""
    home = data_home()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / "contend.db"
    if not path.exists():
        # Only a new file may be opened here: closing it would drop the locks this process holds on
        # it, and the next reader would take the database for unused and delete what is in its log.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return path


@asynccontextmanager
async def checkpointer() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open a saver on the user's database; langgraph.json names this function too."""
    where = await asyncio.to_thread(database)
    if isinstance(where, Path):
        from contend.graph.checkpoints.sqlite_saver import sqlite_saver

        async with sqlite_saver(where, _serializer()) as saver:
            yield saver
    else:
        from contend.graph.checkpoints.postgres_saver import postgres_saver

        async with postgres_saver(where, _serializer()) as saver:
            yield saver


def _serializer() -> JsonPlusSerializer:
    """Return a serializer that loads our own values only: no checkpoint can run code."""
    # langgraph only makes such a list if a graph is compiled with its saver; on a server it is not.
    ours = [(value.__module__, value.__name__) for value in Value.__subclasses__()]
    load = _create_msgpack_ext_hook(set(ours))
    return JsonPlusSerializer(
        pickle_fallback=False,
        allowed_msgpack_modules=ours,
        __unpack_ext_hook__=partial(_unpack, load),
    )


def _unpack(load: Callable[[int, bytes], Any], code: int, data: bytes) -> Any:
    """Load one stored object; those of release 0.1 name modules and classes of that time."""
    if code not in (EXT_PYDANTIC_V2, EXT_DELTA_SNAPSHOT):
        return load(code, data)
    inner = ormsgpack.unpackb(
        data, ext_hook=partial(_unpack, load), option=ormsgpack.OPT_NON_STR_KEYS
    )
    if code == EXT_DELTA_SNAPSHOT:
        return _DeltaSnapshot(inner)
    module, name, values, *_ = inner
    if module not in _OLD_MODULES or name not in _OLD_NAMES:
        return load(code, data)
    return _OLD_NAMES[name].model_validate(values)
