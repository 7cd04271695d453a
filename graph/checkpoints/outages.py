"""Waiting for a database that restarts: short outages are retried silently."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from contend.graph.errors import DatabaseUnavailable

Result = TypeVar("Result")

# Seconds: longer than a restart, shorter than a user likes to watch an idle terminal.
PATIENCE = 10.0
_PAUSE = 0.5


async def retry_until_available(attempt: Callable[[], Awaitable[Result]]) -> Result:
    """Retry while the database is unavailable; re-raise the error after PATIENCE seconds."""
    async for trial in AsyncRetrying(
        retry=retry_if_exception_type(DatabaseUnavailable),
        stop=stop_after_delay(PATIENCE),
        wait=wait_fixed(_PAUSE),
        reraise=True,
    ):
        with trial:
            result = await attempt()
    return result
