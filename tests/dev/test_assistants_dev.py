"""Presets as assistants, and the MCP tools, in `langgraph dev`."""

from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.support import debaters
from tests.dev.dev_server import DevServer
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

TOKEN = "canary-token-0123456789abcdef"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
PRESET = "description: Mine.\nmodel: openai:m\nmin_rounds: 1\nmax_rounds: 1\ntemplates: false\n"


async def test_presets_are_assistants_and_protocols_are_mcp_tools(tmp_path: Path) -> None:
    presets = tmp_path / "contend" / "presets"
    presets.mkdir(parents=True)
    (presets / "mine.yaml").write_text(PRESET)
    (presets / "broken.yaml").write_text("max_round: 1\n")
    with ModelServer(debaters(), models=["m"]) as models:
        server = DevServer(tmp_path, models, CONTEND_SERVICE_TOKEN=TOKEN).start()
        try:
            async with server.client() as client:
                found = {each["name"]: each for each in await client.assistants.search(limit=50)}
                assert {"cheap", "frontier", "local", "mine"} <= {*found}
                assert "broken" not in found
                given = {"question": "Why?"}
                state = await client.runs.wait(None, found["mine"]["assistant_id"], input=given)
            assert isinstance(state, dict)
            assert state["stop"]["round"] == 1
            assert len(models.calls) == 4
            async with (
                httpx2.AsyncClient(headers=HEADERS, timeout=60) as http,
                Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as tools,
            ):
                names = {tool.name for tool in (await tools.list_tools()).tools}
            assert {"debate_forum", "read_debate"} <= names
        finally:
            server.stop()
    log = server.log.read_text()
    assert "Preset broken is not an assistant" in log
    assert TOKEN not in log
