"""Killing the service during a turn loses no events for viewers."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.actions.test_serve import free_port
from tests.cli.support import Command, debaters
from tests.service.test_debates import DEBATES, QUESTION, QUICK
from tests.support.model_server import ModelServer, Reply

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

DROPS = 20


def in_pieces(role: str, number: int, reply: Reply) -> Reply:
    return replace(reply, chunk_delay=0.05, chunk_size=4)


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(in_pieces), models=["m"]) as running:
        yield running


class Service:
    """Run the service on one address across restarts."""

    def __init__(self, contend: Command) -> None:
        self.contend, self.port = contend, free_port()
        self.url = f"http://127.0.0.1:{self.port}{DEBATES}"

    @contextmanager
    def run(self) -> Iterator[Callable[[], None]]:
        """Start the service; yield a function that kills it."""
        process = self.contend.start("serve", "-m", "openai:m", "--port", str(self.port))

        def kill() -> None:
            process.kill()
            process.wait(60)

        try:
            while True:
                try:
                    httpx.get(self.url)
                    break
                except httpx.TransportError:
                    assert process.poll() is None, process.communicate()
                    time.sleep(0.1)
            yield kill
        finally:
            kill()
            process.communicate()

    def read(self, debate: str, after: int) -> Iterator[dict[str, Any]]:
        headers = {"Last-Event-ID": str(after)} if after else {}
        with httpx.stream(
            "GET", f"{self.url}/{debate}/events", headers=headers, timeout=60
        ) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))

    def watch(self, debate: str, drops: int = 0) -> list[dict[str, Any]]:
        """Watch to the end, reconnecting after every third event the given number of times."""
        seen: list[dict[str, Any]] = []
        while not (seen and seen[-1]["event"] == "complete"):
            try:
                for event in self.read(debate, seen[-1]["seq"] if seen else 0):
                    seen.append(event)
                    if drops and len(seen) % 3 == 0:
                        drops -= 1
                        break
            except httpx.TransportError:  # it was killed
                time.sleep(0.05)
        assert not drops
        return seen


def test_staying_and_reconnecting_viewers_see_the_same_events(
    tmp_path: Path, models: ModelServer
) -> None:
    service, kills = Service(Command(tmp_path / "home", models)), threading.Semaphore(0)
    models.on_chunk = lambda call, sent: kills.release() if sent == 4 else None
    with ThreadPoolExecutor(2) as viewers:
        with service.run() as kill:
            body = {"question": QUESTION, "settings": QUICK}
            debate = httpx.post(service.url, json=body, timeout=60).json()["id"]
            staying = viewers.submit(service.watch, debate)
            leaving = viewers.submit(service.watch, debate, DROPS)
            assert kills.acquire(timeout=60)
            kill()
        for _ in range(2):
            with service.run() as kill:
                while kills.acquire(blocking=False):
                    pass
                resumed = httpx.post(f"{service.url}/{debate}/resume", timeout=60)
                assert resumed.status_code == 202, resumed.text
                assert kills.acquire(timeout=60)
                assert kills.acquire(timeout=60)  # in the turn after
                kill()
        with service.run():
            assert httpx.post(f"{service.url}/{debate}/resume", timeout=60).status_code == 202
            whole = service.watch(debate)
            assert staying.result(120) == leaving.result(120) == whole
    numbers = [event["seq"] for event in whole]
    assert numbers == sorted(set(numbers))
    assert [event["event"] for event in whole].count("resumed") == 3
    turns = [e["metadata"]["turn"] for e in whole if e["event"] == "seat_complete"]
    assert len(turns) == len(set(turns))
    check_chunks(whole)


def check_chunks(events: list[dict[str, Any]]) -> None:
    """Check that the chunks since the last start of each turn make up the turn."""
    written: dict[Any, str] = {}
    for event in events:
        about = event["metadata"]
        turn = event["round"], about.get("phase"), about.get("seat")
        if event["event"].endswith("_chunk"):
            written[turn] = written.get(turn, "") + event["content"] if event["content"] else ""
        elif event["event"] == "seat_complete":
            assert written[turn].startswith(event["content"][:20])
    assert written
