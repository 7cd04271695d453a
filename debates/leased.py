import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from contend.debates.leases import LEASE, RECORD, Lease, LeaseColumns
from contend.debates.repository import Repository
from contend.debates.waiting import wait_for_event
from contend.graph.errors import DatabaseUnavailable


@asynccontextmanager
async def leased(
    records: Repository,
    debate_id: str,
    runner: asyncio.Task[Any] | None = None,
    columns: LeaseColumns = RECORD,
) -> AsyncIterator[Lease]:
    """Hold and renew the lease; cancel the run if another process takes the lease."""
    lease = await asyncio.to_thread(records.acquire, debate_id, columns)
    runner, ended = runner or asyncio.current_task(), asyncio.Event()

    async def renew() -> None:
        while not await wait_for_event(LEASE.total_seconds() / 4, ended):
            if not await asyncio.to_thread(lease.renew) and not ended.is_set() and runner:
                runner.cancel("another process took over this debate")
                return

    renewing = asyncio.create_task(renew())
    try:
        yield lease
    finally:
        # Not cancelled, because a renewal in progress would leak its connection.
        ended.set()
        try:
            await renewing
        finally:
            with suppress(DatabaseUnavailable):  # the lease will expire
                await asyncio.to_thread(lease.release)
