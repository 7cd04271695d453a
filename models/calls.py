"""The one place where a model is called: timeouts, retries, fallbacks, complete answers."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.utils import message_chunk_to_message
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from contend.graph.errors import BadInput, ModelFailed, Paused
from contend.graph.settings import DebateSettings
from contend.graph.values import NO_USAGE, Seat, Usage
from contend.models.failures import BadAnswer, Failure, classify, first_line
from contend.models.limits import limits_of
from contend.models.prices import priced
from contend.models.providers.registry import (
    ModelSpec,
    Options,
    open_model,
    parse_spec,
    provider_of,
)
from contend.models.replies.visible import split_thinking
from contend.models.text import clean_data, clean_reply
from contend.models.tools import calls_in
from contend.models.tracing import scrub_traces

_LONGEST_BACKOFF = 30.0
_COMPLETE = {"stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"}
_CALLS_TOOLS = {"tool_calls", "tool_use", "function_call"}
_TOO_LONG = {"length", "max_tokens", "model_length", "model_context_window_exceeded"}
_FINISH_KEYS = ("finish_reason", "done_reason", "stop_reason", "stopReason")
# Errors of openai's client for an incomplete structured answer.
_UNREADABLE = {"LengthFinishReasonError", "ContentFilterFinishReasonError"}
_ROOM_TO_RUN_OVER = 2
# Enough for any overlong turn; only a model that never stops reaches it.
_ROOM_TO_RUN_ON = 8
_THINKING_ROOM = 8192
_SHORTER = HumanMessage(
    "Your last reply was too long and was cut off. Answer again, complete, in half the length."
)

_DOWN = Failure("unavailable", "its last calls failed; it is tried again later")

# Here, since every graph loads this module before its first run can be traced.
scrub_traces()

Block = TypeVar("Block", bound=BaseModel)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Reply:
    text: str
    thinking: str = ""
    usage: Usage = field(default_factory=Usage)
    message: AIMessage | None = None  # if it calls tools; the next call must include it
    seconds: float = 0.0
    is_cut: bool = False  # the time was up before it ended


@dataclass(frozen=True)
class Trouble:
    """A failed attempt and what was done about it: retried, fell back or failed."""

    what: str
    model: str
    failure: Failure
    usage: Usage = NO_USAGE  # what the failed attempt cost


@dataclass(frozen=True)
class Listener:
    text: Callable[[str, str], None] = lambda _piece, _model: None
    trouble: Callable[[Trouble], None] = lambda _trouble: None
    pause_requested: Callable[[], bool] = lambda: False
    debate: str = ""
    time_is_up: Callable[[], bool] = lambda: False  # the rest of the answer is not wanted


@dataclass(frozen=True)
class Aids:
    """The tools of a call, and what earlier calls of the same turn have used up."""

    tools: tuple[BaseTool, ...] = ()
    spent: bool = False  # whether the tool calls are used up, so that it must answer
    seconds: float = 0.0  # what earlier calls of the turn took; together they have one timeout
    limit: int | None = None


NO_AIDS = Aids()


@dataclass(frozen=True)
class Extracted(Generic[Block]):
    block: Block | None
    usage: Usage


@dataclass(frozen=True)
class Answered(Generic[Result]):
    result: Result
    model: str
    fell_back: bool


# Takes the model, why the previous try failed, and whether this is the last try.
Attempt = Callable[[ModelSpec, Failure | None, bool], Awaitable[Result]]


async def ask_model(
    seat: Seat,
    messages: list[BaseMessage],
    settings: DebateSettings,
    listener: Listener,
    aids: Aids = NO_AIDS,
) -> Answered[Reply]:

    async def attempt(spec: ModelSpec, failed: Failure | None, is_last: bool) -> Reply:
        # A turn over its limit is kept whole: retry with a higher ceiling instead of shortening it.
        cut = failed is not None and failed.kind == "length"
        nudge = [_SHORTER] if cut and aids.limit is None else []
        ceiling = _ceiling(spec, aids.limit, whole=cut or is_last)
        opened = open_model(spec, replace(_options(seat, settings), max_tokens=ceiling))
        must_answer = aids.spent and not provider_of(spec).history_needs_tools
        bound = aids.tools and not must_answer
        model = opened.bind_tools(list(aids.tools)) if bound else opened
        return await _stream(model, spec, [*messages, *nudge], settings, listener, aids)

    return await _with_fallbacks(seat, settings, listener, attempt)


async def extract(
    seat: Seat,
    messages: list[BaseMessage],
    schema: type[Block],
    settings: DebateSettings,
    listener: Listener,
) -> Answered[Extracted[Block]]:

    async def attempt(spec: ModelSpec, *_: object) -> Extracted[Block]:
        method = provider_of(spec).structured_method
        how: dict[str, Any] = {"method": method} if method else {}
        model = open_model(spec, _options(seat, settings, structured=True))
        bound = model.with_structured_output(schema, include_raw=True, **how)
        try:
            async with asyncio.timeout(settings.total_timeout):
                answer = await bound.ainvoke(messages)
        except TimeoutError as error:
            raise _timed_out(settings, 0) from error
        except Exception as error:
            if isinstance(error, ValueError) or type(error).__name__ in _UNREADABLE:
                return Extracted(None, priced(_usage_of_error(error), spec, settings.prices))
            raise
        raw, parsed = answer["raw"], answer["parsed"]  # type: ignore[index]
        # ChatOllama repairs truncated JSON, inventing what is missing.
        usable = isinstance(parsed, schema) and _finish_reason(raw) in (None, *_COMPLETE)
        usage = priced(_usage_of(raw) or Usage(), spec, settings.prices)
        return Extracted(parsed if usable else None, usage)

    return await _with_fallbacks(seat, settings, listener, attempt)


def _ceiling(spec: ModelSpec, limit: int | None, *, whole: bool) -> int | None:
    if limit is None:
        return None
    thinking = _THINKING_ROOM if provider_of(spec).thinks(spec.name) else 0
    return (_ROOM_TO_RUN_ON if whole else _ROOM_TO_RUN_OVER) * limit + thinking


def _options(seat: Seat, settings: DebateSettings, *, structured: bool = False) -> Options:
    return Options(
        temperature=0.0 if structured else seat.temperature,
        connect_timeout=settings.connect_timeout,
        total_timeout=settings.total_timeout,
        context_tokens=settings.context_tokens,
        structured=structured,
    )


async def _with_fallbacks(
    seat: Seat, settings: DebateSettings, listener: Listener, attempt: Attempt[Result]
) -> Answered[Result]:
    specs = [parse_spec(text) for text in (seat.model, *seat.fallback_models)]
    for spec in specs:
        if spec is not specs[-1] and not limits_of(spec).may_ask():
            listener.trouble(Trouble("fell_back", str(spec), _DOWN))
            continue
        outcome = await _with_retries(spec, settings, listener, attempt)
        if not isinstance(outcome, Trouble):
            return Answered(outcome, str(spec), fell_back=spec is not specs[0])
        if spec is specs[-1]:
            listener.trouble(outcome)
            raise ModelFailed(seat.name, str(spec), outcome.failure.kind, outcome.failure.why)
        listener.trouble(replace(outcome, what="fell_back"))
        if listener.pause_requested():
            raise Paused
    raise AssertionError  # every seat has a model


async def _with_retries(
    spec: ModelSpec, settings: DebateSettings, listener: Listener, attempt: Attempt[Result]
) -> Result | Trouble:
    limits, waited = limits_of(spec), 0.0
    failure: Failure | None = None
    tries = waits = 0
    while True:
        most = settings.max_parallel_calls
        async with limits.slot(listener.debate, most, listener.pause_requested):
            try:
                result = await attempt(spec, failure, tries == settings.max_retries)
            except BadInput:
                raise
            except Exception as error:  # noqa: BLE001 - any exception is a failure of the provider
                failure, usage = _failure_of(error)
                limits.failed(failure.kind)
                if failure.kind == "rate_limit":
                    limits.refused(failure.retry_after)
            else:
                limits.answered()
                return result
        trouble = Trouble("retried", str(spec), failure, priced(usage, spec, settings.prices))
        if failure.kind == "rate_limit" and settings.rate_limit_patience:
            # A limit that is waited out is no problem of the debate: nothing is reported.
            wait = _backoff(waits, failure, settings)
            waits, waited = waits + 1, waited + wait
            if waited > settings.rate_limit_patience:
                return replace(trouble, what="failed")
        elif not failure.retryable or tries == settings.max_retries:
            return replace(trouble, what="failed")
        else:
            listener.trouble(trouble)
            wait = _backoff(tries, failure, settings)
            tries += 1
        await _pause_before_retry(wait, listener)


def _failure_of(error: Exception) -> tuple[Failure, Usage]:
    unexpected = f"{type(error).__name__}: {first_line(error)}"
    failure = classify(error) or Failure("unexpected", unexpected)
    # A rejected call costs nothing; the cost of one that was cut off is unknown.
    spent = Usage() if failure.kind in ("idle", "total") else NO_USAGE
    return failure, (error.usage if isinstance(error, BadAnswer) else None) or spent


def _backoff(tries: int, failure: Failure, settings: DebateSettings) -> float:
    """Wait with full jitter, or as long as Retry-After says plus a little jitter."""
    jitter = random.uniform(0, min(_LONGEST_BACKOFF, settings.retry_wait * 2 ** min(tries, 10)))  # noqa: S311
    return jitter if failure.retry_after is None else failure.retry_after + min(jitter, 1.0)


async def _pause_before_retry(seconds: float, listener: Listener) -> None:
    """Sleep in short steps, so that a pause request is noticed before another attempt."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        if listener.pause_requested():
            raise Paused
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            return
        await asyncio.sleep(min(left, 0.1))


async def _stream(
    model: Runnable[Any, AIMessage],
    spec: ModelSpec,
    messages: list[BaseMessage],
    settings: DebateSettings,
    listener: Listener,
    aids: Aids,
) -> Reply:
    began = asyncio.get_running_loop().time()
    pieces: list[str] = []
    thoughts: list[str] = []
    parts: list[AIMessage] = []
    usage, finish, is_cut = Usage(), None, False
    async with aclosing(_chunks(model, messages, settings, aids.seconds)) as chunks:
        async for chunk in chunks:
            if piece := chunk.text:
                pieces.append(piece)
                listener.text(piece, str(spec))
            if aids.tools and not aids.spent:
                parts.append(chunk)
            thoughts.append(str(chunk.additional_kwargs.get("reasoning_content") or ""))
            usage = _usage_of(chunk) or usage
            finish = _finish_reason(chunk) or finish
            if is_cut := listener.time_is_up():
                break
    calling, cost = _join_tool_calls(parts), priced(usage, spec, settings.prices)
    finish = "stop" if is_cut else finish
    reply = _accept_answer("".join(pieces), "".join(thoughts), finish, calling, cost, spec)
    return replace(reply, seconds=asyncio.get_running_loop().time() - began, is_cut=is_cut)


async def _chunks(
    model: Runnable[Any, AIMessage],
    messages: list[BaseMessage],
    settings: DebateSettings,
    used: float,
) -> AsyncGenerator[AIMessage, None]:
    deadline = asyncio.get_running_loop().time() + settings.total_timeout - used
    async with aclosing(cast("AsyncGenerator[AIMessage, None]", model.astream(messages))) as stream:
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(min(settings.idle_timeout, left)):
                    chunk = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise _timed_out(settings, left) from error
            yield chunk


def _timed_out(settings: DebateSettings, left: float) -> BadAnswer:
    if left <= settings.idle_timeout:
        return BadAnswer("total", f"no complete answer within {settings.total_timeout:g} s")
    return BadAnswer("idle", f"no token for {settings.idle_timeout:g} s")


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
        call["id"] = call["id"] or f"call_{number}"  # some servers send none
    return message


def _usage_of(message: AIMessage) -> Usage | None:
    counted = message.usage_metadata
    if not counted:
        return None
    return Usage(input_tokens=counted["input_tokens"], output_tokens=counted["output_tokens"])


def _usage_of_error(error: Exception) -> Usage:
    """Return the usage that openai's client attaches to its error."""
    counted = getattr(getattr(error, "completion", None), "usage", None)
    if counted is None:
        return Usage()
    return Usage(input_tokens=counted.prompt_tokens, output_tokens=counted.completion_tokens)


def _finish_reason(message: AIMessage) -> str | None:
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
    if finish is not None and finish not in _COMPLETE | _CALLS_TOOLS:
        raise BadAnswer("refused", f"the provider ended the answer with '{finish}'", usage)
    speech, thinking = split_thinking(text)
    cleaned = clean_reply(speech)
    if not cleaned and not calling:
        raise BadAnswer("empty", "the answer was empty", usage)
    thoughts = clean_reply("\n".join(filter(None, [reasoning, thinking])))
    return Reply(cleaned, thoughts, usage, calling)
