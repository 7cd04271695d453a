import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.tools import BaseTool, ToolException
from typing_extensions import TypedDict

from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState
from contend.graph.values import Seat, ToolUse
from contend.models.embeddings import Embedder, EmbeddingFailed
from contend.models.tokens import estimate_tokens
from contend.models.tools import Call, calls_in, open_tools, use_tool
from contend.nodes.calls.evidence import document_access
from contend.nodes.calls.tasks import stored_task
from contend.nodes.prompting.truncate import room_beside_reply
from contend.prompts import fence
from contend.retrieval.documents import Passage
from contend.retrieval.passages import find_passages

_NO_ROOM = "There is no room left in your window for this result."
_TOO_SLOW = "It took too long."


class ToolResult(TypedDict):
    use: ToolUse
    shown: NotRequired[str]  # the result as the model sees it
    told: NotRequired[str]  # the same, under its name in release 0.1
    passages: list[str]  # the labels of the passages that were found
    seconds: float


@dataclass(frozen=True)
class Toolbox:
    tools: tuple[BaseTool, ...]
    most: int  # calls in one turn
    mark: str
    room: int | None  # tokens; None if unlimited


def toolbox(state: DebateState, settings: DebateSettings, seat: Seat, mark: str) -> Toolbox:
    async def search(query: str) -> tuple[str, tuple[Passage, ...]]:
        documents_access = document_access(state, settings, seat)
        embedder = Embedder(state["retrieval"].embedding_model, settings)
        try:
            found = await find_passages(documents_access, [query], embedder, settings.passages)
        except EmbeddingFailed as failed:
            raise ToolException(f"The documents cannot be searched now: {failed}") from failed
        return "\n\n".join(passage.labelled for passage in found), found

    return Toolbox(
        tools=tuple(open_tools(seat.tools, search)),
        most=strategy_for(settings).most_tool_calls,
        mark=mark,
        room=room_beside_reply(seat, settings),
    )


async def use(
    box: Toolbox, call: Call, messages: Sequence[BaseMessage], seconds: float
) -> ToolResult:
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            done, found = await use_tool(box.tools, call)
    except TimeoutError:
        done, found = _failed(call, _TOO_SLOW), None
    shown = _fenced(done, found or (), box.mark)
    if not _fits(box, messages, shown):
        done, found = _failed(call, _NO_ROOM), None
        shown = _fenced(done, (), box.mark)
    return {
        "use": done,
        "shown": shown,
        "passages": [passage.label for passage in found or ()],
        "seconds": time.monotonic() - began,
    }


use_once = stored_task("use", use)


def shown_result(used: ToolResult) -> str:
    return used["shown"] if "shown" in used else used["told"]


def _fenced(done: ToolUse, found: Sequence[Passage], mark: str) -> str:
    if found:
        return "\n\n".join(fence("document", passage.labelled, mark) for passage in found)
    return fence("result", done.result, mark)


def _failed(call: Call, why: str) -> ToolUse:
    arguments = call["args"] if isinstance(call["args"], dict) else {}
    return ToolUse(name=call["name"] or "", arguments=arguments, result=why, failed=True)


def _fits(box: Toolbox, messages: Sequence[BaseMessage], result: str) -> bool:
    if box.room is None:
        return True
    asked = [call for each in messages if isinstance(each, AIMessage) for call in calls_in(each)]
    texts = [*(each.text for each in messages), *(str(call["args"]) for call in asked), result]
    return estimate_tokens(*texts) <= box.room
