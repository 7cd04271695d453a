"""Compares streaming to many viewers with a bare Starlette loop that makes the same calls."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

from benchmarks.harness import QUESTION, REPOSITORY, Result, data_home, environment

LIMIT = 3.0
PAINT_LIMIT = 1.5
WIRE_LIMIT = 100.0
STALLED_LIMIT = 1.1
_VIEWERS, _DEBATES, _STALLED = 100, 50, 300
_PAINTS = 5
_FIRST_PAINT = """() => new Promise((resolve) => new PerformanceObserver((list) => {
  const [found] = list.getEntriesByName("first-contentful-paint");
  if (found) resolve(found.startTime);
}).observe({ type: "paint", buffered: true }))"""
_STAMP = re.compile(r"\b\d+\.\d{6}\b")


def results() -> list[Result]:
    shared = _compare(f"{_VIEWERS} viewers of one debate", debates=1, viewers=_VIEWERS)
    apart = _compare(f"{_DEBATES} debates at once, a viewer each", debates=_DEBATES, viewers=1)
    return [*shared, *apart, _stalled(), _wire(), *_first_paint()]


class ViewerServer:
    def __init__(self, kind: str) -> None:
        command = [sys.executable, "-m", "benchmarks.viewer_server", kind]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(command, cwd=REPOSITORY, text=True, **pipes)  # type: ignore[call-overload]
        self.port = int(self._process.stdout.readline())

    def used(self) -> dict[str, float]:
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, float] = json.loads(self._process.stdout.readline())
        return found

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()


@contextmanager
def viewer_server(kind: str) -> Iterator[ViewerServer]:
    with data_home() as home, environment(CONTEND_HOME=str(home), LANGSMITH_TRACING="false"):
        server = ViewerServer(kind)
        try:
            yield server
        finally:
            server.stop()


@dataclass
class Viewer:
    """Stores a stream as fast as possible, and parses the stored data later."""

    parts: list[tuple[float, bytes]] = field(default_factory=list)

    async def watch(self, port: int, path: str) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_request("GET", path, port))
        while part := await reader.read(65536):
            self.parts.append((time.monotonic(), part))
            if part.endswith(b"0\r\n\r\n"):
                break
        writer.close()

    def events(self) -> list[tuple[float, dict[str, Any]]]:
        found: list[tuple[float, dict[str, Any]]] = []
        rest = b""
        for at, part in self.parts:
            *whole, rest = (rest + part).split(b"\n\n")
            data = re.findall(rb"^data: (.*)$", b"\n".join(whole), re.MULTILINE)
            found += [(at, json.loads(each)) for each in data]
        return found


def _request(method: str, path: str, port: int, body: bytes = b"") -> bytes:
    head = f"{method} /api/v1/debates{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    return (
        f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )


async def _start(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request("POST", "", port, json.dumps({"question": QUESTION}).encode()))
    answer = await reader.readuntil(b"}")
    writer.close()
    if b"201" not in answer.split(b"\r\n")[0]:
        raise RuntimeError(f"no debate was started: {answer!r}")
    return str(re.findall(rb'"id":\s?"([^"]+)"', answer)[0].decode())


@dataclass(frozen=True)
class Load:
    cpu: float
    mb: float
    delays: list[float]
    events: int
    tokens: int

    @property
    def delay(self) -> float:
        return median(self.delays)


async def _load(server: ViewerServer, debates: int, viewers: int) -> Load:
    before = server.used()
    ids = [await _start(server.port) for _ in range(debates)]
    watching = {each: [Viewer() for _ in range(viewers)] for each in ids}
    await asyncio.gather(
        *(viewer.watch(server.port, f"/{each}/events") for each in ids for viewer in watching[each])
    )
    after = server.used()
    delays: list[float] = []
    events = tokens = 0
    for each in ids:
        lists = [viewer.events() for viewer in watching[each]]
        _check([[event for _, event in seen] for seen in lists])
        for seen in lists:
            streamed = [(at, event) for at, event in seen if _is_streamed(event)]
            events, found = events + len(seen), [_ages(at, event) for at, event in streamed]
            delays += [age for ages in found for age in ages]
    tokens = len(delays)
    return Load(after["cpu"] - before["cpu"], after["mb"] - before["mb"], delays, events, tokens)


def _is_streamed(event: dict[str, Any]) -> bool:
    return str(event.get("event", "seat_chunk")).endswith("_chunk")


def _ages(at: float, event: dict[str, Any]) -> list[float]:
    return [at - float(stamp) for stamp in _STAMP.findall(event["content"])]


def _check(lists: Sequence[list[dict[str, Any]]]) -> None:
    numbers = [event["seq"] for event in lists[0]]
    if numbers != sorted(set(numbers)) or any(seen != lists[0] for seen in lists):
        raise RuntimeError("a viewer did not see every event once and in order")
    if lists[0][-1].get("event", "complete") != "complete":
        raise RuntimeError("a debate did not end")


def _compare(what: str, debates: int, viewers: int) -> list[Result]:
    loads = {}
    for kind in ("service", "bare"):
        with viewer_server(kind) as server:
            asyncio.run(_load(server, 8, 1))  # imports and caches
            loads[kind] = asyncio.run(_load(server, debates, viewers))
    ours, bare = loads["service"], loads["bare"]
    if ours.tokens != bare.tokens:
        raise RuntimeError(f"viewers saw {ours.tokens} tokens, not {bare.tokens}")
    per_event = [1e6 * load.cpu / load.events for load in (ours, bare)]
    return [
        Result(
            f"{what}: from a token to its viewer",
            ours.delay / bare.delay,
            LIMIT,
            "x",
            f"{1000 * ours.delay:.0f} ms, mean {1000 * mean(ours.delays):.0f} ms; bare "
            f"{1000 * bare.delay:.0f} ms; {ours.events:,} events, all in order",
        ),
        Result(
            f"{what}: CPU per event",
            per_event[0] / per_event[1],
            LIMIT,
            "x",
            f"{per_event[0]:.0f} µs; bare {per_event[1]:.0f} µs",
        ),
        Result(
            f"{what}: memory",
            ours.mb / max(bare.mb, 1.0),
            LIMIT,
            "x",
            f"{ours.mb:.1f} MB more than before; bare {bare.mb:.1f} MB",
        ),
    ]


def _stalled() -> Result:
    """Connect viewers that never read; check that the debate ends and their memory is freed."""
    with viewer_server("service") as server:
        asyncio.run(_load(server, 1, 20))
        before = server.used()["mb"]
        held, peak = asyncio.run(_stall(server))
        for each in held:
            each.close()
        asyncio.run(_load(server, 1, 20))
        after = server.used()["mb"]
    note = (
        f"{before:.0f} MB before, {peak:.0f} MB with them, {after:.0f} MB after; the debate ended"
    )
    return Result(
        f"memory after {_STALLED} stalled readers", after / before, STALLED_LIMIT, "x", note
    )


async def _stall(server: ViewerServer) -> tuple[list[socket.socket], float]:
    debate = await _start(server.port)
    held = []
    for _ in range(_STALLED):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(_request("GET", f"/{debate}/events", server.port))
        held.append(client)
    faithful = Viewer()
    await faithful.watch(server.port, f"/{debate}/events")
    _check([[event for _, event in faithful.events()]])
    return held, server.used()["mb"]


def _wire() -> Result:
    from starlette.testclient import TestClient

    from contend.service.app import create_app

    client = TestClient(create_app(), base_url="http://127.0.0.1")
    web = REPOSITORY / "service" / "web"
    total = 0
    for file in (*web.glob("*.js"), *web.glob("*.css")):
        with client.stream("GET", f"/static/{file.name}") as answer:
            total += sum(len(part) for part in answer.iter_raw())
    return Result("script and style of the page on the wire", total / 1000, WIRE_LIMIT, "KB")


def _first_paint() -> list[Result]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("No Chromium, so the first paint is not measured.", file=sys.stderr)
        return []
    from playwright.sync_api import sync_playwright

    painted: dict[str, list[float]] = {"service": [], "bare": []}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        browser.new_page().goto("about:blank")
        for _ in range(_PAINTS):
            for kind, times in painted.items():
                with viewer_server(kind) as server:
                    times.append(_paint(browser, server.port))
        browser.close()
    ours, bare = (median(painted[kind]) for kind in ("service", "bare"))
    note = f"{ours:.0f} ms; a static file with the same look {bare:.0f} ms; new servers each time"
    return [Result("first paint of the page", ours / bare, PAINT_LIMIT, "x", note)]


def _paint(browser: Any, port: int) -> float:
    page = browser.new_context().new_page()
    page.goto(f"http://127.0.0.1:{port}/")
    painted: float = page.evaluate(_FIRST_PAINT)
    page.context.close()
    return painted
