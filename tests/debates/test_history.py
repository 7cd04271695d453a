"""Reading the steps of a debate from its checkpoints."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from contend.debates.history import graph_of, read_history
from contend.graph.serializer import serializer
from tests.support.states import rounds


async def test_reads_each_checkpoint_only_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    saver = InMemorySaver(serde=serializer())
    graph = graph_of("adversarial", saver)
    config: Any = {"configurable": {"thread_id": "a"}}
    turns = rounds(3)
    for turn in turns:
        update = {"turns": [turn], "round": turn.round}
        await graph.aupdate_state(config, update, as_node=turn.phase)

    async def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a checkpoint is read again")

    monkeypatch.setattr(saver, "aget_tuple", refuse)
    monkeypatch.setattr(saver, "aget_delta_channel_history", refuse)
    steps = await read_history(graph, "a")
    assert [step.turns for step in steps] == [(turn,) for turn in turns]
    assert [step.state["turns"] for step in steps] == [turns[:n] for n in range(1, 7)]
