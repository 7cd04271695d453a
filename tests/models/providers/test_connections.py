"""The connection pool shared by all models of an event loop."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest

from contend.models.providers import connections, stream_batches
from contend.models.providers.connections import PooledTransport, SocketRest, pooled
from contend.models.providers.registry import Options, close_models, open_model, parse_spec
from contend.models.providers.stream_batches import LineReader
from tests.support.model_server import ModelServer, Reply, always

every_library = pytest.mark.parametrize("library", [httpx, httpx2])


def answer(body: bytes, *headers: str, length: int | None = None) -> bytes:
    size = f"Content-Length: {len(body) if length is None else length}"
    return "\r\n".join(["HTTP/1.1 200 OK", size, *headers, "", ""]).encode() + body


class Peer:
    """A server that answers each request with the same bytes, or one part of them at a time."""

    def __init__(self, sent: bytes | list[bytes] | None, *, then_closes: bool = False) -> None:
        self.sent, self.then_closes = sent, then_closes
        self.connections = 0
        self.requests: list[bytes] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while await reader.readuntil(b"\r\n\r\n"):
            if self.sent is None:
                await reader.read()
                break
            *first, last = self.sent if isinstance(self.sent, list) else [self.sent]
            for part in first:
                writer.write(part)
                await asyncio.sleep(0.002)
            writer.write(last)
            await writer.drain()
            if self.then_closes:
                break
        writer.close()


@asynccontextmanager
async def served(peer: Peer) -> AsyncIterator[str]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
        except asyncio.IncompleteReadError:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
    finally:
        await close_models()
        server.close()
        await server.wait_closed()


def client(library: Any, **options: Any) -> Any:
    return library.AsyncClient(transport=PooledTransport(library), **options)


@every_library
async def test_clients_reuse_one_connection(library: Any) -> None:
    peer = Peer(answer(b"yes"))
    async with served(peer) as url:
        for _ in range(3):
            async with client(library) as asking:
                assert (await asking.get(url)).text == "yes"
    assert peer.connections == 1


@every_library
async def test_a_connection_is_reused_after_its_socket_was_paused(
    library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_batches, "_LEAST_LINES", 0)
    rests = list[float]()
    begin = SocketRest.begin

    def noted(rest: SocketRest, seconds: float) -> None:
        rests.append(seconds)
        begin(rest, seconds)

    monkeypatch.setattr(SocketRest, "begin", noted)
    lines = [f"line {n}\n".encode() for n in range(40)]
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    peer = Peer([head, *(b"%x\r\n%s\r\n" % (len(each), each) for each in lines), b"0\r\n\r\n"])
    async with served(peer) as url, client(library) as asking:
        for _ in range(3):
            found = list[bytes]()
            async with asking.stream("GET", url) as response:
                reader = LineReader(response)
                async for some in reader:
                    found += some
                    await reader.pause()
            assert found == [each.strip() for each in lines]
    assert rests
    assert peer.connections == 1


@every_library
async def test_compressed_answers_are_read(library: Any) -> None:
    body = gzip.compress(b"yes")
    async with served(Peer(answer(body, "Content-Encoding: gzip"))) as url, client(library) as it:
        assert (await it.get(url)).text == "yes"


@every_library
async def test_redirects_are_returned_to_the_client(library: Any) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /y\r\nContent-Length: 0\r\n\r\n"
    async with served(Peer(moved)) as url, client(library) as asking:
        assert (await asking.get(url)).status_code == 302


@every_library
@pytest.mark.parametrize(
    ("peer", "error"),
    [
        (Peer(b"", then_closes=True), "RemoteProtocolError"),
        (Peer(answer(b"half", length=8), then_closes=True), "RemoteProtocolError"),
        (Peer(b"this is no HTTP\r\n\r\n", then_closes=True), "RemoteProtocolError"),
        (Peer(None), "ReadTimeout"),
    ],
    ids=["no answer", "half an answer", "another protocol", "silence"],
)
async def test_errors_are_those_of_the_library(library: Any, peer: Peer, error: str) -> None:
    async with served(peer) as url, client(library, timeout=0.05) as asking:
        with pytest.raises(getattr(library, error), match=r"\w"):
            await asking.post(url, content=b"{}")


@every_library
async def test_a_refused_connection_raises_a_connect_error(library: Any) -> None:
    async with client(library) as asking:
        with pytest.raises(library.ConnectError, match="Cannot connect"):
            await asking.get("http://127.0.0.1:1/x")


async def test_an_abandoned_stream_closes_its_connection() -> None:
    peer = Peer(answer(b"half", length=8))
    async with served(peer) as url, client(httpx2) as asking:
        async with asking.stream("GET", url) as response:
            assert [await anext(response.aiter_bytes())] == [b"half"]
        async with asking.stream("GET", url):
            pass
    assert peer.connections == 2


def test_connections_are_closed_when_the_event_loop_ends(server: ModelServer) -> None:
    """Even if nothing closes the models, as in `langgraph dev`."""
    server.script = always(Reply("Yes."))

    async def run() -> Any:
        model = open_model(parse_spec("openai:m1"), Options())
        assert (await model.ainvoke("Why?")).text == "Yes."
        return await connections._session()

    assert asyncio.run(run()).closed


async def test_the_last_run_closes_the_connections(server: ModelServer) -> None:
    server.script = always(Reply("Yes."))
    model = open_model(parse_spec("ollama:m1"), Options())
    assert (await model.ainvoke("Why?")).text == "Yes."
    session = await connections._session()
    await close_models()
    assert session.closed
    assert await connections._session() is not session


@pytest.mark.parametrize("name", ["HTTP_PROXY", "https_proxy", "ALL_PROXY"])
def test_clients_do_not_use_the_pool_with_a_proxy(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "localhost")
    assert "transport" in pooled(httpx2)
    monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert "transport" not in pooled(httpx2)


@every_library
async def test_a_password_in_the_url_is_sent_as_a_header(library: Any) -> None:
    async with (
        served(Peer(answer(b"Hello."))) as url,
        library.AsyncClient(transport=PooledTransport(library)) as client,
    ):
        answered = await client.get(url.replace("://", "://ann:secret@"))
    assert answered.text == "Hello."
    assert answered.request.headers["authorization"].startswith("Basic ")


async def test_closing_does_not_close_what_another_run_opens_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = await connections._session()
    assert first.connector
    close, opened = first.connector.close, []

    async def close_slowly() -> None:
        await close()
        opened.append(await connections._session())

    monkeypatch.setattr(first.connector, "close", close_slowly)
    await close_models()
    assert first.closed
    assert not opened[0].closed
    await close_models()
    assert opened[0].closed
