"""The benchmark against other frameworks, without running them."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness import REPOSITORY, ObservedCall
from benchmarks.peers.compare import BASELINE, Measured, System, longest_chain, measure, table
from benchmarks.peers.driver import is_loopback
from benchmarks.peers.process import NotMeasured, SystemProcess, prepare_python
from tests.support.model_server import ModelServer, always


class _NoServer:
    def __init__(self, *_: str) -> None: ...

    def environment(self) -> dict[str, str]:
        return {}

    def stop(self) -> None: ...


def test_a_peer_that_cannot_be_measured_is_reported_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def install(_name: str, packages: tuple[str, ...]) -> Path:
        if packages:
            raise NotMeasured("not installed: ERROR: No matching distribution found")
        return Path(sys.executable)

    monkeypatch.setattr("benchmarks.peers.compare.prepare_python", install)
    monkeypatch.setattr("benchmarks.peers.compare.ModelProcess", _NoServer)
    found, skipped = measure([System("Gone", "gone", ("gone==1",)), System("Broken", "broken")])
    assert found == {}
    assert skipped["Gone"] == "not installed: ERROR: No matching distribution found"
    assert "No module named 'benchmarks.peers.broken'" in skipped["Broken"]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (
            subprocess.CalledProcessError(1, "pip", stderr="ERROR: No versions\nnotice: upgrade"),
            "not installed: ERROR: No versions",
        ),
        (subprocess.TimeoutExpired("pip", 480), "not installed within 480 s"),
    ],
)
def test_a_failed_installation_is_reported_and_retried(
    failure: Exception, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("benchmarks.peers.process.subprocess.run", fail)
    for _ in range(2):
        with pytest.raises(NotMeasured, match=reason):
            prepare_python("gone", ("gone==1",), tmp_path)


def test_a_system_runs_the_requested_number_of_debates(tmp_path: Path) -> None:
    with ModelServer(always("A reply."), models=None) as server:
        environment = {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": "sk-test"}
        process = SystemProcess(Path(sys.executable), "aiohttp_by_hand", tmp_path, environment)
        try:
            warmed_up = len(server.calls)
            took = process.run(2)
        finally:
            process.stop()
        prompts = [call.request.user for call in server.calls]
    assert (warmed_up, len(prompts)) == (10, 30)
    assert set(took) == {"seconds", "cpu"}
    assert [prompt.count("A reply.") for prompt in prompts[:10]] == [0] * 3 + [3] * 3 + [6] * 3 + [
        9
    ]


def test_the_longest_chain_has_the_slowest_call_of_each_step() -> None:
    times = [(0, 1), (0, 3), (0, 2), (3, 4), (3, 5), (5, 6)]
    calls = [ObservedCall("m", [], began, ended) for began, ended in times]
    assert [(call.started, call.ended) for call in longest_chain(calls)] == [(0, 3), (3, 5), (5, 6)]


def test_the_table_shows_ratios_to_the_bare_client() -> None:
    bare = Measured({"openai": "1"}, 10, 4, [0.002], [1.1], [1.1], [4.0])
    peer = Measured({"peer": "2"}, 20, 10, [0.005], [2.75], [1.1], [10.0])
    *_, row = table({BASELINE.name: bare, "Peer": peer})
    assert row == (
        "| Peer | 20, 10 | 2.50 (5.0 ms) | 2.75 s | 1.10 | 2.50 (10.0 s) | 1.25 | peer 2 |"
    )


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        *[("127.0.0.1", True), ("::1", True), ("localhost", True), (None, True)],
        *[("192.0.2.1", False), ("example.org", False)],
    ],
)
def test_recognizes_loopback_hosts(host: str | None, is_here: bool) -> None:
    assert is_loopback(host) is is_here


@pytest.mark.parametrize(
    "contact",
    ["socket.create_connection(('192.0.2.1', 80))", "socket.getaddrinfo('example.org', 80)"],
)
def test_a_measured_process_cannot_contact_other_hosts(contact: str) -> None:
    setup = "import socket; from benchmarks.peers.driver import refuse_other_hosts as refuse"
    tried = subprocess.run(
        [sys.executable, "-c", f"{setup}; refuse(); {contact}"],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "is not this machine" in tried.stderr
