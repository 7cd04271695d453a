"""Makes the model calls of one turn: a single call, or several with tool calls in between."""

from dataclasses import dataclass, field, replace
from typing import Literal, NotRequired

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from typing_extensions import TypedDict

from contend.graph.errors import ModelFailed, Paused
from contend.graph.settings import DebateSettings
from contend.graph.values import NO_USAGE, Degradation, Usage
from contend.models.calls import CallTools, ask_model
from contend.models.replies.control import without_block
from contend.models.tools import Call, calls_in
from contend.nodes.calls.stream import TurnStream, report_problem
from contend.nodes.calls.tasks import stored_task
from contend.nodes.calls.tools import Toolbox, ToolResult, shown_result, use_once
from contend.prompts import load


class CallResult(TypedDict):
    text: str
    thinking: str
    message: AIMessage | None  # the message with the tool calls to answer, if any
    model: str
    fell_back: bool
    usage: Usage
    seconds: float
    is_cut: NotRequired[bool]  # missing in data from earlier releases
    degraded: list[Degradation]


async def call_model(
    stream: TurnStream, messages: list[BaseMessage], policy: DebateSettings, call_tools: CallTools
) -> CallResult:
    try:
        answered = await ask_model(stream.seat, messages, policy, stream.listener(), call_tools)
    except ModelFailed as failed:
        failed.degraded, failed.spent = stream.degraded, stream.spent
        raise
    stream.flush()
    reply = answered.result
    return {
        "text": reply.text,
        "thinking": reply.thinking,
        "message": reply.message,
        "model": answered.model,
        "fell_back": answered.fell_back,
        "usage": reply.usage + stream.spent,
        "seconds": reply.seconds,
        "is_cut": reply.is_cut,
        "degraded": list(stream.degraded),
    }


# A turn with tools makes several calls. Each is a task, even inside the task for the whole turn, so
# that finished calls are not repeated if a later one is interrupted.
call_once = stored_task("call", call_model)


@dataclass
class ToolLoop:
    stream: TurnStream  # copied for each call
    messages: list[BaseMessage]
    policy: DebateSettings
    box: Toolbox
    limit: int | None = None  # tokens
    called: list[CallResult] = field(default_factory=list)
    used: list[ToolResult] = field(default_factory=list)
    _left_out: int = 0
    _notes: list[Degradation] = field(default_factory=list)

    async def run(self) -> CallResult:
        call = call_once if self.box.tools else call_model
        stream = self.stream
        while True:
            stream = self._next_stream(stream.tokens)
            call_tools = CallTools(self.box.tools, self._spent, self._seconds, self.limit)
            called = await call(stream, list(self.messages), self.policy, call_tools)
            stream.send_if_silent(called["text"], called["model"])
            self.called.append(called)
            if not called["message"]:
                self._report_left_out()
                return called
            await self._answer(called["message"])
            self._check_time()
            if stream.pause_requested:
                raise Paused

    def _next_stream(self, tokens: int) -> TurnStream:
        shown = without_block(self.text, self.stream.hidden_mark)
        return replace(self.stream, before=shown, tokens_before=tokens, degraded=[])

    @property
    def text(self) -> str:
        return "\n\n".join(each["text"] for each in self.called if each["text"])

    @property
    def thinking(self) -> str:
        return "\n\n".join(each["thinking"] for each in self.called if each["thinking"])

    @property
    def usage(self) -> Usage:
        return sum((each["usage"] for each in self.called), NO_USAGE)

    @property
    def found(self) -> list[str]:
        return [label for used in self.used for label in used["passages"]]

    @property
    def degraded(self) -> list[Degradation]:
        return [entry for each in self.called for entry in each["degraded"]] + self._notes

    @property
    def _seconds(self) -> float:
        called = sum(each["seconds"] for each in self.called)
        return called + sum(used["seconds"] for used in self.used)

    @property
    def _spent(self) -> bool:
        return len(self.used) >= self.box.most

    async def _answer(self, message: AIMessage) -> None:
        self.messages = [*self.messages, message]
        spent = load("shared/tools.spent")
        for each in calls_in(message):
            text, failed = spent, True
            if self._spent:
                self._left_out += 1
            else:
                left = self.policy.total_timeout - self._seconds
                used = await use_once(self.box, each, self.messages, left)
                self.used.append(used)
                text, failed = shown_result(used), used["use"].failed
                # Append it to the last result, because every provider accepts it there.
                text += f"\n\n{spent}" if self._spent else ""
            self.messages = [*self.messages, _result(each, text, failed=failed)]

    def _report_left_out(self) -> None:
        if not self._left_out:
            return
        why = f"{self._left_out} more calls were requested than the {self.box.most} a turn may have"
        stream = self.stream
        self._notes.append(
            report_problem(stream.runtime, stream.seat, stream.round_number, "tools_spent", why)
        )

    def _check_time(self) -> None:
        if self._seconds < self.policy.total_timeout:
            return
        seat, last = self.stream.seat, self.called[-1]
        why = f"no complete answer within {self.policy.total_timeout:g} s, tools included"
        raise ModelFailed(seat.name, last["model"], "total", why)


def _result(call: Call, text: str, *, failed: bool) -> ToolMessage:
    status: Literal["success", "error"] = "error" if failed else "success"
    return ToolMessage(text, tool_call_id=call["id"] or "", name=call["name"], status=status)
