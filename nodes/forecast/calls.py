import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from langgraph.runtime import Runtime
from pydantic import BaseModel
from typing_extensions import TypedDict

from contend.graph.errors import BUDGET, ModelFailed
from contend.graph.phases import PhaseName
from contend.graph.state import CallSubject, DebateState, Turn
from contend.graph.values import NO_USAGE, Degradation, Seat, Usage, WorkSpan
from contend.nodes.calls.decide import StoredTurn, store_failure, turn_or_failure
from contend.nodes.calls.results import CallResults
from contend.nodes.calls.stream import debate_id, report_problem
from contend.nodes.calls.tasks import stored_task
from contend.nodes.calls.turn import (
    Extraction,
    TurnResult,
    fill_form,
    lost_call,
    pause_if_asked,
    publish_turn,
    take_turn,
)
from contend.nodes.forecast.arguments import all_arguments
from contend.nodes.forecast.schedule import Deadline
from contend.nodes.prompting.prompt import build_prompt
from contend.nodes.timing import steady_now

OUT_OF_TIME = "out_of_time"


class FilledForm(Extraction):
    called: bool  # False if there was no time left


class TurnPublisher:
    def __init__(self, runtime: Runtime[Any]) -> None:
        self._runtime, self._published = runtime, set[str]()

    def publish(self, turns: Iterable[Turn]) -> None:
        for turn in turns:
            if turn.id not in self._published:
                self._published.add(turn.id)
                publish_turn(self._runtime, turn)


class _OldStoredTurn(TypedDict):
    """A turn or a failure as release 0.1 stored it."""

    spoken: TurnResult | None
    what: str
    why: str
    degraded: list[Degradation]
    spans: list[WorkSpan]


async def _speak(
    state: DebateState,
    node_runtime: Runtime[Any],
    seat: Seat,
    phase: PhaseName,
    part: str,
    about: Turn | None,
    deadline: Deadline,
) -> StoredTurn:
    pause_if_asked(node_runtime)
    about_this = _about_argument(state, phase, about)
    try:
        spoken = await _take_turn_in_time(about_this, node_runtime, seat, phase, part, deadline)
    except ModelFailed as failure:
        # Without any argument or the budget for the verdict, a resumed debate must try again.
        if not all_arguments(state) or (failure.kind == BUDGET and phase == "synthesize"):
            raise
        return store_failure(failure)
    return {"spoken": spoken, "failed": {}}


_speak_once = stored_task("_speak", _speak, _OldStoredTurn)


async def speak(
    state: DebateState,
    runtime: Runtime[Any],
    seat: Seat,
    phase: PhaseName,
    part: str,
    about: Turn | None,
    deadline: Deadline,
) -> TurnResult | ModelFailed:
    """Take a turn before the deadline. Return a failure if the debate can go on without it."""
    stored = await _speak_once(state, runtime, seat, phase, part, about, deadline)
    return turn_or_failure(stored if "failed" in stored else _from_old_form(stored, seat))


def _from_old_form(stored: Mapping[str, Any], seat: Seat) -> StoredTurn:
    why = stored["why"].removeprefix(f"{seat.name} ({seat.model}): ")
    failure = ModelFailed(seat.name, seat.model, stored["what"], why)
    failure.degraded = stored["degraded"]
    for lost in stored["spans"]:
        failure.started_at, failure.ended_at = lost.started_at, lost.ended_at
        failure.spent = lost.usage
    return {**store_failure(failure), "spoken": stored["spoken"]}


async def _take_turn_in_time(
    state: DebateState,
    runtime: Runtime[Any],
    seat: Seat,
    phase: PhaseName,
    part: str,
    deadline: Deadline,
) -> TurnResult:
    late = ModelFailed(seat.name, seat.model, OUT_OF_TIME, deadline.why)
    if deadline.left <= 0:
        raise late
    # Limit only silence, which shows that a model hangs; a turn in progress may finish.
    began, hurried = (
        steady_now(),
        _with_shorter_timeouts(runtime, seat, deadline.left, "idle_timeout"),
    )
    try:
        async with asyncio.timeout(deadline.left):
            return await take_turn(state, hurried, seat, phase, part)
    except TimeoutError:
        late.started_at, late.ended_at = began, steady_now()
        raise late from None


def _with_shorter_timeouts(
    runtime: Runtime[Any],
    seat: Seat,
    seconds: float,
    limit: Literal["idle_timeout", "total_timeout"],
) -> Runtime[Any]:
    """Limit each of the seat's models to an equal share of the time."""
    if not seat.fallback_models:
        return runtime
    share = seconds / (1 + len(seat.fallback_models))
    names = (limit, "first_token_timeout") if limit == "idle_timeout" else (limit,)
    shares = {name: min(getattr(runtime.context, name), share) for name in names}
    limits = {**shares, "max_retries": 0}
    return runtime.override(context=runtime.context.model_copy(update=limits))


async def _fill(
    state: DebateState,
    node_runtime: Runtime[Any],
    seat: Seat,
    part: str,
    about: Turn,
    schema: type[BaseModel],
    deadline: Deadline,
) -> FilledForm:
    nothing: Extraction = {"block": None, "usage": NO_USAGE, "seconds": 0.0, "degraded": []}
    seconds = deadline.left
    if seconds <= 0:
        return {**nothing, "called": False}
    about_this, debate = _about_argument(state, part, about), debate_id(node_runtime)
    prompt = build_prompt(about_this, node_runtime.context, seat, part, debate, "")
    hurried = _with_shorter_timeouts(node_runtime, seat, seconds, "total_timeout")
    try:
        async with asyncio.timeout(seconds):
            filled = await fill_form(state, hurried, seat, prompt.messages, schema, about.id)
    except TimeoutError:
        filled = {**nothing, "usage": Usage(), "seconds": seconds}
    return {**filled, "called": True}


def describe_attempts(filled: FilledForm) -> str:
    return "asked twice" if filled["called"] else "with no time left to ask again"


def _about_argument(state: DebateState, phase: str, about: Turn | None) -> DebateState:
    if about is None:
        return state
    # The label tells apart the calls that a seat makes in parallel about several arguments; a new
    # version of its own argument is numbered instead.
    label = "" if about.phase == phase else about.id
    return {**state, "cue": CallSubject(label=label, about=(about.text,), turns=(about.id,))}


fill_once = stored_task("_fill", _fill)


def why_missing(failure: ModelFailed) -> str:
    return failure.why if failure.kind == OUT_OF_TIME else str(failure)


def report_missing(
    runtime: Runtime[Any], seat: Seat, number: int, failure: ModelFailed, otherwise: str
) -> Degradation:
    what = OUT_OF_TIME if failure.kind == OUT_OF_TIME else otherwise
    return report_problem(runtime, seat, number, what, why_missing(failure))


def without_turn(
    failure: ModelFailed, reported: Degradation, given_up: Sequence[str] = ()
) -> CallResults:
    # Without a start time, the call was never made because the deadline had passed.
    spans = [lost_call(failure)] if failure.started_at else []
    degraded = [*failure.degraded, reported]
    return {"turns": [], "degraded": degraded, "spans": spans, "given_up": list(given_up)}
