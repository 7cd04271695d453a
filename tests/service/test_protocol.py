"""Time limits for clients, on a simulated clock."""

import asyncio
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from contend.service.protocol import (
    SECONDS_FOR_HEADERS,
    SECONDS_WITHOUT_READING,
    PunctualProtocol,
)

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Client(asyncio.Transport):
    """Simulate the client end of a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.received, self.is_closed = b"", False
        self.unread, self.is_aborted = 0, False
        self.protocol: PunctualProtocol | None = None

    def write(self, data: Any) -> None:
        self.received += bytes(data)

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_aborted = True
        if self.protocol:
            self.protocol.connection_lost(None)

    def get_write_buffer_size(self) -> int:
        return self.unread

    def is_closing(self) -> bool:
        return self.is_closed

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass


async def app(_scope: Any, _receive: Any, send: Any) -> None:
    await asyncio.sleep(3 * SECONDS_FOR_HEADERS)
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


def connect() -> tuple[Client, PunctualProtocol]:
    config = Config(app, log_config=None, timeout_keep_alive=60)
    config.load()
    client, protocol = Client(), PunctualProtocol(config, ServerState(), {})
    client.protocol = protocol
    protocol.connection_made(client)
    return client, protocol


@pytest.mark.looptime
@pytest.mark.parametrize("half", [b"", b"G", REQUEST[:-2], REQUEST[:20]])
async def test_an_incomplete_request_times_out(half: bytes) -> None:
    client, protocol = connect()
    if half:
        protocol.data_received(half)
    await asyncio.sleep(SECONDS_FOR_HEADERS - 1)
    assert not client.is_closed
    await asyncio.sleep(2)
    assert client.is_closed
    assert client.received.startswith(b"HTTP/1.1 408 ")


@pytest.mark.looptime
async def test_sending_more_headers_does_not_extend_the_timeout() -> None:
    client, protocol = connect()
    protocol.data_received(REQUEST[:-2])
    for number in range(SECONDS_FOR_HEADERS):
        assert not client.is_closed
        protocol.data_received(b"X-%d: drip\r\n" % number)
        await asyncio.sleep(1)
    await asyncio.sleep(1)
    assert client.is_closed


@pytest.mark.looptime
async def test_a_slow_response_does_not_time_out() -> None:
    client, protocol = connect()
    protocol.data_received(REQUEST)
    await asyncio.sleep(4 * SECONDS_FOR_HEADERS)
    assert client.received.startswith(b"HTTP/1.1 200 ")
    assert not client.is_closed


@pytest.mark.looptime
async def test_an_incomplete_second_request_times_out() -> None:
    client, protocol = connect()
    protocol.data_received(REQUEST)
    await asyncio.sleep(4 * SECONDS_FOR_HEADERS)
    protocol.data_received(REQUEST[:-2])
    await asyncio.sleep(SECONDS_FOR_HEADERS + 1)
    assert client.is_closed
    assert b"HTTP/1.1 408 " in client.received


@pytest.mark.looptime
async def test_a_lost_connection_cancels_the_timeout() -> None:
    client, protocol = connect()
    protocol.connection_lost(ConnectionResetError())
    await asyncio.sleep(SECONDS_FOR_HEADERS + 1)
    assert client.received == b""


@pytest.mark.looptime
async def test_a_client_that_stops_reading_is_disconnected() -> None:
    client, protocol = connect()
    protocol.data_received(REQUEST)
    client.unread = 100_000
    protocol.pause_writing()
    await asyncio.sleep(SECONDS_WITHOUT_READING - 1)
    assert not client.is_aborted
    await asyncio.sleep(2)
    assert client.is_aborted


@pytest.mark.looptime
async def test_a_slow_reader_is_disconnected_only_when_it_stops() -> None:
    client, protocol = connect()
    protocol.data_received(REQUEST)
    client.unread = 100_000
    protocol.pause_writing()
    for _ in range(3):
        client.unread -= 100
        await asyncio.sleep(SECONDS_WITHOUT_READING)
        assert not client.is_aborted
    await asyncio.sleep(SECONDS_WITHOUT_READING + 1)
    assert client.is_aborted


@pytest.mark.looptime
@pytest.mark.parametrize("ending", ["resumed", "lost"])
async def test_a_client_that_resumes_or_disconnects_is_not_aborted(ending: str) -> None:
    client, protocol = connect()
    protocol.data_received(REQUEST)
    client.unread = 100_000
    protocol.pause_writing()
    if ending == "resumed":
        protocol.resume_writing()
    else:
        protocol.connection_lost(ConnectionResetError())
    await asyncio.sleep(2 * SECONDS_WITHOUT_READING)
    assert not client.is_aborted
