"""The one place where a model is called."""

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, TypeAdapter

from contend.graph.settings import DebateSettings
from contend.graph.values import Seat, Usage
from contend.models.answers import COMPLETE, Reply, finish_reason, stream_answer, usage_of
from contend.models.failures import BadAnswer, Failure
from contend.models.limits import limits_of
from contend.models.prices import priced
from contend.models.providers.registry import (
    ModelSpec,
    Options,
    open_model,
    provider_of,
)
from contend.models.recording import CallRequest, on_tape
from contend.models.retries import Answered, Listener, with_fallbacks
from contend.models.tracing import call_metadata, scrub_traces

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

# Here, since every graph loads this module before its first run can be traced.
scrub_traces()


Block = TypeVar("Block", bound=BaseModel)


@dataclass(frozen=True)
class Aids:
    """The tools of a call, and what earlier calls of the same turn have used up."""

    tools: tuple[BaseTool, ...] = ()
    spent: bool = False  # whether the tool calls are used up, so that it must answer
    seconds: float = 0.0  # what earlier calls of the turn took; together they have one timeout
    limit: int | None = None


NO_AIDS = Aids()


_REPLY = TypeAdapter(Reply)


@dataclass(frozen=True)
class Extracted(Generic[Block]):
    block: Block | None
    usage: Usage


async def ask_model(
    seat: Seat,
    messages: list[BaseMessage],
    settings: DebateSettings,
    listener: Listener,
    aids: Aids = NO_AIDS,
) -> Answered[Reply]:
    tools = [tool.name for tool in aids.tools]
    parameters = {"temperature": seat.temperature, "tools": tools, "token_limit": aids.limit}
    request = CallRequest(seat.model, messages, parameters)
    ask = partial(_ask, seat, messages, settings, aids)
    return await on_tape(request, listener, _REPLY, ask)


async def _ask(
    seat: Seat,
    messages: list[BaseMessage],
    settings: DebateSettings,
    aids: Aids,
    listener: Listener,
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
            model.with_config(metadata=_metadata(seat, settings, listener)),
            spec,
            [*messages, *nudge],
            settings,
            lambda piece: listener.text(piece, str(spec)),
            may_call_tools=bool(aids.tools) and not aids.spent,
            seconds_used=aids.seconds,
            time_is_up=listener.time_is_up,
        )

    return await with_fallbacks(seat, messages, settings, listener, attempt)


async def extract(
    seat: Seat,
    messages: list[BaseMessage],
    schema: type[Block],
    settings: DebateSettings,
    listener: Listener,
) -> Answered[Extracted[Block]]:
    request = CallRequest(seat.model, messages, {"form": schema.__name__})
    form: TypeAdapter[Extracted[Block]] = TypeAdapter(Extracted[schema])  # type: ignore[valid-type]
    fill = partial(_extract, seat, messages, schema, settings)
    return await on_tape(request, listener, form, fill)


async def _extract(
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
                answer = await bound.ainvoke(
                    messages, {"metadata": _metadata(seat, settings, listener)}
                )
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

    return await with_fallbacks(seat, messages, settings, listener, attempt)


def _metadata(seat: Seat, settings: DebateSettings, listener: Listener) -> dict[str, Any]:
    return call_metadata(settings.protocol, listener.debate, seat.id, listener.asked)


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


def _usage_of_error(error: Exception) -> Usage:
    """Return the usage that openai's client attaches to its error."""
    counted = getattr(getattr(error, "completion", None), "usage", None)
    if counted is None:
        return Usage()
    details = getattr(counted, "prompt_tokens_details", None)
    return Usage(
        input_tokens=counted.prompt_tokens,
        output_tokens=counted.completion_tokens,
        cached_tokens=getattr(details, "cached_tokens", None),
    )
