"""Forecasts in `langgraph dev`, by the SDK and by the mounted API."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from contend.graph.forecast_contract.terms import ROLES
from tests.dev.dev_server import DevServer
from tests.service.test_routes import PREFIX, asked
from tests.support.forecasting import OUTCOMES, QUESTION, forecasters, request
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow

TOKEN = "canary-token-0123456789abcdef"


@pytest.fixture(scope="module")
def models() -> Iterator[ModelServer]:
    with ModelServer(forecasters(), models=["m"]) as running:
        yield running


@pytest.fixture(scope="module")
def server(models: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    environment = {f"CONTEND_{role.upper()}_MODEL": "openai:m" for role in ROLES}
    home = tmp_path_factory.mktemp("dev")
    running = DevServer(home, models, CONTEND_SERVICE_TOKEN=TOKEN, **environment).start()
    yield running
    running.stop()
    said = running.log.read_text()
    assert "BlockingError" not in said
    assert TOKEN not in said


async def test_the_sdk_runs_a_forecast(server: DevServer) -> None:
    given: dict[str, Any] = {"question": QUESTION, "request": request()}
    context: dict[str, Any] = {f"{role}_model": "openai:m" for role in ROLES}
    async with server.client() as client:
        state = await client.runs.wait(None, "forecast", input=given, context=context)
        assert isinstance(state, dict)
        rows = state["forecast"]["probability_distribution"]
        assert rows[0]["probability"] == pytest.approx(0.66)


async def test_a_question_without_outcomes_proposes_them_and_waits(
    server: DevServer, models: ModelServer
) -> None:
    context: dict[str, Any] = {"model": "openai:m", "max_rounds": 1, "templates": False}
    async with server.client() as client:
        thread, calls = (await client.threads.create())["thread_id"], len(models.calls)
        given = {"question": QUESTION}
        await client.runs.wait(thread, "forecast", input=given, context=context)
        assert len(models.calls) - calls == 1
        (asked,) = (await client.threads.get_state(thread))["tasks"][0]["interrupts"]
        assert asked["value"] == {"outcomes": OUTCOMES, "due": "2027-05-01"}
        assert {*asked["response_schema"]["properties"]} == {"outcomes", "due"}
        for wrong in ("no", {"outcomes": OUTCOMES[:1]}):
            command: Any = {"resume": wrong}
            with pytest.raises(Exception, match="ValidationError"):
                await client.runs.wait(thread, "forecast", command=command)
        accepted: Any = {"resume": "yes"}
        state = await client.runs.wait(thread, "forecast", command=accepted)
    assert isinstance(state, dict)
    assert state["settings"]["max_rounds"] == 1
    rows = state["forecast"]["probability_distribution"]
    assert [row["outcome_id"] for row in rows] == ["yes", "no"]


async def test_the_api_is_mounted_on_the_server(server: DevServer) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        assert (await http.post(PREFIX, json=asked())).status_code == 401
        http.headers["Authorization"] = f"Bearer {TOKEN}"
        answered = await http.post(PREFIX, json=asked())
        assert answered.status_code == 200
        debate = answered.json()["debate_id"]
        assert (await http.get(f"{PREFIX}/{debate}/consensus")).status_code == 200
        assert (await http.get("/ok")).status_code == 200
