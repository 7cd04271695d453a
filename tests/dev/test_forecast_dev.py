"""A forecast in `langgraph dev`: the graph by the SDK, and the API mounted beside it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from contend.graph.forecast_contract.terms import ROLES
from tests.dev.dev_server import DevServer
from tests.service.test_routes import PREFIX, asked
from tests.support.forecasting import QUESTION, forecasters, request
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


async def test_a_forecast_by_the_sdk(server: DevServer) -> None:
    given: dict[str, Any] = {"question": QUESTION, "request": request()}
    context: dict[str, Any] = {f"{role}_model": "openai:m" for role in ROLES}
    async with server.client() as client:
        state = await client.runs.wait(None, "forecast", input=given, context=context)
        assert isinstance(state, dict)
        rows = state["forecast"]["probability_distribution"]
        assert rows[0]["probability"] == pytest.approx(0.66)
        with pytest.raises(Exception, match="BadInput: A forecast needs the outcomes"):
            await client.runs.wait(None, "forecast", input={"question": "?"}, context=context)


async def test_the_api_is_mounted_beside_it(server: DevServer) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        assert (await http.post(PREFIX, json=asked())).status_code == 401
        http.headers["Authorization"] = f"Bearer {TOKEN}"
        answered = await http.post(PREFIX, json=asked())
        assert answered.status_code == 200
        debate = answered.json()["debate_id"]
        assert (await http.get(f"{PREFIX}/{debate}/consensus")).status_code == 200
        assert (await http.get("/ok")).status_code == 200
