"""Sends httpx clients' requests over one aiohttp connection pool per event loop.

For many concurrent streams, aiohttp needs only a fraction of the CPU time of httpx's pool.
"""

import asyncio
import urllib.request
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from ssl import SSLContext
from typing import Any

import aiohttp
from httpx2 import create_ssl_context

from contend.models.providers.registry import Opened, close_models, open_shared

_PROXIES = {"http", "https", "all"}
# As many as openai's client opens by default.
_MOST_CONNECTIONS = 1000
# Shorter than most servers' own, because a request on a connection that they just closed is lost.
_KEEP_ALIVE_SECONDS = 4.0
# Keys of a response's extensions: one registers a callback for its end, one lets its socket rest.
ON_END, REST = "contend_on_end", "contend_rest"

# The httpx error for each aiohttp error; the first match counts. httpx2 has the same names.
_ERRORS: tuple[tuple[type[Exception], str], ...] = (
    (aiohttp.ConnectionTimeoutError, "ConnectTimeout"),
    (aiohttp.ServerTimeoutError, "ReadTimeout"),
    (aiohttp.ClientConnectorError, "ConnectError"),
    (aiohttp.InvalidURL, "UnsupportedProtocol"),
    (aiohttp.ClientOSError, "ReadError"),
    (aiohttp.ClientError, "RemoteProtocolError"),
)


@cache
def ssl_context() -> SSLContext:
    """Return the clients' shared SSL context, cached because reading certificates is slow."""
    return create_ssl_context()


def pooled(library: Any) -> dict[str, Any]:
    """Return options that make an httpx or httpx2 client use the connection pool.

    With a proxy in the environment, clients open their own connections, which support SOCKS.
    """
    options: dict[str, Any] = {"verify": ssl_context()}
    has_proxy = not urllib.request.getproxies().keys().isdisjoint(_PROXIES)
    return options if has_proxy else {**options, "transport": PooledTransport(library)}


class PooledTransport:
    def __init__(self, library: Any) -> None:
        self._library = library

    async def handle_async_request(self, request: Any) -> Any:
        with _translated_errors(self._library):
            answer = await _send(request)
        stream = _stream_type(self._library.AsyncByteStream)(answer, self._library)
        return self._library.Response(
            answer.status,
            headers=list(answer.raw_headers),
            stream=stream,
            extensions={
                "http_version": b"HTTP/1.1",
                ON_END: answer.content.on_eof,
                REST: SocketRest(answer),
            },
        )

    async def aclose(self) -> None:
        """Do nothing, because other models use the same connections."""

    async def __aenter__(self) -> "PooledTransport":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class SocketRest:
    """Reads a socket at intervals, which takes less CPU time than waking up for every token."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self._loop = asyncio.get_running_loop()
        self._next: asyncio.Handle | None = None

    def begin(self, seconds: float) -> None:
        """Read from the socket at intervals of `seconds`, until `end` is called."""
        if transport := self._transport():
            transport.pause_reading()
            self._next = self._loop.call_later(seconds, self._read, seconds)

    def end(self) -> None:
        if self._next:
            self._next.cancel()
            self._next = None
            if transport := self._transport():
                transport.resume_reading()

    def _read(self, seconds: float) -> None:
        if transport := self._transport():
            transport.resume_reading()
            # The loop finds the bytes in its next iteration, and reads them at the end of it.
            self._next = self._loop.call_soon(self._pass, seconds)

    def _pass(self, seconds: float) -> None:
        self._next = self._loop.call_soon(self.begin, seconds)

    def _transport(self) -> asyncio.Transport | None:
        """Return the connection's transport, or None once the response has ended."""
        connection = self._answer.connection
        return connection.transport if connection else None


async def _send(request: Any) -> aiohttp.ClientResponse:
    body = await request.aread()
    session = await _session()
    return await session.request(
        request.method,
        # httpx has already moved a user and password from the address to a header.
        str(request.url.copy_with(username=None, password=None)),
        headers=request.headers.multi_items(),
        data=body or None,
        allow_redirects=False,
        timeout=_timeout(request.extensions.get("timeout", {})),
    )


def _timeout(stated: Mapping[str, float | None]) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=stated.get("connect"), sock_read=stated.get("read"))


async def _session() -> aiohttp.ClientSession:
    opening: list[AsyncGenerator[aiohttp.ClientSession, None]] = []

    def opened() -> Opened[aiohttp.ClientSession]:
        session = _new_session()
        guard = _close_with_loop(session)
        opening.append(guard)

        async def close() -> None:
            await session.close()
            await guard.aclose()

        return Opened(session, close)

    session: aiohttp.ClientSession = open_shared("connections", opened)
    if opening:
        await anext(opening[0])
    return session


def _new_session() -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=_MOST_CONNECTIONS, keepalive_timeout=_KEEP_ALIVE_SECONDS, ssl=ssl_context()
    )
    return aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
    )


async def _close_with_loop(
    session: aiohttp.ClientSession,
) -> AsyncGenerator[aiohttp.ClientSession, None]:
    """Yield the session, and close it when the event loop shuts down."""
    try:
        yield session
    finally:
        # If the session is already closed, a run that is still going on may use a new one.
        if not session.closed:
            await session.close()
            await close_models()


@contextmanager
def _translated_errors(library: Any) -> Iterator[None]:
    try:
        yield
    except aiohttp.ClientError as error:
        name = next(name for kind, name in _ERRORS if isinstance(error, kind))
        raise getattr(library, name)(str(error) or type(error).__name__) from error


@cache
def _stream_type(base: Any) -> Callable[[aiohttp.ClientResponse, Any], Any]:
    """Build a stream class from the base class that the client's library requires."""

    class PooledStream(base):  # type: ignore[misc]
        def __init__(self, answer: aiohttp.ClientResponse, library: Any) -> None:
            self._answer, self._library = answer, library

        async def __aiter__(self) -> AsyncIterator[bytes]:
            with _translated_errors(self._library):
                async for block in self._answer.content.iter_any():
                    yield block

        async def aclose(self) -> None:
            self._answer.release()

    return PooledStream
