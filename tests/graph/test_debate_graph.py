"""Graph input is checked before a checkpoint is written or a call is made."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from contend.graph import adversarial
from contend.graph.errors import BadInput
from contend.graph.serializer import serializer
from contend.nodes.judge_continue import human_turn
from tests.support.scripted import BUILDERS, THREAD, full_cast, play, scripted_settings

CONFIG: Any = {"configurable": {"thread_id": THREAD}}


async def test_a_second_question_changes_nothing() -> None:
    saver, cast = InMemorySaver(), full_cast()
    await play(cast, saver=saver, pause="each_round")
    graph = BUILDERS["adversarial"].compile(checkpointer=saver)
    before, sent = await graph.aget_state(CONFIG), len(cast.sent)
    inputs: list[dict[str, Any]] = [{"question": "And the database?"}, {"seats": []}]
    for given in inputs:
        with pytest.raises(BadInput, match="already holds a debate"):
            await graph.ainvoke(given, CONFIG, context=scripted_settings())
    assert await graph.aget_state(CONFIG) == before
    assert len(cast.sent) == sent


@pytest.mark.parametrize("update", [{"turns": [{"id": "x"}]}, {"stop": {}}, {"round": "many"}])
async def test_a_wrong_shape_changes_nothing(update: dict[str, Any]) -> None:
    saver, cast = InMemorySaver(), full_cast()
    await play(cast, saver=saver, pause="each_round")
    graph = BUILDERS["adversarial"].compile(checkpointer=saver)
    before = await saver.aget_tuple(CONFIG)
    with pytest.raises(BadInput, match="not well-formed"):
        await graph.aupdate_state(CONFIG, update, as_node="critique")
    with pytest.raises(BadInput, match="not well-formed"):
        await graph.ainvoke(Command(resume="", update=update), CONFIG)
    assert await saver.aget_tuple(CONFIG) == before


async def test_user_comment_is_accepted_as_json() -> None:
    """Clients of a server send JSON; langgraph reads a dict with this role as a message."""
    saver, cast = InMemorySaver(), full_cast()
    await play(cast, saver=saver, pause="each_round")
    graph = BUILDERS["adversarial"].compile(checkpointer=saver)
    values: Any = (await graph.aget_state(CONFIG)).values
    said = human_turn(values, "Mind the cost.")
    update = {"turns": [said.model_dump(mode="json")]}
    with cast.on_stage():
        ended = await graph.ainvoke(Command(resume="", update=update), CONFIG)
    assert said in ended["turns"]


async def test_a_wrong_input_writes_nothing() -> None:
    saver = InMemorySaver()
    graph = BUILDERS["adversarial"].compile(checkpointer=saver)
    with pytest.raises(BadInput, match=r"seats\.0\.name"):
        await graph.ainvoke({"question": "Why?", "seats": [{"id": "x"}]}, CONFIG)
    assert await saver.aget_tuple(CONFIG) is None


async def test_server_saver_reads_checkpoints_of_our_saver() -> None:
    servers = InMemorySaver()
    ours = InMemorySaver(serde=serializer())
    ours.storage, ours.writes, ours.blobs = servers.storage, servers.writes, servers.blobs
    there, here = (adversarial.graph.copy({"checkpointer": s}) for s in (servers, ours))
    context = scripted_settings(pause="each_round", min_rounds=3)
    go_on: Command[Any] = Command(resume="")
    with full_cast(proposer="Keep the monolith. " * 60).on_stage():
        await there.ainvoke({"question": "Why?"}, CONFIG, context=context)
        await here.ainvoke(go_on, CONFIG, context=context)
        paused = await there.aget_state(CONFIG)
        assert paused.values["round"] == 2
        assert await here.aget_state(CONFIG) == paused
        await there.ainvoke(go_on, CONFIG, context=context)
    assert type(servers.serde) is JsonPlusSerializer
