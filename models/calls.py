import asyncio
import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, TypeAdapter

from contend.graph.settings import DebateSettings
from contend.graph.values import Seat, Usage
from contend.models.answers import COMPLETE, Reply, finish_reason, stream_answer, usage_of
from contend.models.budget import cap_of, most_tokens, prompt_tokens, reserved
from contend.models.cache_marks import with_cache_marks
from contend.models.failures import BadAnswer, Failure
from contend.models.limits import limits_of
from contend.models.prices import priced
from contend.models.providers.registry import (
    ModelSpec,
    Options,
    open_model,
    provider_of,
)
from contend.models.recording import CallRequest, replay_or_record
from contend.models.retries import Answered, Listener, with_fallbacks
from contend.models.trace_client import TITLE
from contend.models.tracing import call_metadata, call_title, scrub_traces

# Errors raised by openai's client for an incomplete structured answer.
_UNREADABLE = {"LengthFinishReasonError", "ContentFilterFinishReasonError"}
_ROOM_TO_RUN_OVER = 2
# Enough for any long turn; only a model that never stops reaches this limit.
_ROOM_TO_RUN_ON = 8
_THINKING_ROOM = 8192
# Token limit for a turn if its protocol sets none.
_LONGEST_TURN = 4096
_SHORTER = HumanMessage(
    "Your last reply was too long and was cut off. Answer again, complete, in half the length."
)

# Called here, because every graph imports this module before its first run can be traced.
scrub_traces()


Block = TypeVar("Block", bound=BaseModel)


@dataclass(frozen=True)
class CallTools:
    tools: tuple[BaseTool, ...] = ()
    spent: bool = False  # True if no tool calls are left, so that the model must answer
    seconds: float = 0.0  # time used by earlier calls in the turn; one timeout covers them all
    limit: int | None = None


NO_CALL_TOOLS = CallTools()


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
    call_tools: CallTools = NO_CALL_TOOLS,
) -> Answered[Reply]:
    tools = [tool.name for tool in call_tools.tools]
    parameters = {"temperature": seat.temperature, "tools": tools, "token_limit": call_tools.limit}
    request = CallRequest(seat.model, messages, parameters)
    ask = partial(_ask, seat, messages, settings, call_tools)
    return await replay_or_record(request, listener, _REPLY, ask)


async def _ask(
    seat: Seat,
    messages: list[BaseMessage],
    settings: DebateSettings,
    call_tools: CallTools,
    listener: Listener,
) -> Answered[Reply]:

    async def attempt(spec: ModelSpec, failed: Failure | None, is_last: bool) -> Reply:
        # A turn over its limit is kept in full: retry with a higher limit instead of truncating it.
        cut = failed is not None and failed.kind == "length"
        sent = [*messages, _SHORTER] if cut and call_tools.limit is None else messages
        sent = with_cache_marks(sent) if provider_of(spec).caches_marked_parts else sent
        must_answer = call_tools.spent and not provider_of(spec).history_needs_tools
        tools = [] if must_answer else list(call_tools.tools)
        ceiling = _ceiling(spec, settings, call_tools.limit, whole=cut or is_last)
        prompt = partial(prompt_tokens, sent, tools)
        async with reserved(
            spec, settings, listener.budget, prompt, ceiling, call_tools.limit
        ) as reservation:
            opened = open_model(spec, _options(seat, settings, reservation.ceiling))
            model = opened.bind_tools(tools) if tools else opened
            reply = await stream_answer(
                model.with_config(**_trace_config(seat, settings, listener)),
                spec,
                sent,
                settings,
                lambda piece: listener.text(piece, str(spec)),
                may_call_tools=bool(call_tools.tools) and not call_tools.spent,
                seconds_used=call_tools.seconds,
                time_is_up=listener.time_is_up,
            )
            reservation.settle(reply.usage)
        return reply

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
    return await replay_or_record(request, listener, form, fill)


async def _extract(
    seat: Seat,
    messages: list[BaseMessage],
    schema: type[Block],
    settings: DebateSettings,
    listener: Listener,
) -> Answered[Extracted[Block]]:

    async def attempt(spec: ModelSpec, *_: object) -> Extracted[Block]:
        ceiling = _ceiling(spec, settings, None, whole=False)
        prompt = partial(_form_tokens, messages, schema)
        async with reserved(spec, settings, listener.budget, prompt, ceiling, None) as reservation:
            options = _options(seat, settings, reservation.ceiling, structured=True)
            about = _trace_config(seat, settings, listener)
            extracted = await _fill(spec, messages, schema, settings, options, about)
            reservation.settle(extracted.usage)
        return extracted

    return await with_fallbacks(seat, messages, settings, listener, attempt)


async def _fill(
    spec: ModelSpec,
    messages: list[BaseMessage],
    schema: type[Block],
    settings: DebateSettings,
    options: Options,
    about: RunnableConfig,
) -> Extracted[Block]:
    method = provider_of(spec).structured_method
    how: dict[str, Any] = {"method": method} if method else {}
    model = open_model(spec, options)
    bound = model.with_structured_output(schema, include_raw=True, **how)
    try:
        async with asyncio.timeout(settings.total_timeout):
            answer = await bound.ainvoke(messages, about)
    except TimeoutError as error:
        why = f"no complete answer within {settings.total_timeout:g} s (setting total_timeout)"
        raise BadAnswer("total", why) from error
    except Exception as error:
        if isinstance(error, ValueError) or type(error).__name__ in _UNREADABLE:
            return Extracted(None, priced(_usage_of_error(error), spec, settings.prices))
        raise
    raw, parsed = answer["raw"], answer["parsed"]  # type: ignore[index]
    # ChatOllama repairs truncated JSON, by inventing what is missing.
    usable = isinstance(parsed, schema) and finish_reason(raw) in (None, *COMPLETE)
    usage = priced(usage_of(raw) or Usage(), spec, settings.prices)
    return Extracted(parsed if usable else None, usage)


def _form_tokens(messages: list[BaseMessage], schema: type[BaseModel]) -> int:
    return prompt_tokens(messages) + most_tokens(json.dumps(schema.model_json_schema()))


def _trace_config(seat: Seat, settings: DebateSettings, listener: Listener) -> RunnableConfig:
    asked, turn = listener.asked, listener.turn
    title = call_title(seat.name, asked)
    about = call_metadata(settings.protocol, listener.debate, seat.id, asked, turn) | {TITLE: title}
    # Hide the raw tokens from server clients: nodes/calls/messages.py streams the words to them,
    # without the control block.
    return {"run_name": title, "metadata": about, "tags": [TAG_NOSTREAM]}


def _ceiling(
    spec: ModelSpec, settings: DebateSettings, limit: int | None, *, whole: bool
) -> int | None:
    """Return the call's max_tokens, which stops endless answers, or None to send no limit."""
    if spec.name in limits_of(spec).without_max_tokens:
        # Most models refuse only a high limit; without a limit, no budget could be kept.
        return _LONGEST_TURN if cap_of(settings) else None
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
    counted = getattr(getattr(error, "completion", None), "usage", None)
    if counted is None:
        return Usage()
    details = getattr(counted, "prompt_tokens_details", None)
    return Usage(
        input_tokens=counted.prompt_tokens,
        output_tokens=counted.completion_tokens,
        cached_tokens=getattr(details, "cached_tokens", None),
    )
