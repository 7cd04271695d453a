import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import lru_cache
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from contend.debates.stored_events import StoredEvent
from contend.graph.errors import DatabaseUnavailable

# A viewer that reads nothing for this long is dropped; it can reconnect without missing anything.
# Under `contend serve`, the server closes the connection sooner.
_SECONDS_TO_SEND = 60.0
HEARTBEAT = b": heartbeat\n\n"

Groups = AsyncGenerator[list[StoredEvent]]


class MessageStream(StreamingResponse):
    def __init__(self, messages: AsyncGenerator[bytes]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        self._messages = messages
        super().__init__(self._messages, 200, headers, "text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Any) -> None:
            async with asyncio.timeout(_SECONDS_TO_SEND):
                await send(message)

        async with aclosing(self._messages):
            with suppress(TimeoutError, ClientDisconnect):
                await super().__call__(scope, receive, send_in_time)


class EventStream(MessageStream):
    def __init__(self, groups: Groups) -> None:
        super().__init__(_encode(groups))


async def _encode(groups: Groups) -> AsyncGenerator[bytes]:
    yield HEARTBEAT  # tells a viewer that it is connected, even if nothing happens in the debate
    async with aclosing(groups):
        with suppress(DatabaseUnavailable):  # the viewer reconnects
            async for group in groups:
                yield b"".join(map(_message, group)) or HEARTBEAT


@lru_cache(maxsize=1024)  # all viewers of a debate get the same messages
def _message(stored: StoredEvent) -> bytes:
    return f"id: {stored.seq}\nevent: {stored.name}\ndata: {stored.text}\n\n".encode()
