"""The one place a model is called: timeouts, retries, fallbacks, and which answers count."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Generic, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from graph.errors import BadInput, ModelFailed, Paused
from graph.settings import DebateSettings
from graph.state import NO_USAGE, Seat, Usage
from models.failures import BadAnswer, Failure, classify, first_line
from models.prices import priced
from models.providers import ModelSpec, Options, open_model, parse_spec, provider_of
from models.text import clean_reply, split_thinking

_LONGEST_BACKOFF = 30.0
_COMPLETE = {"stop", "end_turn", "stop_sequence", "complete", "eos", "eos_token"}
_TOO_LONG = {"length", "max_tokens", "model_length", "model_context_window_exceeded"}
_FINISH_KEYS = ("finish_reason", "done_reason", "stop_reason", "stopReason")
# What openai's client raises for a schema-bound answer that came, but not whole.
_UNREADABLE = {"LengthFinishReasonError", "ContentFilterFinishReasonError"}
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
class Reply:
    """A complete, non-empty answer."""

    text: str
    thinking: str = ""
    usage: Usage = field(default_factory=Usage)


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


async def ask(
    seat: Seat, messages: list[BaseMessage], settings: DebateSettings, listener: Listener
) -> Answered[Reply]:
    """Stream one speech from the seat's model, or from its fallbacks in order."""

    async def attempt(spec: ModelSpec, failed: Failure | None) -> Reply:
        nudge = [_SHORTER] if failed and failed.kind == "length" else []
        model = open_model(spec, _options(seat, settings))
        return await _stream(model, spec, [*messages, *nudge], settings, listener)

    return await _with_fallbacks(seat, settings, listener, attempt)


async def extract(
    seat: Seat,
    messages: list[BaseMessage],
    schema: type[Block],
    settings: DebateSettings,
    listener: Listener,
) -> Answered[Extracted[Block]]:
    """Ask once, schema-bound, for what a speech decided."""

    async def attempt(spec: ModelSpec, _: Failure | None) -> Extracted[Block]:
        model = open_model(spec, _options(seat, settings, structured=True))
        return await _structured(model, spec, messages, schema, settings)

    return await _with_fallbacks(seat, settings, listener, attempt)


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
    attempt: Callable[[ModelSpec, Failure | None], Awaitable[Result]],
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
    attempt: Callable[[ModelSpec, Failure | None], Awaitable[Result]],
) -> Result | Trouble:
    failure: Failure | None = None
    for tries in count():
        try:
            return await attempt(spec, failure)
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
    model: BaseChatModel,
    spec: ModelSpec,
    messages: list[BaseMessage],
    settings: DebateSettings,
    listener: Listener,
) -> Reply:
    pieces: list[str] = []
    thoughts: list[str] = []
    usage, finish = Usage(), None
    async with aclosing(_chunks(model, messages, settings)) as chunks:
        async for chunk in chunks:
            if piece := chunk.text:
                pieces.append(piece)
                listener.text(piece, str(spec))
            thoughts.append(str(chunk.additional_kwargs.get("reasoning_content") or ""))
            usage = _usage(chunk) or usage
            finish = _finish(chunk) or finish
    return _accepted(
        "".join(pieces), "".join(thoughts), priced(usage, spec, settings.prices), finish, spec
    )


class _Unusable(BadAnswer):
    """An answer that came, and was paid, but may not enter the debate."""

    def __init__(self, kind: str, why: str, usage: Usage) -> None:
        self.usage = usage
        super().__init__(kind, why)


async def _chunks(
    model: BaseChatModel, messages: list[BaseMessage], settings: DebateSettings
) -> AsyncGenerator[AIMessage, None]:
    """The model's chunks under an idle timeout each and a total timeout together."""
    deadline = asyncio.get_running_loop().time() + settings.total_timeout
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


def _accepted(raw: str, reasoning: str, usage: Usage, finish: str | None, spec: ModelSpec) -> Reply:
    """The reply, if it is complete and says something; else BadAnswer."""
    if finish is None and provider_of(spec).reports_finish:
        raise _Unusable("cut", "the stream ended in the middle of the answer", usage)
    if finish in _TOO_LONG:
        raise _Unusable("length", "the answer was cut off at the model's length limit", usage)
    if finish is not None and finish not in _COMPLETE:
        raise _Unusable("refused", f"the provider ended the answer with '{finish}'", usage)
    speech, thinking = split_thinking(raw)
    text = clean_reply(speech)
    if not text:
        raise _Unusable("empty", "the answer was empty", usage)
    return Reply(text, clean_reply("\n".join(filter(None, [reasoning, thinking]))), usage)
