"""Waiting for a database that is away: a restart takes seconds, and no debate need notice it."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TypeVar

from contend.graph.errors import DatabaseUnavailable

Result = TypeVar("Result")

# Longer than a restart, shorter than anybody likes to look at a terminal that does nothing.
PATIENCE = 10.0
_PAUSE = 0.5


async def retry_until_available(attempt: Callable[[], Awaitable[Result]]) -> Result:
    """Try until the database answers; give up when it has been away for too long."""
    give_up = monotonic() + PATIENCE
    while True:
        try:
            return await attempt()
        except DatabaseUnavailable:
            if monotonic() >= give_up:
                raise
        await asyncio.sleep(_PAUSE)
