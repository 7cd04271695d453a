"""Answering, editing and steering debates through `langgraph dev`."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import pytest
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import BadRequestError, ConflictError, UnprocessableEntityError

from contend.debates.repository import Repository
from contend.graph.errors import BadInput
from contend.graph.state import Remark
from tests.cli.support import Command
from tests.dev.debating import SETTINGS, begin, resume, slow_may_speak, texts
from tests.dev.dev_server import DevServer
from tests.dev.test_forks_dev import checkpoint_before
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow

QUESTION = {"question": "Should we split the monolith?"}
GRAPH = "adversarial"


def records_of(server: DevServer) -> Repository:
    return Repository(server.home / "contend" / "contend.db")


async def go_on(client: LangGraphClient, thread: str, answer: Any = "") -> dict[str, Any]:
    """Answer the pause without passing settings."""
    command: Any = {"resume": answer}
    state = await client.runs.wait(thread, GRAPH, command=command)
    assert isinstance(state, dict)
    return state


async def state_of(client: LangGraphClient, thread: str) -> dict[str, Any]:
    values = (await client.threads.get_state(thread))["values"]
    assert isinstance(values, dict)
    return values


@pytest.mark.parametrize("wrong", [7, {"finish": "perhaps"}, {"finnish": True}, ["yes"]])
async def test_an_invalid_answer_keeps_the_debate_paused(
    server: DevServer, models: ModelServer, wrong: Any
) -> None:
    async with server.client() as client:
        thread = await begin(client)
        with pytest.raises(Exception, match="ValidationError"):
            await go_on(client, thread, wrong)
        (asked,) = (await client.threads.get_state(thread))["tasks"][0]["interrupts"]
        assert asked["response_schema"] == Remark.model_json_schema()
        await go_on(client, thread, "Mind the cost.")
        assert "Mind the cost." in models.calls[-2].request.text


async def test_a_thread_continues_with_its_own_settings(server: DevServer) -> None:
    async with server.client() as client:
        thread = await begin(client)
        state = await state_of(client, thread)
        assert state["protocol"] == GRAPH
        assert {name: state["settings"][name] for name in SETTINGS} == SETTINGS
        heard = await go_on(client, thread, {"say": "Mind the cost."})
        assert heard["__interrupt__"][0]["value"]["stop"]["reason"] == "max_rounds"
        done = await go_on(client, thread)
        assert [turn["role"] for turn in done["turns"]].count("user") == 1
        assert done["trace"]["total_rounds"] == 2


async def test_a_changed_setting_applies_in_a_fork_and_is_shown(server: DevServer) -> None:
    async with server.client() as client:
        thread = await begin(client)
        history = await client.threads.get_history(thread)
        fork: Any = next(step for step in history if step["next"] == ["critique"])
        events = [
            part.data
            async for part in client.runs.stream(
                thread,
                GRAPH,
                input=None,
                checkpoint=fork["checkpoint"],
                context={"skeptic_model": "openai:proposer"},
                stream_mode=["custom"],
            )
            if part.event == "custom"
        ]
        state = await state_of(client, thread)
    (shown,) = [event for event in events if event["event"] == "settings_changed"]
    changed = {"skeptic_model": ["openai:skeptic", "openai:proposer"]}
    assert shown["metadata"]["changes"] == changed
    assert state["turns"][1]["model"] == "openai:proposer"
    assert state["settings"] == {**fork["values"]["settings"], "skeptic_model": "openai:proposer"}


async def test_text_streams_as_messages_of_the_graph_nodes(server: DevServer) -> None:
    async with server.client() as client:
        parts = [
            part.data
            async for part in client.runs.stream(
                None, GRAPH, input=QUESTION, context=SETTINGS, stream_mode=["messages-tuple"]
            )
            if part.event == "messages"
        ]
    texts: dict[str, str] = {}
    for message, about in parts:
        texts[about["langgraph_node"]] = texts.get(about["langgraph_node"], "") + message["content"]
    assert {*texts} == {"propose", "critique"}
    assert "The skeptic speaks in call" in texts["critique"]
    assert "nonce" not in texts["critique"]


async def test_the_error_names_an_unknown_setting(server: DevServer, models: ModelServer) -> None:
    calls = len(models.calls)
    async with server.client() as client:
        with pytest.raises(UnprocessableEntityError, match=r"max_round\. Did you mean max_rounds"):
            await client.runs.create(None, GRAPH, input=QUESTION, context={"max_round": 3})
    assert len(models.calls) == calls


async def test_an_edited_turn_replaces_the_original_for_later_speakers(
    server: DevServer, models: ModelServer
) -> None:
    async with server.client() as client:
        thread = await begin(client)
        state = await state_of(client, thread)
        edited = state["turns"][1] | {"text": "It has no owner."}
        seats = [each | {"model": "ollama:synthesizer"} for each in state["seats"][:1]]
        edits = {"turns": [edited], "seats": [*seats, *state["seats"][1:]]}
        await client.threads.update_state(thread, edits, as_node="critique")
        await client.runs.wait(thread, GRAPH, input=None)
        after = await go_on(client, thread)
    assert texts(after)[:2] == [texts(state)[0], "It has no owner."]
    assert after["turns"][2]["model"] == "ollama:synthesizer"
    assert "It has no owner." in models.calls[-2].request.text


async def test_an_edited_critique_ends_the_rounds(server: DevServer) -> None:
    async with server.client() as client:
        thread = await begin(client)
        critique = (await state_of(client, thread))["turns"][1]
        ready = critique["assessment"] | {"ready": True, "score": 9, "points": []}
        edits = {"turns": [critique | {"assessment": ready}]}
        await client.threads.update_state(thread, edits, as_node="critique")
        paused = await client.runs.wait(thread, GRAPH, input=None)
        assert isinstance(paused, dict)
        assert paused["__interrupt__"][0]["value"]["stop"]["reason"] == "skeptic_ready"
        done = await go_on(client, thread)
    assert done["trace"]["total_rounds"] == 1


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"turns": [{"id": "r1.propose.proposer"}]}, r"turns\.0\.round .*Field required"),
        ({"turns": "none"}, r"turns is not well-formed"),
        ({"seats": [{"id": "x"}]}, r"seats\.0\.name"),
        ({"stop": {"reason": "tired", "round": 1}}, r"stop\.reason"),
        ({"round": "many"}, r"round is not well-formed"),
        ({"degraded": [{"what": 7}]}, r"degraded\.0\.what"),
        ({"bogus": 1}, "no field bogus"),
        ({"protocol": "bogus"}, "protocol of a debate cannot be changed"),
        ({"settings": {"max_rounds": "many"}}, r"settings\.max_rounds"),
    ],
)
async def test_an_invalid_edit_is_refused(
    server: DevServer, edit: dict[str, Any], says: str
) -> None:
    async with server.client() as client:
        thread = await begin(client)
        before = await client.threads.get_state(thread)
        with pytest.raises(BadRequestError, match=says):
            await client.threads.update_state(thread, edit, as_node="critique")
        assert await client.threads.get_state(thread) == before
        # `json` so that the command is as a client without our types sends it.
        command: Any = json.loads(json.dumps({"update": edit, "resume": ""}))
        with pytest.raises(Exception, match=says):
            await client.runs.wait(thread, GRAPH, command=command)
        assert await resume(client, thread, "")


async def test_a_second_question_in_a_thread_is_refused(
    server: DevServer, models: ModelServer
) -> None:
    async with server.client() as client:
        thread = await begin(client)
        before = (await client.threads.get_state(thread))["checkpoint"]
        calls = len(models.calls)
        with pytest.raises(Exception, match="BadInput: This thread already holds a debate"):
            await client.runs.wait(thread, GRAPH, input={"question": "And the database?"})
        assert (await client.threads.get_state(thread))["checkpoint"] == before
        assert len(models.calls) == calls
        assert await go_on(client, thread)


async def test_refuses_to_run_a_debate_that_another_process_holds(
    server: DevServer, models: ModelServer
) -> None:
    async with server.client() as client:
        thread = await begin(client)
        calls = len(models.calls)
        records = records_of(server)
        lease = records.acquire(thread)
        try:
            with pytest.raises(Exception, match=r"BadInput: .* is being run by another process"):
                await go_on(client, thread)
        finally:
            lease.release()
        assert len(models.calls) == calls
        assert await go_on(client, thread)
    records.close()


async def test_an_edit_is_refused_while_another_process_runs_the_debate(server: DevServer) -> None:
    async with server.client() as client:
        thread = await begin(client)
        before = await client.threads.get_state(thread)
        lease = records_of(server).acquire(thread)
        try:
            with pytest.raises(BadRequestError, match="is being run by another process"):
                await client.threads.update_state(thread, {"finish": True})
        finally:
            lease.release()
        assert await client.threads.get_state(thread) == before
        await client.threads.update_state(thread, {"finish": True})
        assert (await state_of(client, thread))["finish"] is True


async def test_runs_of_one_thread_are_queued_or_interrupted(
    server: DevServer, models: ModelServer
) -> None:
    slow, calls = SETTINGS | {"proposer_model": "openai:slow"}, len(models.calls)
    slow_may_speak.clear()
    async with server.client() as client:
        thread = (await client.threads.create())["thread_id"]
        first = await client.runs.create(thread, GRAPH, input=QUESTION, context=slow)
        await asyncio.to_thread(models.wait_for_calls, calls + 1)
        with pytest.raises(BadInput, match="is being run by another process"):
            records_of(server).acquire(thread)
        with pytest.raises(ConflictError):
            await client.runs.create(thread, GRAPH, input=None, multitask_strategy="reject")
        for refused in (
            client.runs.create(thread, GRAPH, input=None, multitask_strategy="rollback"),
            client.runs.cancel(thread, first["run_id"], action="rollback"),
        ):
            await _refused(refused)
        await client.runs.create(thread, GRAPH, input=None, multitask_strategy="enqueue")
        last = await client.runs.create(thread, GRAPH, input=None, multitask_strategy="interrupt")
        slow_may_speak.set()
        await client.runs.join(thread, last["run_id"])
        state = await client.threads.get_state(thread)
        ended = [run["status"] for run in await client.runs.list(thread)]
    assert ended == ["success", "interrupted", "interrupted"]
    assert state["next"] == ["judge_continue"]
    assert len(texts(state["values"])) == 2


async def _refused(request: Awaitable[Any]) -> None:
    with pytest.raises(UnprocessableEntityError, match="Rollback is not possible"):
        await request


@pytest.mark.parametrize("missing", ["proposer", "judge"])
async def test_missing_seats_are_refused_before_any_call(
    server: DevServer, models: ModelServer, missing: str
) -> None:
    def seat(role: str) -> dict[str, str]:
        return {"id": role, "name": role, "role": role, "model": "openai:proposer"}

    roles = ("proposer", "skeptic", "synthesizer", "judge")
    given: Any = QUESTION | {"seats": [seat(role) for role in roles if role != missing]}
    calls = len(models.calls)
    async with server.client() as client:
        with pytest.raises(Exception, match=f"too few have the role: {missing}"):
            await client.runs.wait(None, GRAPH, input=given, context=SETTINGS)
    assert len(models.calls) == calls


async def test_the_calls_of_a_thread_are_recorded(server: DevServer, models: ModelServer) -> None:
    async with server.client() as client:
        thread = await begin(client)
        await go_on(client, thread, "Mind the cost.")
        fork: Any = await checkpoint_before(client, thread, "critique")
        await client.runs.wait(thread, GRAPH, input=None, checkpoint=fork["checkpoint"])
        await go_on(client, thread)
        await go_on(client, thread)
    calls = len(models.calls)
    contend = Command(server.home / "contend", models)
    replayed = await asyncio.to_thread(contend, "replay", thread, "--strict", "--json")
    assert (replayed.code, replayed.json["differences"]) == (0, []), replayed.err
    assert replayed.json["calls"] >= 6
    assert len(models.calls) == calls


async def test_a_thread_is_stored_as_a_debate(server: DevServer) -> None:
    records = records_of(server)
    async with server.client() as client:
        thread = await begin(client)
        paused = records.find(thread)
        assert (paused.status, paused.state["round"]) == ("paused", 1)
        assert paused.settings["ran_on"] == f"LangGraph server {server.url}"
        await go_on(client, thread)
        done = await go_on(client, thread)
    found = records.find(thread)
    records.close()
    assert found.status == "done"
    assert [turn.text for turn in found.turns] == texts(done)
    assert found.as_record().final_answer == done["final_answer"]
    assert thread in [each.id for each in records.newest(100)]
