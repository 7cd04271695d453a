"""Waits for an event, but not for ever."""

import asyncio
from contextlib import suppress


async def wait_for_event(seconds: float, event: asyncio.Event) -> bool:
    """Wait for an event or a timeout; return whether the event is set."""
    # Not asyncio.wait_for: before Python 3.12 it can swallow a cancellation.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
