"""Event streams over real connections."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from contend.debates import live
from contend.debates.stored_events import StoredEvent
from contend.graph.errors import DatabaseUnavailable
from contend.service import protocol, sse
from contend.service.app import create_app
from contend.service.options import ServiceOptions
from contend.service.protocol import PunctualProtocol
from contend.service.runs import Runs
from contend.service.sse import EventStream
from tests.cli.support import ASK, Command, debaters
from tests.service.test_debates import DEBATES, QUESTION, QUICK
from tests.support.model_server import ModelServer, Reply

EVENT = StoredEvent(1, "seat_complete", "{}")


class Groups:
    """Yield events without end and record whether it was closed."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.is_closed = error, False

    async def generate(self) -> AsyncIterator[list[StoredEvent]]:
        try:
            yield [EVENT]
            if self.error:
                raise self.error
            await asyncio.Future()
        finally:
            self.is_closed = True


class Client:
    """Simulate the server side of a request."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.has_events, self.leaves = asyncio.Event(), asyncio.Event()
        self.is_stalled = False

    async def receive(self) -> Any:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        if b"seat_complete" in message.get("body", b""):
            self.has_events.set()
            if self.is_stalled:
                await asyncio.Future()

    def watch(self, groups: Groups) -> asyncio.Task[None]:
        generated: Any = groups.generate()
        stream = EventStream(generated)
        scope = {"type": "http", "asgi": {"spec_version": "2.3"}}
        return asyncio.create_task(stream(scope, self.receive, self.send))


@pytest.mark.parametrize("is_stalled", [False, True])
async def test_a_disconnect_closes_the_stream(is_stalled: bool) -> None:
    groups, client = Groups(), Client()
    client.is_stalled = is_stalled
    watching = client.watch(groups)
    await client.has_events.wait()
    client.leaves.set()
    await watching
    assert groups.is_closed


async def test_a_viewer_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "_SECONDS_TO_SEND", 0.01)
    groups, client = Groups(), Client()
    client.is_stalled = True
    await client.watch(groups)
    assert groups.is_closed


@pytest.mark.parametrize("is_stalled", [False, True])
async def test_a_cancelled_stream_is_closed(is_stalled: bool) -> None:
    groups, client = Groups(), Client()
    client.is_stalled = is_stalled
    watching = client.watch(groups)
    await client.has_events.wait()
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert groups.is_closed


async def test_a_database_outage_ends_the_stream_without_an_error() -> None:
    groups, client = Groups(DatabaseUnavailable("away")), Client()
    await client.watch(groups)
    assert groups.is_closed
    assert client.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m"]) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
        monkeypatch.setenv("CONTEND_TEMPLATES", "false")
        yield running


class Service:
    def __init__(self, server: uvicorn.Server, address: tuple[str, int], runs: Runs) -> None:
        self.server, self.address, self.runs = server, address, runs
        self.url = f"http://{address[0]}:{address[1]}"
        self.http = httpx.AsyncClient(base_url=self.url, timeout=300)

    async def start(self, **settings: Any) -> str:
        body = {"question": QUESTION, "settings": QUICK | settings}
        answer = await self.http.post(DEBATES, json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def events(
        self, debate: str, after: int = 0, **query: Any
    ) -> AsyncGenerator[dict[str, Any]]:
        headers = {"Last-Event-ID": str(after)} if after else {}
        path = f"{DEBATES}/{debate}/events"
        async with self.http.stream("GET", path, params=query, headers=headers) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    async def watch(self, debate: str, **query: Any) -> list[dict[str, Any]]:
        return [event async for event in self.events(debate, **query)]

    async def watch_with_drops(
        self, debate: str, drops: int, all_dropped: threading.Event | None = None
    ) -> list[dict[str, Any]]:
        """Reconnect after each event the given number of times, then watch to the end."""
        seen: list[dict[str, Any]] = []
        for _ in range(drops):
            async with aclosing(self.events(debate, seen[-1]["seq"] if seen else 0)) as events:
                seen.append(await anext(events))
        if all_dropped:
            all_dropped.set()
        return seen + [event async for event in self.events(debate, seen[-1]["seq"])]


@asynccontextmanager
async def serve() -> AsyncIterator[Service]:
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    listening.bind(("127.0.0.1", 0))
    app = create_app(ServiceOptions(model="openai:m", max_streams_per_client=1000))
    config = uvicorn.Config(app, http=PunctualProtocol, log_level="warning", access_log=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await wait_until(lambda: server.started or serving.done())
    service = Service(server, listening.getsockname(), app.state.runs)
    try:
        yield service
    finally:
        await service.http.aclose()
        server.should_exit = True
        await serving


async def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(0.01)


VIEWERS = 150


async def test_viewers_that_never_read_are_cleaned_up(
    models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "SECONDS_WITHOUT_READING", 0.2)
    monkeypatch.setattr(live, "_SECONDS_BETWEEN_RENDERINGS", 0.01)
    go_on = threading.Event()

    def at_length(role: str, _: int, reply: Reply) -> Reply:
        if role != "proposer":
            return reply
        go_on.wait(60)
        return Reply("Many words. " * 5_000, chunk_size=2_000)

    models.script = debaters(at_length)
    async with serve() as service:
        debate = await service.start()
        before = len(asyncio.all_tasks())
        stalled = [await stall(service, debate, html=number % 2 == 0) for number in range(VIEWERS)]
        channels = service.runs.live._channels
        await wait_until(lambda: debate in channels and channels[debate].viewers == VIEWERS)
        go_on.set()
        await wait_until(lambda: not service.runs.is_here(debate))
        assert service.runs.records.find(debate).status == "done"
        await wait_until(lambda: not channels)
        await wait_until(lambda: len(service.server.server_state.connections) <= 1)
        await wait_until(lambda: len(asyncio.all_tasks()) <= before)
        for each in stalled:
            each.close()
        returned = await service.watch(debate)
        assert returned[-1]["event"] == "complete"


async def stall(service: Service, debate: str, *, html: bool) -> socket.socket:
    """Request the events without reading them."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, service.address)
    path = f"{DEBATES}/{debate}/events?html={html}"
    await loop.sock_sendall(client, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return client


DROPS = 20


def wait_before_the_end(models: ModelServer, all_dropped: threading.Event) -> None:
    def waits(role: str, _: int, reply: Reply) -> Reply:
        if role == "synthesizer":
            assert all_dropped.wait(120)
        return reply

    models.script = debaters(waits)


async def test_a_reconnecting_viewer_sees_the_same_events_as_others(
    models: ModelServer,
) -> None:
    all_dropped = threading.Event()
    wait_before_the_end(models, all_dropped)
    async with serve() as service:
        debate = await service.start()
        faithful = asyncio.create_task(service.watch(debate))
        seen = await service.watch_with_drops(debate, DROPS, all_dropped)
        assert seen == await faithful
        assert seen == await service.watch(debate)
        assert seen[-1]["event"] == "complete"


@pytest.mark.slow
async def test_all_viewers_see_the_same_events_of_another_process(
    models: ModelServer, tmp_path: Path
) -> None:
    all_dropped = threading.Event()
    wait_before_the_end(models, all_dropped)
    async with serve() as service:
        asking = Command(tmp_path / "home", models).start(*ASK, "--quiet")
        try:
            listed: list[dict[str, Any]] = []
            while not listed:
                listed = (await service.http.get(DEBATES)).json()["debates"]
            debate = listed[0]["id"]
            faithful = asyncio.create_task(service.watch(debate))
            seen = await service.watch_with_drops(debate, DROPS, all_dropped)
        finally:
            _, errors = await asyncio.to_thread(asking.communicate, None, 200)
        assert asking.returncode == 0, errors
        assert seen == await faithful
        assert seen == await service.watch(debate)
        assert (seen[0]["event"], seen[-1]["event"]) == ("debate_start", "complete")
