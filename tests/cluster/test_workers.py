"""Choosing free ports for the processes of a cluster."""

import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy import workers
from deploy.workers import PortTaken, Process, start_on_free_port

_LISTEN = """
import socket, sys, threading
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
threading.Event().wait()
"""


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_retries_with_another_port_if_one_is_taken(
    taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = workers.free_port()
    started: list[Process] = []
    ports = iter([taken, taken, free])
    monkeypatch.setattr(workers, "free_port", lambda: next(ports))

    def start(port: int) -> None:
        process = Process([sys.executable, "-c", _LISTEN, str(port)], tmp_path / "log", {})
        process.wait_until(lambda: port != taken and is_taken(port))
        started.append(process)

    assert start_on_free_port(start) == free
    started[0].stop()


def test_gives_up_after_five_taken_ports(taken: int, tmp_path: Path) -> None:
    tries: list[int] = []

    def start(port: int) -> None:
        tries.append(port)
        process = Process([sys.executable, "-c", _LISTEN, str(taken)], tmp_path / "log", {})
        process.wait_until(lambda: False)

    with pytest.raises(PortTaken, match="ddress already in use"):
        start_on_free_port(start)
    assert len(tries) == 5
