"""Waits out short database outages, and keeps paid results during long outages."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from contend.graph.errors import DatabaseUnavailable
from contend.graph.settings import data_home
from contend.models.files import write_private_file

Result = TypeVar("Result")
Writes = Sequence[tuple[str, Any]]

# In seconds: longer than a database restart, but short enough for a user who is waiting.
PATIENCE = 10.0
_PAUSE = 0.5
# Deleted when the disk is full, so that paid results can still be stored.
_RESERVED_BYTES = 1_000_000
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_IDS = ("thread_id", "checkpoint_ns", "checkpoint_id")


async def retry_until_available(attempt: Callable[[], Awaitable[Result]]) -> Result:
    async for trial in AsyncRetrying(
        retry=retry_if_exception_type(DatabaseUnavailable),
        stop=stop_after_delay(PATIENCE),
        wait=wait_fixed(_PAUSE),
        reraise=True,
    ):
        with trial:
            result = await attempt()
    return result


class Database(Protocol):
    def outages_reported(self) -> AbstractContextManager[None]:
        """Convert outage errors in the block to DatabaseUnavailable."""


class OutageTolerantSaver(BaseCheckpointSaver[str]):
    """A saver that keeps results in files during an outage and saves them afterward."""

    # Every result of a step goes through `aput_writes`, which never fails in an outage. Only `aput`
    # can fail, which ends the run before the next paid call; a resume rebuilds the checkpoint.

    database: Database

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.threads_with_files: set[str] = set()
        # Writes are queued, so that in an outage only the first one waits for the database.
        self._writing = asyncio.Lock()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        await self._save_kept_writes(thread_of(config))
        return await self._retry(super().aget_tuple, config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        await self._save_kept_writes(thread_of(config))
        return await self._retry(super().aput, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Writes, task_id: str, task_path: str = ""
    ) -> None:
        if await self._put_writes(config, writes, task_id, task_path):
            return
        ids = {key: config["configurable"][key] for key in _IDS}
        kind, data = self.serde.dumps_typed([ids, list(writes), task_id, task_path])
        await asyncio.to_thread(_keep_in_file, thread_of(config), kind, data)

    async def _put_writes(self, config: RunnableConfig, *what: Any) -> bool:
        """Try to save the writes to the database. Return False during an outage."""
        async with self._writing:
            if thread_of(config) in self.threads_with_files:  # earlier writes come first
                return False
            try:
                with self.database.outages_reported():
                    await super().aput_writes(config, *what)
            except DatabaseUnavailable:
                self.threads_with_files.add(thread_of(config))
                return False
        return True

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        found = super().alist

        async def read() -> list[CheckpointTuple]:
            return [each async for each in found(config, **options)]

        for each in await self._retry(read):
            yield each

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        ask = partial(super().aget_delta_channel_history, config=config, channels=channels)
        return await self._retry(ask)

    async def _save_kept_writes(self, thread: str) -> None:
        for file in await asyncio.to_thread(_kept_files, thread):
            data = await asyncio.to_thread(file.read_bytes)
            ids, writes, task_id, task_path = self.serde.loads_typed((_kind_of(file), data))
            config: RunnableConfig = {"configurable": ids}
            await self._retry(super().aput_writes, config, writes, task_id, task_path)
            await asyncio.to_thread(file.unlink)
        self.threads_with_files.discard(thread)

    async def _retry(self, method: Callable[..., Awaitable[Result]], *arguments: Any) -> Result:
        async def attempt() -> Result:
            with self.database.outages_reported():
                return await method(*arguments)

        return await retry_until_available(attempt)


def finished_step(config: RunnableConfig, metadata: CheckpointMetadata) -> tuple[str, str] | None:
    """Return the parent checkpoint's namespace and id if the parent's step is now finished."""
    # Nothing reads the task results of a completed step again: a fork or replay runs it anew.
    place = config["configurable"]
    before = place.get("checkpoint_id")
    if before and metadata.get("source") == "loop":
        return place.get("checkpoint_ns", ""), before
    return None


def reserve_space() -> None:
    if not _reserve().exists():
        with suppress(OSError):  # random bytes, because some file systems compress
            write_private_file(_reserve(), os.urandom(_RESERVED_BYTES))


def _reserve() -> Path:
    return data_home() / "unsaved" / "reserve"


def thread_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def unsaved_folder(thread: str) -> Path:
    return data_home() / "unsaved" / quote(thread, safe="")


def _keep_in_file(thread: str, kind: str, data: bytes) -> None:
    file = unsaved_folder(thread) / f"{uuid4()}.{kind}.writes"
    try:
        try:
            write_private_file(file, data)
        except OSError as error:
            if error.errno not in _DISK_FULL:
                raise
            _reserve().unlink(missing_ok=True)
            write_private_file(file, data)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise DatabaseUnavailable(f"Results could not be kept in {file.parent}: {why}") from error


def _kind_of(file: Path) -> str:
    return file.stem.partition(".")[2] or "msgpack"  # earlier releases named no format


def _kept_files(thread: str) -> list[Path]:
    return sorted(unsaved_folder(thread).glob("*.writes"))
