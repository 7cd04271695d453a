"""Pausing, resuming and finishing a running debate."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from contend.debates.record import StoredDebate
from contend.debates.run import run_debate
from contend.graph.errors import BadInput, DamagedDebate, DatabaseUnavailable
from contend.service.client import ApiError
from contend.service.run import Run
from contend.service.runs import Runs
from tests.cli.support import debaters
from tests.service.test_debates import (
    api,
    client,
    events,
    models,
    start,
    wait_until_not_here,
    watch_until,
)
from tests.support.model_server import ModelServer, Reply

__all__ = ["client", "models"]


class Held:
    """Block the call of a role in the first round until released."""

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

    def has_been_sent(self, text: str) -> bool:
        return any(text in call.request.text for call in self._models.calls)

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


def test_a_debate_is_paused_and_resumed_with_a_comment(client: TestClient, held: Held) -> None:
    debate = start(client).id
    held.wait()
    api(client).pause(debate)
    with pytest.raises(ApiError, match="still in its turn"):
        api(client).resume(debate)
    held.go_on()
    watch_until(client, debate, "paused")
    api(client).resume(debate, "Mind the night shifts.")
    remark = next(e for e in events(client, debate) if e["metadata"].get("phase") == "remark")
    assert remark["content"] == "Mind the night shifts."
    assert held.has_been_sent("Mind the night shifts.")
    with pytest.raises(ApiError) as refused:
        api(client).resume(debate)
    assert refused.value.status == 409


def test_a_running_debate_is_finished_after_its_round(client: TestClient, held: Held) -> None:
    debate = start(client, settings={"min_rounds": 4, "max_rounds": 5}).id
    held.wait()
    api(client).finish(debate)
    held.go_on()
    events(client, debate)
    read = api(client).get(debate)
    assert (read.stop_reason, read.record["total_rounds"]) == ("user", 1)


def test_a_debate_asks_a_person_and_continues_after_the_answer(client: TestClient) -> None:
    debate = start(client, settings={"pause": "each_round"}).id
    asked = watch_until(client, debate, "paused")[-1]
    assert asked["metadata"]["ask"]["round"] == 1
    wait_until_not_here(client, debate)
    assert api(client).get(debate).waiting_for_you is True
    api(client).finish(debate, "Enough.")
    events(client, debate)
    assert api(client).get(debate).stop_reason == "user"


@pytest.fixture
def slow_ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a run open after its last event, until the service asks whether it is ending."""
    asked, is_ending = threading.Event(), Runs._is_ending

    async def run(*given: Any, **more: Any) -> StoredDebate:
        ended = await run_debate(*given, **more)
        assert await asyncio.to_thread(asked.wait, 60)
        return ended

    async def ask(runs: Runs, run: Run) -> bool:
        found = await is_ending(runs, run)
        asked.set()
        return found

    monkeypatch.setattr("contend.service.runs.run_debate", run)
    monkeypatch.setattr(Runs, "_is_ending", ask)


@pytest.mark.parametrize("action", ["resume", "finish", "pause", "delete"])
@pytest.mark.usefixtures("slow_ending")
def test_a_debate_can_be_steered_at_its_last_event(client: TestClient, action: str) -> None:
    debate = start(client, settings={"pause": "each_round"}).id
    watch_until(client, debate, "paused")
    if action == "pause":
        with pytest.raises(ApiError, match="does not run"):
            api(client).pause(debate)
        return
    getattr(api(client), action)(debate)
    if action == "delete":
        assert api(client).list().debates == []
        return
    watch_until(client, debate, "resumed")


def test_a_person_can_take_a_seat(client: TestClient) -> None:
    debate = start(client, settings={"skeptic_model": "human"}).id
    asked = watch_until(client, debate, "paused")[-1]["metadata"]["ask"]
    assert (asked["seat"], asked["name"], asked["phase"]) == ("skeptic", "Skeptic", "critique")
    assert asked["request"].startswith("Write the critique.")
    wait_until_not_here(client, debate)
    assert api(client).get(debate).waiting_for_you is True
    api(client).resume(debate, "Who knows?")
    wait_until_not_here(client, debate)
    again = events(client, debate, follow=False)[-1]
    assert again["metadata"]["ask"]["problem"] == "Your answer could not be read."
    api(client).resume(debate, "No critical issues.\n\nReady for Synthesis ✅")
    said = next(e for e in events(client, debate) if e["metadata"].get("seat") == "skeptic")
    assert said["metadata"]["status"] == "human"
    assert api(client).get(debate).stop_reason == "skeptic_ready"


def test_all_comments_made_during_one_turn_are_applied(client: TestClient, held: Held) -> None:
    debate = start(client, settings={"min_rounds": 4, "max_rounds": 5}).id
    held.wait()
    api(client).resume(debate, "Mind the cost.")
    api(client).resume(debate, "And the night shift.")
    api(client).finish(debate)
    api(client).resume(debate, "That is all.")
    held.go_on()
    seen = events(client, debate)
    (said,) = [e["content"] for e in seen if e["metadata"].get("phase") == "remark"]
    assert said == "Mind the cost.\n\nAnd the night shift.\n\nThat is all."
    read = api(client).get(debate)
    assert (read.stop_reason, read.record["total_rounds"]) == ("user", 1)


def test_a_pause_after_a_comment_keeps_the_comment(
    client: TestClient, held: Held, models: ModelServer
) -> None:
    debate = start(client).id
    held.wait()
    api(client).resume(debate, "Mind the cost.")
    api(client).pause(debate)
    held.go_on()
    wait_until_not_here(client, debate)
    assert api(client).get(debate).status == "paused"
    assert len(models.calls) == 1
    api(client).resume(debate)
    events(client, debate)
    assert held.has_been_sent("Mind the cost.")


def test_a_comment_after_a_pause_resumes_the_debate(client: TestClient, held: Held) -> None:
    debate = start(client).id
    held.wait()
    api(client).pause(debate)
    api(client).resume(debate, "Go on.")
    held.go_on()
    assert events(client, debate)[-1]["event"] == "complete"


@pytest.mark.parametrize("how", ["finish", "resume"])
def test_a_comment_that_comes_too_late_is_logged_and_ignored(
    how: str, client: TestClient, held: Held, caplog: pytest.LogCaptureFixture
) -> None:
    held.hold("judge")
    debate = start(client).id
    held.wait()
    {"finish": api(client).finish, "resume": api(client).resume}[how](debate, "Too late.")
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
@pytest.mark.parametrize("place", ["leased", "_Run._input"])
def test_resume_reports_an_error_if_the_debate_cannot_start(
    place: str,
    error: Exception,
    status: int,
    code: str,
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    debate = start(client, settings={"pause": "each_round"}).id
    watch_until(client, debate, "paused")
    wait_until_not_here(client, debate)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(f"contend.debates.run.{place}", fail)
    with pytest.raises(ApiError) as refused:
        api(client).resume(debate)
    body = refused.value.body
    assert (refused.value.status, body.error, body.debate_id) == (status, code, debate)
    assert "a bug" not in body.detail


def test_a_debate_out_of_budget_continues_with_a_larger_one(
    client: TestClient, models: ModelServer
) -> None:
    long = "On and on and on. " * 1200

    def wordy(role: str, number: int, reply: Reply) -> Reply:
        first = (role, number) == ("proposer", 1)
        return replace(reply, text=long + reply.text, chunk_size=1000) if first else reply

    models.script = debaters(wordy)
    debate = start(client, settings={"budget": 11_000}).id
    wait_until_not_here(client, debate)
    paused = events(client, debate, follow=False)[-1]
    assert paused["metadata"].items() >= {"reason": "budget", "budget": 11_000}.items()
    with pytest.raises(ApiError, match="does not pay for another call"):
        api(client).resume(debate, budget=100)
    assert api(client).get(debate).status == "paused"
    api(client).resume(debate, budget=50_000)
    assert events(client, debate)[-1]["event"] == "complete"


def test_the_budget_of_a_running_debate_cannot_be_changed(client: TestClient, held: Held) -> None:
    debate = start(client).id
    held.wait()
    with pytest.raises(ApiError, match="pause it to change its budget"):
        api(client).resume(debate, budget=50_000)
