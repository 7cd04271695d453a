"""The MCP tools, used by the official client over stdio and HTTP."""

import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from contend.graph.errors import DatabaseUnavailable
from contend.graph.settings import SETTINGS
from tests.cli.support import Command
from tests.service.test_sse import models, serve
from tests.support.model_server import ModelServer

__all__ = ["models"]

QUICK = {"min_rounds": 1, "max_rounds": 1}
DEBATE = {"question": "Should we split the monolith?", "settings": QUICK}


async def _call(client: Client, tool: str, **given: Any) -> Any:
    """Return the result of a tool, or the text of its error."""
    result = await client.call_tool(tool, given)
    if result.is_error:
        return result.content[0].text  # type: ignore[union-attr]
    assert result.structured_content is not None
    return result.structured_content


async def test_a_debate_over_http_reports_progress_and_can_be_read_again(
    models: ModelServer,
) -> None:
    async with serve() as service, Client(f"{service.url}/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert {*tools} == {
            *(f"debate_{protocol}" for protocol in SETTINGS),
            *("read_debate", "list_debates"),
        }
        assert tools["debate_forecast"].input_schema["required"] == ["question", "outcomes"]
        messages: list[str | None] = []

        async def report(progress: float, total: float | None, message: str | None) -> None:
            assert (progress, total) == (len(messages) + 1, None)
            messages.append(message)

        result = await client.call_tool("debate_adversarial", DEBATE, progress_callback=report)
        debate = result.structured_content
        assert debate is not None
        assert debate["status"] == "done"
        assert debate["answer"]
        assert [each for each in messages if each and each.startswith("**Skeptic:**")]
        assert await _call(client, "read_debate", debate_id=debate["debate_id"]) == debate
        listed = (await _call(client, "list_debates"))["result"]
        assert [each["debate_id"] for each in listed] == [debate["debate_id"]]


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("debate_forum", {"question": " "}, "The question is empty"),
        ("debate_forum", {"question": "Why?", "settings": {"max_round": 2}}, "'max_rounds'"),
        ("debate_forum", {"question": "Why?", "preset": "nope"}, "There is no preset 'nope'"),
        ("debate_forum", {"question": "Why?", "model": "nope:x"}, "nope"),
        ("debate_forum", {"question": "Why?", "settings": {"pause": "each_round"}}, "Nobody can"),
        ("debate_forecast", {"question": "Why?", "outcomes": []}, "A forecast needs outcomes"),
        ("read_debate", {"debate_id": "00000000-0000-4000-8000-000000000000"}, "No debate has"),
        ("read_debate", {"debate_id": "../etc"}, "UUID"),
        ("list_debates", {"limit": 1000}, "less than or equal to 100"),
    ],
)
async def test_errors_are_readable_and_cost_no_call(
    models: ModelServer, tool: str, given: dict[str, Any], said: str
) -> None:
    async with serve() as service, Client(f"{service.url}/mcp") as client:
        refused = await _call(client, tool, **given)
    assert isinstance(refused, str)
    assert said in refused
    assert "--" not in refused
    assert not models.calls


async def test_reports_an_unavailable_database_without_its_address(
    models: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise DatabaseUnavailable("PostgreSQL at db.internal cannot be used")

    async with serve() as service, Client(f"{service.url}/mcp") as client:
        monkeypatch.setattr(service.runs.records, "search", away)
        refused = await _call(client, "list_debates")
    assert "The database of this service is not available" in refused
    assert "internal" not in refused


@pytest.mark.slow
async def test_a_debate_over_stdio(tmp_path: Path, models: ModelServer) -> None:
    env = Command(tmp_path / "home", models).env
    server = StdioServerParameters(command=sys.executable, args=["-m", "contend", "mcp"], env=env)
    async with Client(server) as client:
        debate = await _call(client, "debate_adversarial", model="openai:m", **DEBATE)
        listed = (await _call(client, "list_debates", search="monolith"))["result"]
    assert debate["status"] == "done"
    assert [each["debate_id"] for each in listed] == [debate["debate_id"]]
