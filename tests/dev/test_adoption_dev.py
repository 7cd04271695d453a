"""Adopting threads of a server that uses our database without our app."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Command, Ended
from tests.dev.debating import SETTINGS, begin, resume, texts
from tests.dev.dev_server import REPOSITORY, DevServer
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow


@pytest.fixture
def server(models: ModelServer, tmp_path: Path) -> Iterator[DevServer]:
    """Run a server whose configuration loads only the graphs."""
    own = json.loads((REPOSITORY / "langgraph.json").read_text("utf-8"))
    kept = {key: own[key] for key in ("python_version", "dependencies", "graphs", "checkpointer")}
    running = DevServer(tmp_path, models)
    running.config = tmp_path / "langgraph.json"
    running.config.write_text(json.dumps(kept | {"env": own["env"]}), "utf-8")
    running.start()
    yield running
    running.stop()


async def test_threads_without_a_record_are_listed_shown_exported_and_resumed(
    server: DevServer, models: ModelServer
) -> None:
    async def contend(*arguments: str) -> Ended:
        command = Command(server.home / "contend", models)
        return await asyncio.to_thread(command.spawn, *arguments)

    async with server.client() as client:
        thread = await begin(client, templates=False)
        (listed,) = (await contend("list", "--json")).json
        assert (listed["id"], listed["status"]) == (thread, "paused")
        assert listed["ran_on"] == f"LangGraph server {server.url}"
        await resume(client, thread, "Mind the cost.")
        done = await resume(client, thread, "")
        other = await begin(client, templates=False)
    shown = (await contend("show", thread, "--json")).json
    assert (shown["status"], shown["final_answer"]) == ("done", done["final_answer"])
    assert [turn["text"] for turn in shown["turns"]] == texts(done)
    assert {name: shown["settings"][name] for name in SETTINGS} == SETTINGS
    assert "Mind the cost." in (await contend("export", thread)).out
    calls = len(models.calls)
    went_on = await contend("resume", other, "--finish")
    assert went_on.code == 0, went_on.err
    assert len(models.calls) - calls == 2
    statuses = {each["id"]: each["status"] for each in (await contend("list", "--json")).json}
    assert statuses == {thread: "done", other: "done"}
