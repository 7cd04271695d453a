import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.runnables import Runnable

from contend.graph.settings import DebateSettings
from contend.graph.values import Usage
from contend.models.failures import BadAnswer
from contend.models.prices import priced
from contend.models.providers.registry import ModelSpec, provider_of
from contend.models.providers.response_hooks import watching_bytes
from contend.models.replies.visible import split_thinking
from contend.models.text import clean_data, clean_reply
from contend.models.tools import calls_in

COMPLETE = frozenset({"stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"})
_CALLS_TOOLS = {"tool_calls", "tool_use", "function_call"}
_TOO_LONG = {"length", "max_tokens", "model_length", "model_context_window_exceeded"}
# In seconds; resetting a timer for each of thousands of tokens costs time.
_LEAST_EXTENSION = 0.05
_FINISH_KEYS = ("finish_reason", "done_reason", "stop_reason", "stopReason")


@dataclass(frozen=True)
class Reply:
    text: str
    thinking: str = ""
    usage: Usage = field(default_factory=Usage)
    message: AIMessage | None = None  # set if it calls tools; the next call must include it
    seconds: float = 0.0
    is_cut: bool = False  # a time limit ended the answer early


async def stream_answer(  # noqa: PLR0913 - the call and its limits
    model: Runnable[Any, AIMessage],
    spec: ModelSpec,
    messages: list[BaseMessage],
    settings: DebateSettings,
    on_text: Callable[[str], None],
    *,
    may_call_tools: bool,
    seconds_used: float,
    time_is_up: Callable[[], bool],
) -> Reply:
    """Stream one answer, or raise BadAnswer if it is late, truncated or empty."""
    began = asyncio.get_running_loop().time()
    pieces: list[str] = []
    thoughts: list[str] = []
    parts: list[AIMessage] = []
    usage, cache_writes, finish, is_cut = Usage(), 0, None, False
    limits = _TimeLimits.of(settings, spec, seconds_used)
    async with aclosing(_chunks(model, messages, limits)) as chunks:
        async for chunk in chunks:
            if piece := chunk.text:
                pieces.append(piece)
                on_text(piece)
            if may_call_tools:
                parts.append(chunk)
            if chunk.additional_kwargs:
                thoughts.append(str(chunk.additional_kwargs.get("reasoning_content") or ""))
            if counted := usage_of(chunk):
                usage, cache_writes = counted, cache_writes + _cache_writes(chunk)
            if chunk.response_metadata:
                finish = finish_reason(chunk) or finish
            if is_cut := time_is_up():
                break
    finish = "stop" if is_cut else finish
    calling, cost = _join_tool_calls(parts), priced(usage, spec, settings.prices, cache_writes)
    reply = _accept_answer("".join(pieces), "".join(thoughts), finish, calling, cost, spec)
    return replace(reply, seconds=asyncio.get_running_loop().time() - began, is_cut=is_cut)


@dataclass
class _TimeLimits:
    first_token: float | None
    idle: float  # after the first token
    total: float
    end: float  # in event loop time
    has_begun: bool = False

    @classmethod
    def of(cls, settings: DebateSettings, spec: ModelSpec, used: float) -> "_TimeLimits":
        waits = provider_of(spec).has_first_token_limit
        end = asyncio.get_running_loop().time() + settings.total_timeout - used
        first = settings.first_token_timeout if waits else None
        return cls(first, settings.idle_timeout, settings.total_timeout, end)

    def next_deadline(self) -> float:
        silence = self.idle if self.has_begun else self.first_token
        if silence is None:
            return self.end
        return min(self.end, asyncio.get_running_loop().time() + silence)

    def extend(self, timer: asyncio.Timeout) -> None:
        until, deadline = timer.when(), self.next_deadline()
        if until is None or abs(deadline - until) >= _LEAST_EXTENSION:
            timer.reschedule(deadline)

    def failure(self) -> BadAnswer:
        if asyncio.get_running_loop().time() >= self.end:
            why = f"no complete answer within {self.total:g} s (setting total_timeout)"
            return BadAnswer("total", why)
        if self.has_begun:
            return BadAnswer("idle", f"no token for {self.idle:g} s (setting idle_timeout)")
        why = (
            f"no first token within {self.first_token:g} s; if the model needs longer, "
            "raise the setting first_token_timeout"
        )
        return BadAnswer("first_token", why)


async def _chunks(
    model: Runnable[Any, AIMessage], messages: list[BaseMessage], limits: _TimeLimits
) -> AsyncGenerator[AIMessage, None]:
    stream = cast("AsyncGenerator[AIMessage, None]", model.astream(messages))
    # One timer for all chunks, because thousands of timers take time.
    try:
        async with asyncio.timeout_at(limits.next_deadline()) as timer, aclosing(stream):

            def on_bytes() -> None:
                # Keep-alives count as activity, but not as a first token.
                if limits.has_begun:
                    limits.extend(timer)

            with watching_bytes(on_bytes):
                async for chunk in stream:
                    limits.has_begun = limits.has_begun or _has_token(chunk)
                    yield chunk
                    limits.extend(timer)
    except TimeoutError as error:
        raise limits.failure() from error


def _has_token(chunk: AIMessage) -> bool:
    reasoning = chunk.additional_kwargs.get("reasoning_content")
    return bool(chunk.content or reasoning or getattr(chunk, "tool_call_chunks", None))


def _join_tool_calls(parts: list[AIMessage]) -> AIMessage | None:
    if not parts:
        return None
    whole = parts[0]
    if isinstance(whole, AIMessageChunk):
        whole = add_ai_message_chunks(whole, *cast("list[AIMessageChunk]", parts[1:]))
    if not calls_in(whole):
        return None
    message = AIMessage.model_validate(clean_data(message_chunk_to_message(whole).model_dump()))
    for number, call in enumerate(calls_in(message), 1):
        call["id"] = call["id"] or f"call_{number}"  # some servers send no id
    return message


def usage_of(message: AIMessage) -> Usage | None:
    counted = message.usage_metadata
    if not counted:
        return None
    return Usage(
        input_tokens=counted["input_tokens"],
        output_tokens=counted["output_tokens"],
        cached_tokens=(counted.get("input_token_details") or {}).get("cache_read"),
    )


def _cache_writes(message: AIMessage) -> int:
    counted = message.usage_metadata
    details: Mapping[str, Any] = (counted and counted.get("input_token_details")) or {}
    # Some providers report them by lifetime.
    by_lifetime = sum(details[name] or 0 for name in details if name.startswith("ephemeral"))
    return max(details.get("cache_creation") or 0, by_lifetime)


def finish_reason(message: AIMessage) -> str | None:
    reasons = (message.response_metadata.get(key) for key in _FINISH_KEYS)
    return next((str(reason).lower() for reason in reasons if reason), None)


def _accept_answer(
    text: str,
    reasoning: str,
    finish: str | None,
    calling: AIMessage | None,
    usage: Usage,
    spec: ModelSpec,
) -> Reply:
    if finish is None and provider_of(spec).reports_finish:
        raise BadAnswer("cut", "the stream ended in the middle of the answer", usage)
    if finish in _TOO_LONG:
        raise BadAnswer("length", "the answer was cut off at the model's length limit", usage)
    if finish in _CALLS_TOOLS and not calling:
        raise BadAnswer("empty", "it called for a tool instead of answering", usage)
    if finish is not None and finish not in COMPLETE | _CALLS_TOOLS:
        raise BadAnswer("refused", f"the provider ended the answer with '{finish}'", usage)
    speech, thinking = split_thinking(text)
    cleaned = clean_reply(speech)
    if not cleaned and not calling:
        raise BadAnswer("empty", "the answer was empty", usage)
    thoughts = clean_reply("\n".join(filter(None, [reasoning, thinking])))
    return Reply(cleaned, thoughts, usage, calling)
