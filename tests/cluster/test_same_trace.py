"""Every front end produces the same trace for the same question."""

from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from mcp import Client
from openai import AsyncOpenAI

from contend.debates.repository import Repository
from deploy.workers import Workers
from tests.cli.support import Command
from tests.cluster.debating import IN_CLUSTER
from tests.dev.dev_server import DevServer
from tests.service.test_sse import Service, serve
from tests.support.model_server import ModelServer

pytestmark = IN_CLUSTER

QUESTION = "Should we split the monolith?"
SEATS = ("proposer", "skeptic", "synthesizer", "judge")
SETTINGS: dict[str, Any] = {
    **{f"{seat}_model": "openai:m" for seat in SEATS},
    "max_rounds": 3,
    "templates": False,
}
OF_ONE_RUN = {"id", "timestamp", "timing"}


@pytest.fixture
async def terminal(contend: Command) -> dict[str, Any]:
    """Return the trace of the debate in the terminal, as the reference."""
    settings = [word for name in SETTINGS.items() for word in ("--set", f"{name[0]}={name[1]}")]
    asked = contend.spawn("ask", QUESTION, *settings, "--json")
    assert asked.code == 0, asked.err
    records = Repository(contend.home / "contend.db")
    try:
        trace = records.find(asked.json["id"]).state["trace"]
    finally:
        records.close()
    assert trace["stop"]["round"] == 3
    return comparable(trace)


def comparable(trace: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in trace.items() if name not in OF_ONE_RUN}


async def trace_on(client: LangGraphClient) -> dict[str, Any]:
    async with client:
        given = {"question": QUESTION}
        state: Any = await client.runs.wait(None, "adversarial", input=given, context=SETTINGS)
    return comparable(state["trace"])


async def stored(service: Service) -> dict[str, Any]:
    """Return the trace of the service's newest debate."""
    (newest, *_) = (await service.http.get("/api/v1/debates")).json()["debates"]
    found = service.runs.records.find(newest["id"])
    return comparable(found.state["trace"])


async def test_the_service_produces_the_same_trace_as_the_terminal(
    terminal: dict[str, Any], models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", models.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    async with serve() as service:
        asked = {"question": QUESTION, "settings": SETTINGS}
        started = await service.http.post("/api/v1/debates", json=asked)
        run = service.runs.find_run(started.json()["id"])
        if run:
            await run.task
        assert await stored(service) == terminal
        async with Client(f"{service.url}/mcp") as tools:
            await tools.call_tool("debate_adversarial", asked)
        assert await stored(service) == terminal
        async with AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none") as chat:
            await chat.chat.completions.create(
                model="contend/adversarial",
                messages=[{"role": "user", "content": QUESTION}],
                extra_body={"contend": {"settings": SETTINGS}},
            )
        assert await stored(service) == terminal


async def test_langgraph_dev_produces_the_same_trace_as_the_terminal(
    terminal: dict[str, Any], models: ModelServer, tmp_path: Path
) -> None:
    server = DevServer(tmp_path, models).start()
    try:
        assert await trace_on(server.client()) == terminal
    finally:
        server.stop()


async def test_aegra_produces_the_same_trace_as_the_terminal(
    terminal: dict[str, Any], workers: Workers
) -> None:
    client = get_client(url=workers.addresses[0], api_key=None, timeout=60)
    assert await trace_on(client) == terminal
