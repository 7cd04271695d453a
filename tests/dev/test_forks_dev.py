"""A fork on `langgraph dev`: made through langgraph-sdk, seen in its history and in the family."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.cli.support import Command, debaters
from tests.dev.dev_server import DevServer
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow

API = "/api/v1/debates"
QUICK = {"min_rounds": 2, "max_rounds": 2, "templates": False, "retry_wait": 0.01}


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m", "other"]) as running:
        yield running


@pytest.fixture
def server(models: ModelServer, tmp_path: Path) -> Iterator[DevServer]:
    running = DevServer(tmp_path, models).start()
    yield running
    running.stop()


async def finish(client: LangGraphClient, started: Any) -> str:
    """Follow a debate to its end; return its id, which is its thread's id as well."""
    debate = str(started["id"])
    async for part in client.http.stream(f"{API}/{debate}/events", "GET"):
        if part.event == "complete":
            return debate
    raise AssertionError("the debate did not end")


async def history(client: LangGraphClient, debate: str) -> list[Any]:
    await client.threads.create(thread_id=debate, graph_id="adversarial", if_exists="do_nothing")
    steps = await client.threads.get_history(debate, limit=50)
    return list(reversed(steps))


async def test_a_fork_is_seen_in_its_history_and_in_the_family(
    server: DevServer, models: ModelServer
) -> None:
    asked = {"question": "Should we split it?", "model": "openai:m", "settings": QUICK}
    async with server.client() as client:
        parent = await finish(client, await client.http.post(API, json=asked))
        before, made = await history(client, parent), len(models.calls)
        wanted = {"at": "1", "settings": {"skeptic_model": "openai:other"}}
        forked = await client.http.post(f"{API}/{parent}/forks", json=wanted)
        fork = await finish(client, forked)
        first, *later = await history(client, fork)
        assert await history(client, parent) == before
    assert first["next"] == ["propose"]
    shared = [turn["id"] for turn in first["values"]["turns"]]
    assert shared == ["r1.propose.proposer", "r1.critique.skeptic"]
    assert [step["next"] for step in later[:2]] == [["critique"], ["judge_continue"]]
    said = {turn["id"]: turn["model"] for turn in later[-1]["values"]["turns"]}
    assert (said["r1.critique.skeptic"], said["r2.critique.skeptic"]) == (
        "openai:m",
        "openai:other",
    )
    assert len(models.calls) - made == 4
    contend = Command(server.home / "contend", models)
    family = contend("tree", fork, "--json").json
    assert (family["id"], family["status"]) == (parent, "done")
    assert [(each["id"], each["forked_at"]) for each in family["forks"]] == [
        (fork, "1:judge_continue")
    ]
    assert json.dumps(family).count(fork) == 1
