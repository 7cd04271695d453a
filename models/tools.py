from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field, ValidationError

from contend.graph.values import ToolName, ToolUse
from contend.models import calculator
from contend.models.failures import first_line
from contend.models.text import clean_reply

MAX_QUERY_CHARS = 1000

Call = ToolCall | InvalidToolCall
Search = Callable[[str], Awaitable[tuple[str, Any]]]
"""Searches the documents a seat may see. Returns the result as text and as data."""


class Calculation(BaseModel):
    """The argument of `calculate`."""

    expression: str = Field(
        description="The arithmetic in Python's notation, such as 1200 * 1.035 ** 10 - sqrt(2)."
    )


class DocumentSearch(BaseModel):
    """The argument of `search_documents`."""

    query: str = Field(
        max_length=MAX_QUERY_CHARS, description="What to look for, in words the text may use."
    )


def open_tools(names: Sequence[ToolName], search: Search) -> list[BaseTool]:
    tools = {"calculate": _calculator(), "search_documents": _document_search(search)}
    return [tools[name] for name in names]


def _calculator() -> BaseTool:
    def calculate(expression: str) -> str:
        try:
            return calculator.calculate(expression)
        except calculator.NotCalculable as error:
            raise ToolException(f"Not calculated: {error}.") from error

    return StructuredTool.from_function(
        calculate,
        name="calculate",
        description="Works out one arithmetic expression exactly, and returns the number.",
        args_schema=Calculation,
    )


def _document_search(search: Search) -> BaseTool:
    return StructuredTool.from_function(
        coroutine=search,
        name="search_documents",
        description=(
            "Searches the user's documents, and returns the nearest passages, each under the "
            "label by which it is cited, such as [handbook:12]."
        ),
        args_schema=DocumentSearch,
        response_format="content_and_artifact",
    )


def calls_in(message: AIMessage | None) -> list[Call]:
    return [*message.tool_calls, *message.invalid_tool_calls] if message else []


async def use_tool(tools: Sequence[BaseTool], call: Call) -> tuple[ToolUse, Any]:
    """Run a tool call. Return an error as a result, so that the model sees it."""
    name, given = call["name"] or "", call["args"]
    tool = next((each for each in tools if each.name == name), None)
    artifact, failed = None, True
    if not isinstance(given, dict):
        result = f"These arguments are no JSON object: {given}"
    elif tool is None:
        known = ", ".join(each.name for each in tools)
        result = f"There is no tool '{name}'; there are: {known}."
    else:
        try:
            answer: ToolMessage = await tool.ainvoke(
                {"type": "tool_call", "id": call["id"], "name": name, "args": given}
            )
            result, artifact, failed = answer.text, answer.artifact, False
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in wrong["loc"])
            result = f"The argument '{where}': {wrong['msg']}."
        except ToolException as error:
            result = str(error)
        except Exception as error:  # noqa: BLE001 - a tool that breaks must not break the debate
            result = f"{name} failed: {first_line(error) or type(error).__name__}"
    arguments = given if isinstance(given, dict) else {}
    use = ToolUse(name=name, arguments=arguments, result=clean_reply(result), failed=failed)
    return use, artifact
