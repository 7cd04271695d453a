"""`contend serve` as a process: disconnecting clients, its output and shutdown."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.support import Command
from tests.service.conftest import TOKEN
from tests.service.test_routes import PREFIX, asked, slowly
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(forecasters(), models=["m"]) as running:
        yield running


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer) -> Command:
    return Command(tmp_path / "home", models)


class Served:
    """The running service and its HTTP client."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {TOKEN}", **options.pop("headers", {})}
        with httpx.Client(timeout=60) as client:
            return client.request(method, self.url + path, headers=headers, **options)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> str:
        self.process.send_signal(by)
        out, err = self.process.communicate(timeout=200)
        return out + err


@pytest.fixture
def served(contend: Command) -> Iterator[Served]:
    with serving(contend) as running:
        yield running


@contextmanager
def serving(contend: Command) -> Iterator[Served]:
    port = free_port()
    process = contend.start(
        "serve", "-m", "openai:m", "--port", str(port), CONTEND_SERVICE_TOKEN=TOKEN
    )
    running = Served(process, f"http://127.0.0.1:{port}")
    try:
        for _ in range(300):
            try:
                running.call("GET", "/openapi.json")
                break
            except httpx.TransportError:
                assert process.poll() is None, process.communicate()
                time.sleep(0.1)
        yield running
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_client_disconnect_does_not_cancel_the_debate(served: Served, models: ModelServer) -> None:
    models.script = slowly
    caller = HTTPConnection(served.url.removeprefix("http://"))
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    caller.request("POST", PREFIX, json.dumps(asked()), headers)
    models.wait_for_calls(1)
    caller.close()
    refused = served.call("POST", PREFIX, json=asked())
    assert refused.status_code == 409
    location = f"{PREFIX}/{refused.json()['debate_id']}"
    for _ in range(600):
        answered = served.call("GET", location)
        if answered.status_code == 200:
            break
        time.sleep(0.05)
    assert answered.json()["metadata"]["sonnet_calls"] == 31
    assert len(models.calls) == 31
    said = served.stop()
    assert TOKEN not in said
    assert "sk-canary" not in said
    assert "Traceback" not in said


def test_sigterm_pauses_the_debate_which_the_cli_can_resume(
    served: Served, models: ModelServer, contend: Command
) -> None:
    models.script = slowly
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(served.call, "POST", PREFIX, json=asked())
        models.wait_for_calls(5)
        said = served.stop()
        answered = waiting.result()
    assert served.process.returncode == 0
    assert "Traceback" not in said
    assert (answered.status_code, answered.json()["status"]) == (409, "paused")
    assert len(models.calls) < 31
    models.script = forecasters()
    ended = contend.here("resume", answered.json()["debate_id"], "--json", "-q")
    assert ended.code == 0, ended.err
    assert ended.json["forecast"]["metadata"]["total_arguments"] == 15
    assert sum(call.completed for call in models.calls) == 31


def test_ctrl_c_pauses_debates_and_the_next_start_resumes_them(
    served: Served, models: ModelServer, contend: Command
) -> None:
    models.script = slowly
    later = {"Prefer": "respond-async"}
    begun = [
        served.call("POST", PREFIX, json=asked(name), headers=later) for name in ("one", "two")
    ]
    outcomes = ["yes: It opens", "no: It does not"]
    body = {"question": "Does it open?", "protocol": "forecast", "outcomes": outcomes}
    other = served.call("POST", "/api/v1/debates", json=body).headers["location"]
    models.wait_for_calls(15)
    said = served.stop(signal.SIGINT)
    assert served.process.returncode == 0
    assert "Finishing the current turn of 3 debates." in said
    assert "3 debates paused; the service resumes them when it starts again." in said
    assert "Error" not in said
    models.script = forecasters()
    with serving(contend) as again:
        locations = [f"{PREFIX}/{each.json()['debate_id']}" for each in begun]
        while any(again.call("GET", place).status_code != 200 for place in locations):
            time.sleep(0.05)
        while again.call("GET", other).json()["status"] != "done":
            time.sleep(0.05)
        assert "Resuming 3 debates" in again.stop(signal.SIGINT)
    assert again.process.returncode == 0


def test_readers_do_not_wait_for_a_locked_database(served: Served, contend: Command) -> None:
    debate = f"/api/v1/debates/{served.call('POST', PREFIX, json=asked()).json()['debate_id']}"
    with (
        ThreadPoolExecutor(40) as callers,
        closing(sqlite3.connect(contend.home / "contend.db")) as holder,
    ):
        holder.execute("BEGIN IMMEDIATE")
        rate = partial(served.call, "POST", f"{debate}/rate", json={"rating": 9})
        waiting = [callers.submit(rate) for _ in range(40)]
        assert served.call("GET", debate).status_code == 200
        assert not any(each.done() for each in waiting)
        holder.rollback()
        assert {each.result().status_code for each in waiting} == {200}


def test_stopping_an_idle_service_prints_nothing(served: Served) -> None:
    said = served.stop(signal.SIGINT)
    assert served.process.returncode == 0
    assert said.count("\n") == 1  # where it served


def test_host_that_cannot_be_bound_is_reported(contend: Command) -> None:
    for host in ("192.0.2.1", "no.such.host.invalid"):
        refused = contend.here(
            "serve", "-m", "openai:m", "--host", host, CONTEND_SERVICE_TOKEN=TOKEN
        )
        assert refused.code == 2
        assert f"Cannot listen on {host}:8000" in refused.err
        assert "--host" in refused.err
        assert "--port" not in refused.err


def test_empty_host_is_refused(contend: Command) -> None:
    refused = contend("serve", "-m", "openai:m", "--host", "", CONTEND_SERVICE_TOKEN=TOKEN)
    assert refused.code == 2
    assert "The address given to --host is empty" in refused.err


def test_service_token_is_never_stored(served: Served, contend: Command) -> None:
    served.call("POST", PREFIX, json=asked(rounds=1))
    served.stop()
    for folder, _, files in os.walk(contend.home):
        for name in files:
            assert TOKEN.encode() not in (Path(folder) / name).read_bytes()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_network_host_requires_a_token(contend: Command, host: str) -> None:
    refused = contend.here("serve", "-m", "openai:m", "--host", host)
    assert refused.code == 2
    assert "set CONTEND_SERVICE_TOKEN" in refused.err


def test_port_in_use_is_reported(contend: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = contend.here(
            "serve", "-m", "openai:m", "--port", port, CONTEND_SERVICE_TOKEN=TOKEN
        )
    assert refused.code == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in refused.err


def test_missing_model_is_reported_at_startup(contend: Command) -> None:
    refused = contend.here("serve", "-m", "ollama:nope", CONTEND_SERVICE_TOKEN=TOKEN)
    assert refused.code == 2
    assert "ollama pull nope" in refused.err


def test_unavailable_database_is_reported_at_startup(contend: Command) -> None:
    url = f"postgresql://ann:secret@127.0.0.1:{free_port()}/debates"
    serve = ("serve", "-m", "openai:m", "--port", str(free_port()))
    refused = contend.here(*serve, CONTEND_SERVICE_TOKEN=TOKEN, DATABASE_URL=url)
    assert refused.code == 2
    (line,) = refused.err.splitlines()
    assert line.startswith("Error: The PostgreSQL database 'debates' on 127.0.0.1")
