"""In SQLite, stores one copy of each value that a thread's checkpoints share.

Such values are the seats, the templates and a forecast's request. PostgreSQL's saver does the same.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot

TABLE = "checkpoint_constants"
CREATE = f"""CREATE TABLE IF NOT EXISTS {TABLE} (
    thread_id TEXT NOT NULL, hash TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, hash)) WITHOUT ROWID"""
_ADD = f"INSERT OR IGNORE INTO {TABLE} VALUES (?, ?, ?, ?)"  # noqa: S608 - ours
_FIND = f"SELECT hash, type, value FROM {TABLE} WHERE thread_id = ?"  # noqa: S608 - ours
DELETE = f"DELETE FROM {TABLE} WHERE thread_id = ?"  # noqa: S608 - ours
# The key of a checkpoint that holds the hashes of its shared values, by channel.
_KEY = "contend_constants"
# In bytes: smaller values take no more space than a reference.
_SMALLEST = 64
# The key in the metadata for the number of deltas of each channel since its last snapshot.
_DELTAS = "counters_since_delta_snapshot"


Known = dict[str, Any]
"""Shared values by their hash; several checkpoints hold the same object, so do not change it."""


class Split(NamedTuple):
    checkpoint: Checkpoint
    shared_values: list[tuple[str, str, bytes]]  # hash, type and data of each


def extract_shared_values(
    checkpoint: Checkpoint, metadata: CheckpointMetadata, serde: SerializerProtocol
) -> Split:
    values = checkpoint["channel_values"]
    if _DELTAS not in metadata:  # from another release of LangGraph, so any channel may be a delta
        return Split(checkpoint, [])
    kept: dict[str, Any] = {}
    rows: dict[str, tuple[str, str, bytes]] = {}
    for channel, value in values.items():
        # LangGraph looks for the snapshots of delta channels only in the checkpoint.
        stays = isinstance(value, _DeltaSnapshot)
        kind, data = ("", b"") if stays else serde.dumps_typed(value)
        if len(data) < _SMALLEST:
            kept[channel] = value
        else:
            rows[channel] = (blake2b(data, digest_size=12).hexdigest(), kind, data)
    hashes = {channel: row[0] for channel, row in rows.items()}
    without: Any = {**checkpoint, "channel_values": kept, _KEY: hashes}
    return Split(without if rows else checkpoint, list(rows.values()))


def add(cursor: sqlite3.Cursor, thread: str, rows: Iterable[tuple[str, str, bytes]]) -> None:
    cursor.executemany(_ADD, [(thread, *row) for row in rows])


def restore_shared_values(
    connection: sqlite3.Connection,
    thread: str,
    checkpoint: Any,
    serde: SerializerProtocol,
    known: Known,
) -> None:
    """Add the shared values to the checkpoint. `known` caches values between calls."""
    hashes: Mapping[str, str] = checkpoint.pop(_KEY, {})
    if missing := {*hashes.values()} - known.keys():
        query = f"{_FIND} AND hash IN ({', '.join('?' * len(missing))})"
        for digest, *value in connection.execute(query, (thread, *missing)).fetchall():
            known[digest] = serde.loads_typed((value[0], value[1]))
    for channel, digest in hashes.items():
        checkpoint["channel_values"][channel] = known[digest]
