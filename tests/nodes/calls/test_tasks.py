"""Task results that a client stored as JSON in a checkpoint."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from contend.graph.errors import BadInput
from contend.graph.values import Usage
from contend.nodes.calls.tasks import stored_task

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Called(TypedDict):
    usage: Usage
    text: str


class Counted(TypedDict):
    tokens: int


calls: list[str] = []


async def call(text: str) -> Called:
    calls.append(text)
    return {"usage": Usage(input_tokens=3, output_tokens=4), "text": text}


call_once = stored_task("call", call)


async def node(state: Counted) -> Counted:
    called = await call_once("hello")
    interrupt("go on?")
    return {"tokens": state["tokens"] + (called["usage"].input_tokens or 0)}


class Edited(JsonPlusSerializer):
    """Loads the task result as edited by a client."""

    def __init__(self, edited: Any) -> None:
        super().__init__()
        self._edited = edited

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        found = super().loads_typed(data)
        is_result = isinstance(found, dict) and found.keys() == Called.__annotations__.keys()
        return self._edited if is_result else found


async def resume_with(edited: Any) -> dict[str, Any]:
    calls.clear()
    builder = StateGraph(Counted).add_node(node).add_edge(START, "node")
    graph = builder.compile(checkpointer=InMemorySaver(serde=Edited(edited)))
    await graph.ainvoke({"tokens": 0}, CONFIG)
    state: dict[str, Any] = await graph.ainvoke(Command(resume=""), CONFIG)
    return state


async def test_restores_a_json_result_without_repeating_the_call() -> None:
    state = await resume_with({"usage": {"input_tokens": 7, "output_tokens": 1}, "text": "edited"})
    assert state["tokens"] == 7
    assert calls == ["hello"]


async def test_refuses_a_damaged_result_and_names_the_field() -> None:
    with pytest.raises(BadInput, match=r"task call is damaged: usage\.input_tokens is not"):
        await resume_with({"usage": {"input_tokens": "many"}, "text": "edited"})
    assert calls == ["hello"]
