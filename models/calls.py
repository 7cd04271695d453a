"""The one place where a model is called: timeouts, retries, fallbacks, complete answers."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from contend.graph.errors import BadInput, ModelFailed, Paused
from contend.graph.settings import DebateSettings
from contend.graph.values import NO_USAGE, Seat, Usage
from contend.models.answers import COMPLETE, Reply, finish_reason, stream_answer, usage_of
from contend.models.failures import BadAnswer, Failure, classify, first_line
from contend.models.limits import Allowance, limits_of
from contend.models.prices import priced
from contend.models.providers.registry import (
    ModelSpec,
    Options,
    open_model,
    parse_spec,
    provider_of,
)
from contend.models.providers.watch import watching_headers
from contend.models.tokens import estimate_tokens
from contend.models.tracing import scrub_traces

_LONGEST_BACKOFF = 30.0
# Errors of openai's client for an incomplete structured answer.
_UNREADABLE = {"LengthFinishReasonError", "ContentFilterFinishReasonError"}
_ROOM_TO_RUN_OVER = 2
# Enough for any overlong turn; only a model that never stops reaches it.
_ROOM_TO_RUN_ON = 8
_THINKING_ROOM = 8192
# Tokens of a turn whose protocol sets no limit.
_LONGEST_TURN = 4096
_SHORTER = HumanMessage(
    "Your last reply was too long and was cut off. Answer again, complete, in half the length."
)

_DOWN = Failure("unavailable", "its last calls failed; it is tried again later")

# Here, since every graph loads this module before its first run can be traced.
scrub_traces()


class _WithUsage(Protocol):
    @property
    def usage(self) -> Usage: ...


Block = TypeVar("Block", bound=BaseModel)
Result = TypeVar("Result", bound=_WithUsage)


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
        opened = open_model(spec, _options(seat, settings, ceiling))
        must_answer = aids.spent and not provider_of(spec).history_needs_tools
        bound = aids.tools and not must_answer
        model = opened.bind_tools(list(aids.tools)) if bound else opened
        return await stream_answer(
            model,
            spec,
            [*messages, *nudge],
            settings,
            lambda piece: listener.text(piece, str(spec)),
            may_call_tools=bool(aids.tools) and not aids.spent,
            seconds_used=aids.seconds,
            time_is_up=listener.time_is_up,
        )

    return await _with_fallbacks(seat, messages, settings, listener, attempt)


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
        ceiling = _ceiling(spec, None, whole=False)
        model = open_model(spec, _options(seat, settings, ceiling, structured=True))
        bound = model.with_structured_output(schema, include_raw=True, **how)
        try:
            async with asyncio.timeout(settings.total_timeout):
                answer = await bound.ainvoke(messages)
        except TimeoutError as error:
            why = f"no complete answer within {settings.total_timeout:g} s (setting total_timeout)"
            raise BadAnswer("total", why) from error
        except Exception as error:
            if isinstance(error, ValueError) or type(error).__name__ in _UNREADABLE:
                return Extracted(None, priced(_usage_of_error(error), spec, settings.prices))
            raise
        raw, parsed = answer["raw"], answer["parsed"]  # type: ignore[index]
        # ChatOllama repairs truncated JSON, inventing what is missing.
        usable = isinstance(parsed, schema) and finish_reason(raw) in (None, *COMPLETE)
        usage = priced(usage_of(raw) or Usage(), spec, settings.prices)
        return Extracted(parsed if usable else None, usage)

    return await _with_fallbacks(seat, messages, settings, listener, attempt)


def _ceiling(spec: ModelSpec, limit: int | None, *, whole: bool) -> int | None:
    """Return the max_tokens of a call, which also stops a model that never ends."""
    if spec.name in limits_of(spec).without_max_tokens:
        return None
    thinks = provider_of(spec).thinks(spec.name)
    may_think = thinks or (limit is None and thinks is None)
    room = _ROOM_TO_RUN_ON if whole else _ROOM_TO_RUN_OVER
    return room * (limit or _LONGEST_TURN) + (_THINKING_ROOM if may_think else 0)


def _options(
    seat: Seat, settings: DebateSettings, ceiling: int | None, *, structured: bool = False
) -> Options:
    return Options(
        temperature=0.0 if structured else seat.temperature,
        connect_timeout=settings.connect_timeout,
        total_timeout=settings.total_timeout,
        context_tokens=settings.context_tokens,
        structured=structured,
        max_tokens=ceiling,
    )


async def _with_fallbacks(
    seat: Seat,
    messages: list[BaseMessage],
    settings: DebateSettings,
    listener: Listener,
    attempt: Attempt[Result],
) -> Answered[Result]:
    allowance = Allowance.of(settings, estimate_tokens(*(each.text for each in messages)))
    specs = [parse_spec(text) for text in (seat.model, *seat.fallback_models)]
    for spec in specs:
        if spec is not specs[-1] and not limits_of(spec).may_ask():
            listener.trouble(Trouble("fell_back", str(spec), _DOWN))
            continue
        outcome = await _with_retries(spec, allowance, settings, listener, attempt)
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
    spec: ModelSpec,
    allowance: Allowance,
    settings: DebateSettings,
    listener: Listener,
    attempt: Attempt[Result],
) -> Result | Trouble:
    limits, waited = limits_of(spec), 0.0
    failure: Failure | None = None
    tries = waits = 0
    while True:
        async with limits.slot(listener.debate, allowance, listener.pause_requested) as call:
            try:
                with watching_headers(partial(limits.read_headers, call)):
                    result = await attempt(spec, failure, tries == settings.max_retries)
            except BadInput:
                raise
            except Exception as error:  # noqa: BLE001 - any exception is a failure of the provider
                failure, usage = _failure_of(error)
                limits.failed(failure.kind)
                if failure.kind == "rate_limit":
                    limits.refused(call, failure.retry_after)
            else:
                limits.answered(call, result.usage)
                return result
        if failure.is_about_max_tokens and spec.name not in limits.without_max_tokens:
            limits.without_max_tokens.add(spec.name)
            continue
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
    spent = Usage() if failure.kind in ("first_token", "idle", "total") else NO_USAGE
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


def _usage_of_error(error: Exception) -> Usage:
    """Return the usage that openai's client attaches to its error."""
    counted = getattr(getattr(error, "completion", None), "usage", None)
    if counted is None:
        return Usage()
    return Usage(input_tokens=counted.prompt_tokens, output_tokens=counted.completion_tokens)
