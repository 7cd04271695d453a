"""Pausing, resuming and finishing a debate while it runs, in every order."""

import threading
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from contend.graph.errors import BadInput, DamagedDebate, DatabaseUnavailable
from tests.cli.support import debaters
from tests.service.test_debates import DEBATES, client, events, models, start, watch_until
from tests.support.model_server import ModelServer, Reply

__all__ = ["client", "models"]


class Held:
    """Holds a role in the first round until it may go on."""

    def __init__(self, models: ModelServer) -> None:
        self._models = models
        self.hold("proposer")

    def hold(self, role: str) -> None:
        self._role = role
        self._reached, self._go_on = threading.Event(), threading.Event()
        self._models.script = debaters(self._wait)

    def wait(self) -> None:
        assert self._reached.wait(60)

    def go_on(self) -> None:
        self._go_on.set()

    def _wait(self, role: str, number: int, reply: Reply) -> Reply:
        if role == self._role and not self._go_on.is_set():
            self._reached.set()
            assert self._go_on.wait(60)
        return reply


@pytest.fixture
def held(models: ModelServer) -> Iterator[Held]:
    made = Held(models)
    yield made
    made.go_on()


def steer(client: TestClient, debate: str, how: str, say: str = "", status: int = 202) -> None:
    body = {"json": {"say": say}} if say else {}
    answer = client.post(f"{DEBATES}/{debate}/{how}", **body)  # type: ignore[arg-type]
    assert answer.status_code == status, answer.text


def wait_until_not_here(client: TestClient, debate: str) -> None:
    while client.get(f"{DEBATES}/{debate}").json()["here"]:
        pass


def test_all_that_is_said_during_one_turn_counts(client: TestClient, held: Held) -> None:
    debate = start(client, settings={"min_rounds": 4, "max_rounds": 5})["id"]
    held.wait()
    steer(client, debate, "resume", "Mind the cost.")
    steer(client, debate, "resume", "And the night shift.")
    steer(client, debate, "finish")
    steer(client, debate, "resume", "That is all.")
    held.go_on()
    seen = events(client, debate)
    (said,) = [e["content"] for e in seen if e["metadata"].get("phase") == "remark"]
    assert said == "Mind the cost.\n\nAnd the night shift.\n\nThat is all."
    read = client.get(f"{DEBATES}/{debate}").json()
    assert (read["stop_reason"], read["record"]["total_rounds"]) == ("user", 1)


def test_a_pause_after_a_remark_holds_and_keeps_the_remark(
    client: TestClient, held: Held, models: ModelServer
) -> None:
    debate = start(client)["id"]
    held.wait()
    steer(client, debate, "resume", "Mind the cost.")
    steer(client, debate, "pause")
    steer(client, debate, "resume", status=409)
    held.go_on()
    wait_until_not_here(client, debate)
    assert client.get(f"{DEBATES}/{debate}").json()["status"] == "paused"
    assert len(models.calls) == 1
    steer(client, debate, "resume")
    events(client, debate)
    assert any("Mind the cost." in call.request.text for call in models.calls)


def test_a_remark_after_a_pause_resumes(client: TestClient, held: Held) -> None:
    debate = start(client)["id"]
    held.wait()
    steer(client, debate, "pause")
    steer(client, debate, "resume", "Go on.")
    held.go_on()
    assert events(client, debate)[-1]["event"] == "complete"


@pytest.mark.parametrize("how", ["finish", "resume"])
def test_what_comes_too_late_is_logged_and_stops_nothing(
    how: str, client: TestClient, held: Held, caplog: pytest.LogCaptureFixture
) -> None:
    held.hold("judge")
    debate = start(client)["id"]
    held.wait()
    steer(client, debate, how, "Too late.")
    held.go_on()
    assert events(client, debate)[-1]["event"] == "complete"
    wait_until_not_here(client, debate)
    assert "comment" in caplog.text
    assert debate in caplog.text


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (DatabaseUnavailable("gone"), 503, "database_away"),
        (DamagedDebate("x"), 500, "damaged"),
        (RuntimeError("a bug"), 500, "error"),
        (BadInput("No speaker would see it."), 409, "not_possible"),
    ],
)
@pytest.mark.parametrize("place", ["_leased", "_Run._input"])
def test_a_debate_that_cannot_start_is_no_success(
    place: str,
    error: Exception,
    status: int,
    code: str,
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    debate = start(client, settings={"pause": "each_round"})["id"]
    watch_until(client, debate, "paused")
    wait_until_not_here(client, debate)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(f"contend.debates.run.{place}", fail)
    answer = client.post(f"{DEBATES}/{debate}/resume")
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert answer.json()["debate_id"] == debate
    assert "a bug" not in answer.text
