"""The one place a model is called: timeouts, retries, fallbacks, and which answers count."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Generic, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    message_chunk_to_message,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from contend.graph.errors import BadInput, ModelFailed, Paused
from contend.graph.settings import DebateSettings
from contend.graph.values import NO_USAGE, Seat, Usage
from contend.models.failures import BadAnswer, Failure, classify, first_line
from contend.models.prices import priced
from contend.models.providers.registry import (
    ModelSpec,
    Options,
    open_model,
    parse_spec,
    provider_of,
)
from contend.models.text import clean_data, clean_reply, split_thinking
from contend.models.tools import calls_in

_LONGEST_BACKOFF = 30.0
_COMPLETE = {"stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"}
_CALLS_TOOLS = {"tool_calls", "tool_use", "function_call"}
_TOO_LONG = {"length", "max_tokens", "model_length", "model_context_window_exceeded"}
_FINISH_KEYS = ("finish_reason", "done_reason", "stop_reason", "stopReason")
# What openai's client raises for a schema-bound answer that came, but not whole.
_UNREADABLE = {"LengthFinishReasonError", "ContentFilterFinishReasonError"}
_ROOM_TO_RUN_OVER = 2
# Enough to keep any overlong speech whole; only a model that never ends runs into it.
_ROOM_TO_RUN_ON = 8
_THINKING_ROOM = 8192
_SHORTER = HumanMessage(
    "Your last reply was too long and was cut off. Answer again, complete, in half the length."
)

Block = TypeVar("Block", bound=BaseModel)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Trouble:
    """An attempt that failed, and what the policy did about it."""

    what: str
    model: str
    failure: Failure
    usage: Usage = NO_USAGE
    """What the failed attempt cost."""


@dataclass(frozen=True)
class Listener:
    """How a call reports while it runs, and how it learns that a pause was asked for."""

    text: Callable[[str, str], None] = lambda _piece, _model: None
    trouble: Callable[[Trouble], None] = lambda _trouble: None
    pause_requested: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Aids:
    """What a call of a longer speech comes with: tools, and what earlier calls of it used up."""

    tools: tuple[BaseTool, ...] = ()
    spent: bool = False
    """Whether it has used its tools up, and must answer."""
    seconds: float = 0.0
    """The time that earlier calls of the same speech took: all have the time of one."""
    limit: int | None = None
    """The most tokens the speech may have."""


NO_AIDS = Aids()


@dataclass(frozen=True)
class Reply:
    """A complete answer: it says something, or asks tools for something."""

    text: str
    thinking: str = ""
    usage: Usage = field(default_factory=Usage)
    message: AIMessage | None = None
    """The whole message, if it calls tools; it is part of what they are answered with."""
    seconds: float = 0.0


@dataclass(frozen=True)
class Extracted(Generic[Block]):
    """What a structured-output call gave; None when it could not be read."""

    block: Block | None
    usage: Usage


@dataclass(frozen=True)
class Answered(Generic[Result]):
    """A result and the model that gave it."""

    result: Result
    model: str
    fell_back: bool


@dataclass(frozen=True)
class _Try:
    """One of the tries at a call."""

    spec: ModelSpec
    failed: Failure | None
    """Why the try before it did not count."""
    is_last: bool


async def ask(
    seat: Seat,
    messages: list[BaseMessage],
    settings: DebateSettings,
    listener: Listener,
    aids: Aids = NO_AIDS,
) -> Answered[Reply]:
    """Stream one reply from the seat's model, or from its fallbacks in order.

    A speech beyond its limit is better whole than cut: one that runs into the ceiling set on the
    call is asked for again under a far higher one. It is not asked to be shorter: who overruns the
    limit answers for that.
    """

    async def attempt(this: _Try) -> Reply:
        cut = this.failed is not None and this.failed.kind == "length"
        nudge = [_SHORTER] if cut and aids.limit is None else []
        ceiling = _ceiling(this.spec, aids.limit, whole=cut or this.is_last)
        opened = open_model(this.spec, replace(_options(seat, settings), max_tokens=ceiling))
        model = _bound(opened, this.spec, aids)
        return await _stream(model, this.spec, [*messages, *nudge], settings, listener, aids)

    return await _with_fallbacks(seat, settings, listener, attempt)


def _bound(model: BaseChatModel, spec: ModelSpec, aids: Aids) -> Runnable[Any, AIMessage]:
    """The model with its tools; one that must answer is offered none, where that is possible."""
    if not aids.tools or (aids.spent and not provider_of(spec).history_needs_tools):
        return model
    return model.bind_tools(list(aids.tools))


async def extract(
    seat: Seat,
    messages: list[BaseMessage],
    schema: type[Block],
    settings: DebateSettings,
    listener: Listener,
) -> Answered[Extracted[Block]]:
    """Ask once, schema-bound, for what a speech decided."""

    async def attempt(this: _Try) -> Extracted[Block]:
        model = open_model(this.spec, _options(seat, settings, structured=True))
        return await _structured(model, this.spec, messages, schema, settings)

    return await _with_fallbacks(seat, settings, listener, attempt)


def _ceiling(spec: ModelSpec, limit: int | None, *, whole: bool) -> int | None:
    """The most tokens the provider may let through: room to run over, and to think before."""
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
    seat: Seat,
    settings: DebateSettings,
    listener: Listener,
    attempt: Callable[[_Try], Awaitable[Result]],
) -> Answered[Result]:
    specs = [parse_spec(text) for text in (seat.model, *seat.fallback_models)]
    for spec in specs[:-1]:
        outcome = await _with_retries(spec, settings, listener, attempt)
        if not isinstance(outcome, Trouble):
            return Answered(outcome, str(spec), fell_back=spec is not specs[0])
        listener.trouble(replace(outcome, what="fell_back"))
        if listener.pause_requested():
            raise Paused
    last = await _with_retries(specs[-1], settings, listener, attempt)
    if not isinstance(last, Trouble):
        return Answered(last, str(specs[-1]), fell_back=len(specs) > 1)
    listener.trouble(last)
    raise ModelFailed(seat.name, str(specs[-1]), last.failure.kind, last.failure.why)


async def _with_retries(
    spec: ModelSpec,
    settings: DebateSettings,
    listener: Listener,
    attempt: Callable[[_Try], Awaitable[Result]],
) -> Result | Trouble:
    failure: Failure | None = None
    for tries in count():
        try:
            return await attempt(_Try(spec, failure, tries == settings.max_retries))
        except BadInput:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a provider raises is its failure
            failure = classify(error) or _unexpected(error)
            spent = priced(_spent(error, failure), spec, settings.prices)
        trouble = Trouble("retried", str(spec), failure, spent)
        if not failure.retryable or tries == settings.max_retries:
            return replace(trouble, what="failed")
        listener.trouble(trouble)
        await _pause_before_retry(_backoff(tries, failure, settings), listener)
    raise AssertionError  # count() never ends


def _unexpected(error: Exception) -> Failure:
    """Scrubbed, because what an exception says is stored with the checkpoint."""
    return Failure("unexpected", f"{type(error).__name__}: {first_line(error)}")


def _spent(error: Exception, failure: Failure) -> Usage:
    """A refused call costs nothing; what an answer cost that broke off, nobody said."""
    if isinstance(error, _Unusable):
        return error.usage
    return Usage() if failure.kind in ("idle", "total") else NO_USAGE


def _backoff(tries: int, failure: Failure, settings: DebateSettings) -> float:
    """Full jitter; a provider's own Retry-After is kept to, with a little jitter behind it."""
    jitter = random.uniform(0, min(_LONGEST_BACKOFF, settings.retry_wait * 2**tries))  # noqa: S311
    if failure.retry_after is None:
        return jitter
    return failure.retry_after + min(jitter, 1.0)


async def _pause_before_retry(seconds: float, listener: Listener) -> None:
    """Sleep in short steps: a pause asked for now must not wait for, or pay, another attempt."""
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
    usage, finish = Usage(), None
    async with aclosing(_chunks(model, messages, settings, aids.seconds)) as chunks:
        async for chunk in chunks:
            if piece := chunk.text:
                pieces.append(piece)
                listener.text(piece, str(spec))
            if aids.tools and not aids.spent:
                parts.append(chunk)
            thoughts.append(str(chunk.additional_kwargs.get("reasoning_content") or ""))
            usage = _usage(chunk) or usage
            finish = _finish(chunk) or finish
    said = _Said("".join(pieces), "".join(thoughts), finish, _calling(parts))
    reply = _accepted(said, priced(usage, spec, settings.prices), spec)
    return replace(reply, seconds=asyncio.get_running_loop().time() - began)


@dataclass(frozen=True)
class _Said:
    text: str
    reasoning: str
    finish: str | None
    calling: AIMessage | None


def _calling(parts: list[AIMessage]) -> AIMessage | None:
    """The whole message, fit to be kept and sent back; None when it calls no tools."""
    if not parts:
        return None
    whole = parts[0]
    if isinstance(whole, AIMessageChunk):
        whole = add_ai_message_chunks(whole, *cast("list[AIMessageChunk]", parts[1:]))
    if not calls_in(whole):
        return None
    message = AIMessage.model_validate(clean_data(message_chunk_to_message(whole).model_dump()))
    for number, call in enumerate(calls_in(message), 1):
        call["id"] = call["id"] or f"call_{number}"  # some servers give none, and none is refused
    return message


class _Unusable(BadAnswer):
    """An answer that came, and was paid, but may not enter the debate."""

    def __init__(self, kind: str, why: str, usage: Usage) -> None:
        self.usage = usage
        super().__init__(kind, why)


async def _chunks(
    model: Runnable[Any, AIMessage],
    messages: list[BaseMessage],
    settings: DebateSettings,
    used: float,
) -> AsyncGenerator[AIMessage, None]:
    """The model's chunks under an idle timeout each and a total timeout together."""
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


async def _structured(
    model: BaseChatModel,
    spec: ModelSpec,
    messages: list[BaseMessage],
    schema: type[Block],
    settings: DebateSettings,
) -> Extracted[Block]:
    method = provider_of(spec).structured_method
    how: dict[str, Any] = {"method": method} if method else {}
    bound = model.with_structured_output(schema, include_raw=True, **how)
    try:
        async with asyncio.timeout(settings.total_timeout):
            answer = await bound.ainvoke(messages)
    except TimeoutError as error:
        raise _timed_out(settings, 0) from error
    except Exception as error:
        if isinstance(error, ValueError) or type(error).__name__ in _UNREADABLE:
            return Extracted(None, priced(_usage_of_unread(error), spec, settings.prices))
        raise
    raw, parsed = answer["raw"], answer["parsed"]  # type: ignore[index]
    if _finish(raw) not in (None, *_COMPLETE):
        parsed = None  # ChatOllama repairs JSON that was cut; what is missing was never said
    usage = priced(_usage(raw) or Usage(), spec, settings.prices)
    return Extracted(parsed if isinstance(parsed, schema) else None, usage)


def _usage(message: AIMessage) -> Usage | None:
    counted = message.usage_metadata
    if not counted:
        return None
    return Usage(input_tokens=counted["input_tokens"], output_tokens=counted["output_tokens"])


def _usage_of_unread(error: Exception) -> Usage:
    """What an answer cost that came, but not whole; openai's client hands it over in its error."""
    counted = getattr(getattr(error, "completion", None), "usage", None)
    if counted is None:
        return Usage()
    return Usage(input_tokens=counted.prompt_tokens, output_tokens=counted.completion_tokens)


def _finish(message: AIMessage) -> str | None:
    for key in _FINISH_KEYS:
        if reason := message.response_metadata.get(key):
            return str(reason).lower()
    return None


def _accepted(said: _Said, usage: Usage, spec: ModelSpec) -> Reply:
    """The reply, if it is complete and says or asks for something; else BadAnswer."""
    finish, calling = said.finish, said.calling
    if finish is None and provider_of(spec).reports_finish:
        raise _Unusable("cut", "the stream ended in the middle of the answer", usage)
    if finish in _TOO_LONG:
        raise _Unusable("length", "the answer was cut off at the model's length limit", usage)
    if finish in _CALLS_TOOLS and not calling:
        raise _Unusable("empty", "it called for a tool instead of answering", usage)
    if finish is not None and finish not in _COMPLETE | _CALLS_TOOLS:
        raise _Unusable("refused", f"the provider ended the answer with '{finish}'", usage)
    speech, thinking = split_thinking(said.text)
    text = clean_reply(speech)
    if not text and not calling:
        raise _Unusable("empty", "the answer was empty", usage)
    thoughts = clean_reply("\n".join(filter(None, [said.reasoning, thinking])))
    return Reply(text, thoughts, usage, calling)
