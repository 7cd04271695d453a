"""What a service leaves when it stops, and what the next one resumes."""

import pytest
from starlette.testclient import TestClient

from contend.service.run import Run
from tests.service.test_debates import (
    api,
    events,
    models,
    serve,
    start,
    wait_until_not_here,
    watch_until,
)
from tests.service.test_routes import runs_of
from tests.service.test_steering import Held, held
from tests.support.model_server import ModelServer

__all__ = ["held", "models"]


def stop_during_a_turn(client: TestClient, held: Held) -> None:
    """Stop the service, and let the turn end once every debate is asked to stop."""
    assert client.portal
    runs = runs_of(client)
    stopping = client.portal.start_task_soon(runs.stop)
    asked = client.portal.start_task_soon(runs._stopping.wait)
    asked.result(60)
    held.go_on()
    stopping.result(60)


def resume_unfinished(client: TestClient) -> list[Run]:
    assert client.portal
    return client.portal.call(runs_of(client).resume_unfinished_once)


def test_a_debate_that_the_operator_stopped_is_resumed(models: ModelServer, held: Held) -> None:
    with serve() as client:
        debate = start(client).id
        held.wait()
        stop_during_a_turn(client, held)
        assert api(client).get(debate).status == "paused"
    assert len(models.calls) == 1
    with serve() as client:
        assert events(client, debate)[-1]["event"] == "complete"


def test_a_debate_that_a_user_paused_stays_paused(models: ModelServer, held: Held) -> None:
    with serve() as client:
        paused = start(client).id
        held.wait()
        api(client).pause(paused)
        stop_during_a_turn(client, held)
    with serve() as client:
        assert resume_unfinished(client) == []
        assert api(client).get(paused).status == "paused"
        api(client).resume(paused)
        assert events(client, paused)[-1]["event"] == "complete"


def test_a_debate_that_a_user_resumed_is_resumed_again(models: ModelServer, held: Held) -> None:
    with serve() as client:
        debate = start(client).id
        held.wait()
        api(client).pause(debate)
        held.go_on()
        wait_until_not_here(client, debate)
        held.hold("skeptic")
        api(client).resume(debate)
        held.wait()
        stop_during_a_turn(client, held)
    with serve() as client:
        assert events(client, debate)[-1]["event"] == "complete"


def test_a_debate_that_asks_a_person_waits_for_the_answer(models: ModelServer) -> None:
    with serve() as client:
        asking = start(client, settings={"pause": "each_round"}).id
        watch_until(client, asking, "paused")
    calls = len(models.calls)
    with serve() as client:
        assert resume_unfinished(client) == []
        assert api(client).get(asking).waiting_for_you is True
    assert len(models.calls) == calls


@pytest.mark.parametrize("seconds", [20.0, 0.0])
def test_a_remark_is_kept_when_the_service_stops(
    seconds: float, models: ModelServer, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contend.service.runs._SECONDS_TO_STOP", seconds)
    with serve() as client:
        debate = start(client).id
        held.wait()
        api(client).resume(debate, "Mind the cost.")
        stop_during_a_turn(client, held)
    assert not held.has_been_sent("Mind the cost.")
    with serve() as client:
        events(client, debate)
    assert held.has_been_sent("Mind the cost.")
