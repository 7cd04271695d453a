"""The stored result of a tool."""

from contend.graph.values import ToolUse
from contend.nodes.calls.tools import ToolResult, shown_result

USE = ToolUse(name="calculate", arguments={"expression": "6 * 7"}, result="42", failed=False)


def test_a_result_of_an_earlier_release_is_read() -> None:
    now: ToolResult = {"use": USE, "shown": "It is 42.", "passages": [], "seconds": 0.1}
    before: ToolResult = {"use": USE, "told": "It is 42.", "passages": [], "seconds": 0.1}
    assert shown_result(now) == shown_result(before) == "It is 42."
