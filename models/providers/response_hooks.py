"""Runs callbacks for the headers of each HTTP response, and whenever bytes arrive."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

OnHeaders = Callable[[Mapping[str, str]], None]

_on_headers: ContextVar[OnHeaders | None] = ContextVar("on_headers", default=None)
_on_bytes: ContextVar[Callable[[], None] | None] = ContextVar("on_bytes", default=None)


@contextmanager
def watching_headers(callback: OnHeaders) -> Iterator[None]:
    token = _on_headers.set(callback)
    try:
        yield
    finally:
        _on_headers.reset(token)


@contextmanager
def watching_bytes(callback: Callable[[], None]) -> Iterator[None]:
    token = _on_bytes.set(callback)
    try:
        yield
    finally:
        _on_bytes.reset(token)


def watch_client(client: Any) -> None:
    hooks = client.event_hooks
    if _watch_response not in hooks["response"]:
        client.event_hooks = {**hooks, "response": [*hooks["response"], _watch_response]}


async def _watch_response(response: Any) -> None:
    if callback := _on_headers.get():
        callback(response.headers)
    response.stream = _watched_type(_stream_type(response.stream))(response.stream)


def _stream_type(stream: object) -> type:
    return next(each for each in type(stream).__mro__ if each.__name__ == "AsyncByteStream")


@cache
def _watched_type(base: Any) -> Any:
    """Build a stream class from the base class that the client's library requires."""

    class WatchedStream(base):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                if callback := _on_bytes.get():
                    callback()
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    return WatchedStream
