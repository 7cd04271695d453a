"""PostgreSQL outages during a debate lose nothing and repeat no finished call."""

import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from contend.debates.repository import Repository
from contend.graph.checkpoints.postgres import read_address
from contend.graph.errors import DatabaseUnavailable
from tests.cli.support import ASK, QUESTION, Command, Ended, debaters, spoken
from tests.service.conftest import TOKEN, service
from tests.service.test_routes import PREFIX, asked, wait_for
from tests.support.forecasting import forecasters
from tests.support.model_server import Call, ModelServer, Reply
from tests.support.postgres import PASSWORD, PostgresServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CALLS = 6  # two rounds, the answer and its score
SEATS = [part for name in "ABC" for part in ("--seat", f"{name}=openai:{name}")]
REFINE = ["ask", QUESTION, "-p", "refine", *SEATS, "-s", "judge_model=openai:m"]


def _in_pieces(role: str, number: int, reply: Reply) -> Reply:
    return replace(reply, chunk_delay=0.01, chunk_size=8)


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(_in_pieces), models=["m", "A", "B", "C"]) as running:
        yield running


@pytest.fixture(scope="module")
def stoppable() -> Iterator[PostgresServer]:
    """Run a separate server, because these tests stop it."""
    with PostgresServer() as running:
        yield running


@pytest.fixture
def server(stoppable: PostgresServer) -> Iterator[PostgresServer]:
    yield stoppable
    stoppable.start()


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer, server: PostgresServer) -> Command:
    command = Command(tmp_path / "home", models)
    command.env["DATABASE_URL"] = server.create()
    return command


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the server, because many outages are tried."""
    monkeypatch.setattr("contend.graph.checkpoints.outages.PATIENCE", 0)
    monkeypatch.setattr("contend.graph.checkpoints.postgres._SECONDS_FOR_A_CONNECTION", 0.3)


def _once(act: Callable[[], None], when: Callable[[Call], bool]) -> Callable[[Call, int], None]:
    """Act once in the middle of the first matching call."""
    done = threading.Event()

    def on_chunk(call: Call, sent: int) -> None:
        if sent > 1 and when(call) and not done.is_set():
            done.set()
            act()

    return on_chunk


def _calm(models: ModelServer, tmp_path: Path, ask: list[str]) -> tuple[dict[str, Any], int]:
    """Run the same debate on SQLite without faults; return its record and call count."""
    record: dict[str, Any] = Command(tmp_path / "calm", models).here(*ask, "--json").json
    return record, len(models.calls)


def _assert_paused(ended: Ended) -> None:
    assert ended.code == 3, ended.err
    assert "cannot be used" in ended.err
    assert "Progress is saved" in ended.err
    assert f"contend resume {ended.json['id'][:8]}" in ended.err
    assert ended.json["status"] == "paused"
    assert PASSWORD not in ended.out + ended.err


def _assert_done(ended: Ended, undisturbed: dict[str, Any]) -> None:
    assert ended.code == 0, ended.err
    assert sorted(spoken(ended.json)) == sorted(spoken(undisturbed))
    assert ended.json["stop_reason"] == undisturbed["stop_reason"]


def _paid_twice(calls: list[Call]) -> list[Any]:
    """Return requests that were answered more than once, ignoring their nonces."""
    paid = Counter(
        (call.request.model, re.sub(r'"nonce": "[0-9a-f]+"', "", call.request.text))
        for call in calls
        if call.completed
    )
    return [asked for asked, count in paid.items() if count > 1]


def _aside(command: Command) -> list[Path]:
    return [each for each in (command.home / "unsaved").rglob("*") if each.is_file()]


@pytest.mark.parametrize("stopped_in", range(1, CALLS + 1))
def test_stopping_the_server_during_a_call_pauses_the_debate(
    stopped_in: int,
    tmp_path: Path,
    contend: Command,
    models: ModelServer,
    server: PostgresServer,
    impatient: None,
) -> None:
    undisturbed, before = _calm(models, tmp_path, ASK)
    assert before == CALLS
    models.on_chunk = _once(server.stop, lambda _: len(models.calls) == before + stopped_in)
    paused = contend.ask_here("--json")
    _assert_paused(paused)
    # The call under way was finished and paid; none was begun behind it.
    assert len(models.calls) == before + stopped_in
    server.start()
    _assert_done(contend.here("resume", paused.json["id"], "--json"), undisturbed)
    assert len(models.calls) == 2 * CALLS
    assert _paid_twice(models.calls[before:]) == []
    assert _aside(contend) == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("round_number", "leave", "come_back"),
    [
        (0, PostgresServer.stop, PostgresServer.start),
        (1, PostgresServer.stop, PostgresServer.start),
        (1, PostgresServer.refuse_writes, PostgresServer.take_writes),
    ],
)
def test_an_outage_during_parallel_calls_loses_nothing(
    round_number: int,
    leave: Callable[[PostgresServer], None],
    come_back: Callable[[PostgresServer], None],
    tmp_path: Path,
    contend: Command,
    models: ModelServer,
    server: PostgresServer,
) -> None:
    undisturbed, before = _calm(models, tmp_path, REFINE)
    assert _paid_twice(models.calls) == []
    again = f"Round {round_number} of" if round_number else "one of several"

    def speaks(call: Call) -> bool:
        new = len(models.calls) > before
        return new and call.request.model == "B" and again in call.request.text

    models.on_chunk = _once(lambda: leave(server), speaks)
    paused = contend.here(*REFINE, "--json")
    _assert_paused(paused)
    assert len(_aside(contend)) >= 3
    come_back(server)
    _assert_done(contend.here("resume", paused.json["id"], "--json"), undisturbed)
    assert len(models.calls) == 2 * before
    assert _paid_twice(models.calls[before:]) == []
    assert _aside(contend) == []


@pytest.mark.parametrize("restarted_in", [1, 4, CALLS])
def test_a_server_restart_does_not_interrupt_the_debate(
    restarted_in: int,
    tmp_path: Path,
    contend: Command,
    models: ModelServer,
    server: PostgresServer,
) -> None:
    undisturbed, before = _calm(models, tmp_path, ASK)
    starting = threading.Timer(1.0, server.start)

    def restart() -> None:
        server.stop()
        starting.start()

    models.on_chunk = _once(restart, lambda _: len(models.calls) == before + restarted_in)
    done = contend.ask_here("--json")
    starting.join()
    _assert_done(done, undisturbed)
    assert len(models.calls) == 2 * CALLS
    assert contend.here("show", done.json["id"], "--json").json == done.json


def test_a_debate_killed_during_an_outage_loses_nothing(
    tmp_path: Path, contend: Command, models: ModelServer, server: PostgresServer
) -> None:
    """Results stored on disk during an outage survive the process."""
    undisturbed, before = _calm(models, tmp_path, ASK)
    models.on_chunk = _once(server.stop, lambda _: len(models.calls) == before + 3)
    process = contend.start(*ASK, "--quiet")
    waiting = threading.Event()
    # A file that is still being written is not kept yet: the call it holds would be paid again.
    while not any(each.suffix == ".writes" for each in _aside(contend)):
        assert process.poll() is None
        waiting.wait(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    server.start()
    debate = contend.here("list", "--json").json[0]
    assert debate["status"] == "interrupted"
    _assert_done(contend.here("resume", debate["id"], "--json"), undisturbed)
    assert len(models.calls) == 2 * CALLS
    assert _paid_twice(models.calls[before:]) == []


def test_every_command_reports_an_unavailable_server(
    tmp_path: Path, contend: Command, models: ModelServer, server: PostgresServer
) -> None:
    """Runs the commands as processes with the default timeouts."""
    models.on_chunk = _once(server.stop, lambda _: len(models.calls) == 2)
    paused = contend.ask("--json")
    _assert_paused(paused)
    debate, name = paused.json["id"], contend.env["DATABASE_URL"].rpartition("/")[2]
    for command in (ASK, ["list"], ["show", debate], ["rate", debate, "8"], ["resume", debate]):
        refused = contend(*command)
        assert refused.code == 2
        (line,) = refused.err.splitlines()
        assert line.startswith(
            f"Error: The PostgreSQL database '{name}' on 127.0.0.1:{server.port}"
        )
        assert PASSWORD not in line
    assert len(models.calls) == 2
    doctor = contend("doctor", "--json")
    (finding,) = [each for each in doctor.json if each["what"] == "database"]
    assert (doctor.code, finding["level"]) == (1, "problem")
    assert f"'{name}' on 127.0.0.1:{server.port} cannot be used: Connection refused" in str(finding)
    assert PASSWORD not in doctor.out + doctor.err
    server.start()
    assert contend("resume", debate, "--quiet").code == 0
    assert len(models.calls) == CALLS


def test_broken_connections_are_replaced_before_use(
    contend: Command, server: PostgresServer
) -> None:
    """A running process reaches the restarted server at its first query."""
    with closing(Repository(read_address(contend.env["DATABASE_URL"]))) as records:
        assert records.newest(1) == []
        server.stop()
        with pytest.raises(DatabaseUnavailable):
            records.newest(1)
        server.start()
        assert records.newest(1) == []
        server.stop()
        server.start()
        assert records.newest(1) == []


@pytest.fixture
def client(
    contend: Command, models: ModelServer, impatient: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    """Return an API client on that server with models that stream slowly."""
    calm = forecasters()
    models.script = lambda served: replace(calm(served), chunk_delay=0.005, chunk_size=40)
    for name in ("DATABASE_URL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "CONTEND_HOME"):
        monkeypatch.setenv(name, contend.env[name])
    monkeypatch.setenv("CONTEND_SERVICE_TOKEN", TOKEN)
    monkeypatch.setattr("contend.service.runs._SECONDS_BETWEEN_CHECKS", 0.2)
    monkeypatch.setattr("contend.service.runs.LEASE", timedelta(seconds=1))
    with service() as running:
        yield running


def test_the_api_returns_503_during_an_outage(
    client: TestClient, models: ModelServer, server: PostgresServer
) -> None:
    debate = client.post(PREFIX, json=asked(rounds=1)).json()["debate_id"]
    paid = len(models.calls)
    server.stop()
    parts = ("", "/round/1", "/role/judge", "/consensus")
    answers = [client.get(f"{PREFIX}/{debate}{part}") for part in parts]
    for answered in [*answers, client.post(PREFIX, json=asked(rounds=1))]:
        assert answered.status_code == 503
        assert answered.json()["error"] == "database_away"
        assert answered.headers["retry-after"] == "10"
    assert len(models.calls) == paid
    server.start()
    assert client.get(f"{PREFIX}/{debate}").status_code == 200


@pytest.mark.parametrize("stopped_in", [3, 14, 31])
def test_a_service_resumes_debates_after_an_outage(
    stopped_in: int,
    client: TestClient,
    contend: Command,
    models: ModelServer,
    server: PostgresServer,
) -> None:
    models.on_chunk = _once(server.stop, lambda _: len(models.calls) >= stopped_in)
    answered = client.post(PREFIX, json=asked())
    body = answered.json()
    assert (answered.status_code, body["error"], body["status"]) == (409, "no_result", "paused")
    paid = len(models.calls)
    assert len(_aside(contend)) >= 1
    server.start()
    result = wait_for(client, f"{PREFIX}/{body['debate_id']}")
    assert result["report"]["gaps"] == []
    assert paid < 31 or stopped_in == 31
    assert len(models.calls) == 31
    assert _paid_twice(models.calls) == []
    assert _aside(contend) == []
