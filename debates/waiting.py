import asyncio
from contextlib import suppress


async def wait_for_event(seconds: float, event: asyncio.Event) -> bool:
    # Not asyncio.wait_for, which can swallow a cancellation before Python 3.12.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
