"""Stopping a service, and resuming its debates in the next one."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from contend.debates.record import RAN_ON, SERVER
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.state import DebateState
from contend.service.options import ServiceOptions
from contend.service.run import Run
from contend.service.runs import Runs
from tests.debates.test_server_graph import TASK, running_on, state_of, values
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
from tests.support.forecasting import forecast_settings, request
from tests.support.langgraph_server import LangGraphServer, Part
from tests.support.model_server import ModelServer
from tests.support.scripted import THREAD

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


def test_a_debate_waiting_for_a_person_is_not_resumed(models: ModelServer) -> None:
    with serve() as client:
        asking = start(client, settings={"pause": "each_round"}).id
        watch_until(client, asking, "paused")
    calls = len(models.calls)
    with serve() as client:
        assert resume_unfinished(client) == []
        assert api(client).get(asking).waiting_for_you is True
    assert len(models.calls) == calls


@pytest.mark.parametrize("seconds", [20.0, 0.0])
def test_a_comment_is_kept_when_the_service_stops(
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


async def test_stopping_the_service_does_not_stop_debates_on_a_server() -> None:
    """Their steps may take longer than the shutdown; the next service finds them again."""
    following, gone = threading.Event(), threading.Event()
    answer = values(final_answer="The answer.")

    def in_a_call(_: str | None) -> Iterator[Part]:
        yield Part("1", "values", values())
        following.set()
        gone.wait()

    def ended(_: str | None) -> Iterator[Part]:
        server.state = {**state_of(answer, "c2"), "next": []}
        server.end_runs("success")
        yield Part("2", "values", answer)

    with LangGraphServer() as server:
        server.state = state_of(values(), "c1")
        server.streams += [in_a_call, ended]
        runs = Runs(ServiceOptions(resumes_debates=False))
        await runs.open()
        runs.begin(running_on(server, runs.records))
        await asyncio.to_thread(following.wait)
        await runs.stop()
        found = runs.records.find(THREAD)
        assert (found.status, found.error) == ("interrupted", None)
        assert runs.records.debate_of(TASK) == THREAD
        gone.set()
        again = Runs(ServiceOptions(resumes_debates=False))
        await again.open()
        await again.begin(found).task
        assert again.records.find(THREAD).status == "done"
        assert not server.is_cancelled
        await asyncio.gather(runs.close(), again.close())


async def test_a_debate_only_prepared_on_a_server_is_not_a_repeat() -> None:
    runs = Runs(ServiceOptions(resumes_debates=False))
    await runs.open()
    settings, wanted = forecast_settings(), DebateRequest.model_validate(request())
    asked: DebateState = {"question": "Why?", "seats": settings.build_seats()}
    asked["request"] = wanted.model_dump(mode="json")
    about = {**settings.model_dump(mode="json"), RAN_ON: "a worker"}
    runs.records.start(THREAD, "forecast", asked, about, demonstration=False)
    assert await runs.find_repeated(wanted, THREAD, wait=False) is None
    runs.records.change_settings(THREAD, {**about, SERVER: "http://a:1"})
    found = await runs.find_repeated(wanted, THREAD, wait=False)
    assert found
    assert found.id == THREAD
    await runs.close()
