"""Tool calls and the results sent back to the model."""

from typing import Any, get_args

import pytest
from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall
from langchain_core.tools import ToolException

from contend.graph.values import ToolName, ToolUse
from contend.models.tools import MAX_QUERY_CHARS, Call, calls_in, open_tools, use_tool

NAMES = get_args(ToolName)


async def search(query: str) -> tuple[str, Any]:
    if query == "down":
        raise ToolException("The documents cannot be searched now: no vectors.")
    if query == "broken":
        raise ZeroDivisionError("the key sk-canary-0123456789abcdef divides nothing\nmore")
    return f"[plan:1]\nAbout {query}.\x1b[31m", ["plan:1"]


def call(name: str, args: Any, kind: type = ToolCall) -> Call:
    made: Call = kind(name=name, args=args, id="call_1", error=None)
    return made


async def used(name: str, args: Any, kind: type = ToolCall) -> tuple[ToolUse, Any]:
    return await use_tool(open_tools(NAMES, search), call(name, args, kind))


def test_opens_every_tool_that_a_seat_may_name() -> None:
    assert tuple(tool.name for tool in open_tools(NAMES, search)) == NAMES


async def test_returns_a_result_as_text_and_as_data() -> None:
    use, found = await used("calculate", {"expression": "6 * 7"})
    assert use == ToolUse(name="calculate", arguments={"expression": "6 * 7"}, result="42")
    assert found is None
    use, found = await used("search_documents", {"query": "pets"})
    assert (use.result, use.failed, found) == ("[plan:1]\nAbout pets.[31m", False, ["plan:1"])


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("calculate", {"expression": "1 / 0"}, "Not calculated: division by zero."),
        ("calculate", {}, "The argument 'expression': Field required."),
        ("calculate", {"expression": [1]}, "The argument 'expression': Input should be a valid"),
        ("calculate", {"formula": "1"}, "The argument 'expression': Field required."),
        ("search_documents", {"query": "down"}, "The documents cannot be searched now: no vec"),
        ("search_documents", {"query": "x" * (MAX_QUERY_CHARS + 1)}, "at most 1000 characters"),
        ("search_documents", {"query": "broken"}, "search_documents failed: the key *** divides n"),
        ("shell", {"command": "ls"}, "There is no tool 'shell'; there are: calculate, search_docu"),
    ],
)
async def test_returns_a_failure_as_a_one_line_result(
    name: str, args: dict[str, Any], said: str
) -> None:
    use, found = await used(name, args)
    assert use.failed
    assert said in use.result
    assert "\n" not in use.result
    assert (use.name, use.arguments, found) == (name, args, None)


async def test_reports_unreadable_tool_arguments() -> None:
    use, _ = await used("calculate", '{"expression": ', InvalidToolCall)
    assert use.failed
    assert use.result == 'These arguments are no JSON object: {"expression":'
    assert use.arguments == {}


def test_lists_valid_and_invalid_tool_calls_of_a_message() -> None:
    good = ToolCall(name="calculate", args={}, id="a")
    bad = InvalidToolCall(name="calculate", args="{", id="b", error=None, type="invalid_tool_call")
    message = AIMessage("", tool_calls=[good], invalid_tool_calls=[bad])
    assert [each["id"] for each in calls_in(message)] == ["a", "b"]
    assert calls_in(None) == []
