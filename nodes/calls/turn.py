import asyncio
import time
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage
from langgraph.runtime import Runtime
from pydantic import BaseModel
from typing_extensions import TypedDict

from contend.graph.errors import ModelFailed, Paused
from contend.graph.events import turn_event
from contend.graph.phases import PhaseName
from contend.graph.protocols.base import strategy_for
from contend.graph.readings import Point
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, Turn, TurnStatus
from contend.graph.values import NO_USAGE, Degradation, Seat, TurnLength, Usage, WorkSpan
from contend.models.calls import extract
from contend.models.replies.control import nonce, without_block
from contend.models.seats import is_small
from contend.models.text import clean_data
from contend.models.tokens import count_tokens
from contend.nodes.calls.evidence import gather_evidence, with_quotes_checked
from contend.nodes.calls.person import ANY_TEXT, WrittenForm, ask_person
from contend.nodes.calls.stream import TurnStream, announce_reading, debate_id, report_problem
from contend.nodes.calls.tasks import stored_task
from contend.nodes.calls.tool_loop import ToolLoop
from contend.nodes.calls.tools import toolbox
from contend.nodes.prompting.echo import without_echo
from contend.nodes.prompting.prompt import Prompt, build_prompt, extraction_prompt
from contend.nodes.prompting.truncate import whole_sentences
from contend.nodes.prompting.values import fence_mark
from contend.nodes.timing import steady_now

Result = TypeVar("Result")


class TurnResult(TypedDict):
    turn: Turn
    raw: str  # the text with the control block
    degraded: list[Degradation]


class Extraction(TypedDict):
    block: dict[str, Any] | None  # None if the call failed
    usage: Usage
    seconds: float
    degraded: list[Degradation]


def next_turn_id(state: DebateState, phase: PhaseName, seat: str) -> str:
    """Return the turn's id. A resumed turn gets the same id, so it is not stored twice."""
    label = state["cue"].label if "cue" in state else ""
    first = ".".join(part for part in (f"r{state['round']}", phase, seat, label) if part)
    same = [turn for turn in state.get("turns", []) if f"{turn.id}.".startswith(f"{first}.")]
    return f"{first}.{len(same) + 1}" if same else first


async def take_turn(
    state: DebateState,
    node_runtime: Runtime[Any],
    seat: Seat,
    phase: PhaseName,
    part: str,
    form: WrittenForm = ANY_TEXT,
) -> TurnResult:
    if seat.is_human:
        return await _take_persons_turn(state, node_runtime, seat, phase, form)
    settings: DebateSettings = node_runtime.context
    this = next_turn_id(state, phase, seat.id)
    tag = nonce(debate_id(node_runtime), this)
    strategy = strategy_for(settings)
    seconds = strategy.time_limit(phase)
    stream = TurnStream(
        *(node_runtime, seat, state["round"], tag, phase),
        time_limit=seconds,
        state=state,
        turn=this,
    )
    stream.begin()
    policy, limit = strategy.call_settings(phase, state["round"]), strategy.token_limit(phase)
    material, trouble = await gather_evidence(state, policy, seat, part)
    prompt = build_prompt(state, settings, seat, part, debate_id(node_runtime), tag, material)
    notes = [("no_passages", why) for why in trouble] + _notes(prompt, seat)
    degraded = [
        report_problem(node_runtime, seat, state["round"], what, why) for what, why in notes
    ]
    tools = toolbox(state, policy, seat, fence_mark(debate_id(node_runtime)))
    loop = ToolLoop(stream, prompt.messages, policy, tools, limit)
    started = steady_now()
    try:
        last = await loop.run()
    except ModelFailed as failed:
        failed.degraded = [*degraded, *loop.degraded, *failed.degraded]
        failed.spent = loop.usage + (failed.spent or NO_USAGE)
        failed.started_at, failed.ended_at = started, steady_now()
        raise
    text, cut_after = without_block(loop.text, tag) or loop.text, None
    if last.get("is_cut"):
        text, cut_after = whole_sentences(text), seconds
    if is_small([seat]):
        text, echoed = without_echo(text, prompt.messages, state, phase)
        if echoed:
            why = f"{echoed} {'sentence' if echoed == 1 else 'sentences'} repeated from its prompt"
            degraded.append(report_problem(node_runtime, seat, state["round"], "echo_removed", why))
    turn = Turn(
        id=this,
        round=state["round"],
        phase=phase,
        seat=seat.id,
        role=seat.role,
        model=last["model"],
        text=text,
        thinking=loop.thinking or None,
        usage=loop.usage,
        started_at=started,
        ended_at=steady_now(),
        status="fallback_model" if last["fell_back"] else "ok",
        passages=tuple(dict.fromkeys([*(each.label for each in prompt.passages), *loop.found])),
        tool_calls=tuple(used["use"] for used in loop.used),
        length=_length(text, limit, cut_after),
    )
    turn = await with_quotes_checked(state, turn)
    return {"turn": turn, "raw": loop.text, "degraded": [*degraded, *loop.degraded]}


async def _take_persons_turn(
    state: DebateState, runtime: Runtime[Any], seat: Seat, phase: PhaseName, form: WrittenForm
) -> TurnResult:
    text = await ask_person(state, runtime, seat, phase, form)
    now, limit = steady_now(), strategy_for(runtime.context).token_limit(phase)
    turn = Turn(
        id=next_turn_id(state, phase, seat.id),
        round=state["round"],
        phase=phase,
        seat=seat.id,
        role=seat.role,
        model=seat.model,
        text=text,
        usage=NO_USAGE,
        started_at=now,
        ended_at=now,
        status="human",
        length=_length(text, limit),
    )
    return {"turn": await with_quotes_checked(state, turn), "raw": text, "degraded": []}


def _length(text: str, limit: int | None, cut_after: float | None = None) -> TurnLength | None:
    if limit is None:
        return None
    return TurnLength(tokens=count_tokens(text), limit=limit, cut_after=cut_after)


def _notes(prompt: Prompt, seat: Seat) -> list[tuple[str, str]]:
    notes = []
    if prompt.templates_left_out:
        names = ", ".join(use.title for use in prompt.templates_left_out)
        notes.append(("templates_left_out", f"no room in the window of {seat.model} for: {names}"))
    if prompt.passages_left_out:
        whole = len(prompt.passages) + prompt.passages_left_out
        why = f"no room in the window of {seat.model} for {prompt.passages_left_out} of {whole}"
        notes.append(("passages_left_out", why))
    if prompt.left_out:
        notes.append(("history_shortened", f"{len(prompt.left_out)} oldest turns did not fit"))
    if prompt.shortened:
        why = f"the beginnings of these did not fit: {', '.join(prompt.shortened)}"
        notes.append(("history_shortened", why))
    if prompt.too_long:
        why = f"the prompt may not fit the window of {seat.model}, which may truncate it silently"
        notes.append(("prompt_too_long", why))
    return notes


def substitute_turn(
    state: DebateState,
    phase: PhaseName,
    failure: ModelFailed,
    source: Turn | Seat,
    status: TurnStatus,
    text: str = "",
) -> Turn:
    now = steady_now()
    seat = source.seat if isinstance(source, Turn) else source.id
    return Turn(
        id=next_turn_id(state, phase, seat),
        round=state["round"],
        phase=phase,
        seat=seat,
        role=source.role,
        model=source.model if isinstance(source, Turn) else "",
        text=source.text if isinstance(source, Turn) else text,
        usage=failure.spent or Usage(),
        started_at=failure.started_at or now,
        # Do not use the current time, because there may have been a pause since the failure.
        ended_at=failure.ended_at or failure.started_at or now,
        status=status,
    )


def lost_call(failure: ModelFailed) -> WorkSpan:
    now = steady_now()
    return WorkSpan(
        started_at=failure.started_at or now,
        ended_at=failure.ended_at or failure.started_at or now,
        calls=1,
        usage=failure.spent or Usage(),
    )


def pause_if_asked(runtime: Runtime[Any]) -> None:
    if runtime.control and runtime.control.drain_requested:
        raise Paused


async def extract_decision(
    state: DebateState,
    node_runtime: Runtime[Any],
    seat: Seat,
    spoken: Turn,
    schema: type[BaseModel],
    known: list[Point],
) -> Extraction:
    announce_reading(node_runtime, seat, spoken)
    small = getattr(schema, "small_prompt", "shared/small/extract")
    messages = extraction_prompt(seat, spoken.text, known, debate_id(node_runtime), small)
    return await fill_form(state, node_runtime, seat, messages, schema, spoken.id)


async def fill_form(
    state: DebateState,
    runtime: Runtime[Any],
    seat: Seat,
    messages: list[BaseMessage],
    schema: type[BaseModel],
    turn: str = "",
) -> Extraction:
    pause_if_asked(runtime)
    stream = TurnStream(runtime, seat, state["round"], "", state=state, turn=turn)
    try:
        answered = await extract(seat, messages, schema, runtime.context, stream.listener())
        block, usage = answered.result.block, answered.result.usage
    except ModelFailed:
        block, usage = None, NO_USAGE
    return {
        "block": clean_data(block.model_dump()) if block else None,
        "usage": usage + stream.spent,
        "seconds": time.monotonic() - stream.began,
        "degraded": stream.degraded,
    }


def add_extraction_cost(turn: Turn, reported: Extraction) -> Turn:
    # Add the seconds instead of reading the clock, because there may have been a pause in between.
    ended = turn.ended_at + timedelta(seconds=reported["seconds"])
    return turn.model_copy(update={"usage": turn.usage + reported["usage"], "ended_at": ended})


# These are tasks, so that a node keeps the result of its first call if the second is interrupted.
# They call the runtime `node_runtime`, because langgraph itself fills arguments called `runtime`.
take_turn_once = stored_task("say", take_turn)
extract_once = stored_task("report", extract_decision)


async def gather_results(calls: Sequence[Awaitable[Result]]) -> list[Result | ModelFailed]:
    """Wait for all calls, even if one fails, and return each one's result or ModelFailed."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    kept: list[Result | ModelFailed] = []
    for each in results:
        if isinstance(each, BaseException) and not isinstance(each, ModelFailed):
            raise each
        kept.append(each)
    return kept


def publish_turn(runtime: Runtime[Any], turn: Turn) -> None:
    runtime.stream_writer(turn_event(turn))
