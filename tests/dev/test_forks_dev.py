"""Forks in `langgraph dev` and their history and family."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient

from tests.cli.support import Command, Ended, debaters
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


async def test_a_fork_is_shown_in_its_history_and_the_family(
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


ROLES = ("proposer", "skeptic", "synthesizer", "judge")
CONTEXT = {**QUICK, **{f"{role}_model": "openai:m" for role in ROLES}}
QUESTION = {"question": "Should we split it?"}


async def contend(server: DevServer, *arguments: str) -> Ended:
    command = Command(server.home / "contend", server.models)
    return await asyncio.to_thread(command, *arguments)


async def run(client: LangGraphClient, thread: str, **given: Any) -> dict[str, Any]:
    state = await client.runs.wait(thread, "adversarial", **given)
    assert isinstance(state, dict)
    return state


async def checkpoint_before(client: LangGraphClient, thread: str, node: str) -> Any:
    """Return the first step that this node follows."""
    return next(step for step in await history(client, thread) if step["next"] == [node])


async def copy_of(client: LangGraphClient, thread: str) -> str:
    copy: Any = client.threads.copy  # declared to return nothing
    return str((await copy(thread))["thread_id"])


async def places(server: DevServer, thread: str) -> list[str]:
    steps = (await contend(server, "history", thread, "--json")).json
    return [f"{step['round']}:{'+'.join(step['nodes']) or 'edited'}" for step in steps]


async def test_a_fork_within_a_thread_is_in_the_history_of_the_debate(
    server: DevServer, models: ModelServer
) -> None:
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        await run(client, thread, input=QUESTION, context=CONTEXT)
        before, first = len(models.calls), await places(server, thread)
        earlier = await checkpoint_before(client, thread, "critique")
        other: Any = {"skeptic_model": "openai:other"}
        await run(client, thread, input=None, checkpoint=earlier["checkpoint"], context=other)
        assert len(models.calls) - before == 5
        assert await places(server, thread) == first
        shown = (await contend(server, "show", thread, "--json")).json
        spoken = {turn["id"]: turn["model"] for turn in shown["turns"]}
        assert spoken["r1.critique.skeptic"] == "openai:other"

        edited = earlier["values"]["turns"][0] | {"text": "Keep it whole."}
        where = earlier["checkpoint"]["checkpoint_id"]
        await client.threads.update_state(thread, {"turns": [edited]}, checkpoint_id=where)
        assert await places(server, thread) == ["1:retrieve", "1:propose", "1:edited"]
        record = (await contend(server, "show", thread, "--json")).json
        assert (record["status"], record["turns"][0]["text"]) == ("paused", "Keep it whole.")
        await run(client, thread, input=None)
        assert await places(server, thread) == [*first[:2], "1:edited", *first[2:]]
        assert "Keep it whole." in models.calls[-5].request.text
    alone = (await contend(server, "tree", thread, "--json")).json
    assert (alone["id"], alone["forks"]) == (thread, [])


async def test_a_copied_thread_is_in_the_family_of_its_original(
    server: DevServer, models: ModelServer
) -> None:
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        asked = await run(client, thread, input=QUESTION, context=CONTEXT)
        copy = await copy_of(client, thread)
        untouched = await copy_of(client, thread)
        earlier = await checkpoint_before(client, copy, "judge_continue")
        calls = len(models.calls)
        done = await run(client, copy, input=None, checkpoint=earlier["checkpoint"])
        assert len(models.calls) - calls == 4
        assert done["turns"][:2] == asked["turns"][:2]
        second = await copy_of(client, copy)
        await client.threads.update_state(second, {"finish": True}, as_node="propose")
    family = (await contend(server, "tree", second, "--json")).json
    found = {each["id"]: each for each in family["forks"]}
    assert (family["id"], {*found}) == (thread, {copy, untouched})
    assert found[copy]["forked_at"] == "1:critique"
    assert found[untouched]["forked_at"] == "2:store"
    assert [each["id"] for each in found[copy]["forks"]] == [second]
    shown = (await contend(server, "show", copy, "--json")).json
    assert [turn["id"] for turn in shown["turns"]] == [turn["id"] for turn in done["turns"]]


async def test_a_second_question_after_the_end_needs_a_fork(
    server: DevServer, models: ModelServer
) -> None:
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        asked = await run(client, thread, input=QUESTION, context=CONTEXT)
        before = (await client.threads.get_state(thread))["checkpoint"]
        calls = len(models.calls)
        with pytest.raises(Exception, match=r"BadInput: .*forks with another_round"):
            await run(client, thread, input={"question": "And the database?"})
        assert (await client.threads.get_state(thread))["checkpoint"] == before
        assert len(models.calls) == calls
        again = {"another_round": True, "say": "And the database?"}
        fork = await finish(client, await client.http.post(f"{API}/{thread}/forks", json=again))
        (first, *_, last) = await history(client, fork)
    assert "And the database?" in models.calls[calls].request.text
    assert [turn["round"] for turn in first["values"]["turns"][:-1]] == [1, 1, 2, 2]
    assert last["values"]["round"] == 3
    shown = (await contend(server, "show", thread, "--json")).json
    assert shown["final_answer"] == asked["final_answer"]
