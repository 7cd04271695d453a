"""The calls of a forecast: each a task, and none longer than its deadline."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NotRequired, TypeVar

from langgraph.runtime import Runtime
from pydantic import BaseModel
from typing_extensions import TypedDict

from contend.graph.errors import ModelFailed
from contend.graph.phases import PhaseName
from contend.graph.state import CallSubject, DebateState, Turn
from contend.graph.values import NO_USAGE, Degradation, Seat, Usage, WorkSpan
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.tasks import stored_task
from contend.nodes.calls.turn import (
    Extraction,
    TurnResult,
    debate_id,
    fill_form,
    gather_results,
    pause_if_asked,
    publish_turn,
    take_turn,
)
from contend.nodes.forecast.arguments import all_arguments
from contend.nodes.forecast.schedule import Deadline
from contend.nodes.prompting.prompt import build_prompt
from contend.nodes.timing import call_since, since

Result = TypeVar("Result")

OUT_OF_TIME = "out_of_time"


class Work(TypedDict):
    """The results of calls: turns, problems, and the calls that produced no turn."""

    turns: list[Turn]
    degraded: list[Degradation]
    spans: list[WorkSpan]
    given_up: NotRequired[list[str]]
    """Arguments not to be tried again, by turn id; missing in tasks of earlier versions."""


def join_work(works: Iterable[Work]) -> Work:
    listed = list(works)
    return {
        "turns": [turn for each in listed for turn in each["turns"]],
        "degraded": [entry for each in listed for entry in each["degraded"]],
        "spans": [span for each in listed for span in each["spans"]],
        "given_up": [turn for each in listed for turn in each.get("given_up", [])],
    }


def update_of(work: Work, began: datetime) -> dict[str, Any]:
    # An empty list would count as an update of the transcript, and cost every checkpoint.
    turns = {"turns": work["turns"]} if work["turns"] else {}
    given_up = {"given_up": work["given_up"]} if work.get("given_up") else {}
    spans = [*work["spans"], since(began)]
    return {**turns, **given_up, "degraded": work["degraded"], "spans": spans}


class CallOutcome(TypedDict):
    """A turn, or the reason why there is none.

    A failure is a result too, so that a resumed step finds every call as it left it.
    """

    spoken: TurnResult | None
    why: str
    what: str
    degraded: list[Degradation]
    spans: list[WorkSpan]


class NothingArguedYet(ModelFailed):
    """A call failed before any role has argued: it is raised, to be repeated on resume.

    As a stored result, it would be found again by every resume of a debate in which no role spoke.
    """

    def __init__(self, seat: Seat, outcome: CallOutcome) -> None:
        why = outcome["why"].removeprefix(f"{seat.name} ({seat.model}): ")
        super().__init__(seat.name, seat.model, "failed", why)
        self.whose, self.outcome = seat, outcome


class Filled(Extraction):
    """The result of a form, and whether there was time to ask for it."""

    called: bool


class TurnPublisher:
    """Publishes each turn once: when it is made, or later if that was before a crash."""

    def __init__(self, runtime: Runtime[Any]) -> None:
        self._runtime, self._published = runtime, set[str]()

    def publish(self, turns: Iterable[Turn]) -> None:
        for turn in turns:
            if turn.id not in self._published:
                self._published.add(turn.id)
                publish_turn(self._runtime, turn)


async def _speak(
    state: DebateState,
    node_runtime: Runtime[Any],
    seat: Seat,
    phase: PhaseName,
    part: str,
    about: Turn | None,
    deadline: Deadline,
) -> CallOutcome:
    """Take a turn; a model failure or a timeout is an outcome, see `_missing_outcome`."""
    pause_if_asked(node_runtime)
    if deadline.left <= 0:
        return _missing_outcome(state, seat, deadline.why, OUT_OF_TIME)
    # A turn in progress may finish: only silence shows that a model hangs.
    began, hurried = datetime.now(UTC), _hurried(node_runtime, seat, deadline.left, "idle_timeout")
    try:
        async with asyncio.timeout(deadline.left):
            spoken = await take_turn(
                _about_argument(state, phase, about), hurried, seat, phase, part
            )
    except TimeoutError:
        return _missing_outcome(state, seat, deadline.why, OUT_OF_TIME, call_since(began, Usage()))
    except ModelFailed as failed:
        lost = call_since(began, failed.spent or NO_USAGE)
        return _missing_outcome(state, seat, str(failed), "failed", lost, failed.degraded)
    return {"spoken": spoken, "why": "", "what": "", "degraded": spoken["degraded"], "spans": []}


def _missing_outcome(
    state: DebateState,
    seat: Seat,
    why: str,
    what: str,
    lost: WorkSpan | None = None,
    degraded: Iterable[Degradation] = (),
) -> CallOutcome:
    """Return a call without a turn as a result, unless no role has argued yet."""
    spans = [lost] if lost else []
    outcome: CallOutcome = {
        "spoken": None,
        "why": why,
        "what": what,
        "degraded": [*degraded],
        "spans": spans,
    }
    if not all_arguments(state):
        raise NothingArguedYet(seat, outcome)
    return outcome


def _hurried(
    runtime: Runtime[Any],
    seat: Seat,
    seconds: float,
    limit: Literal["idle_timeout", "total_timeout"],
) -> Runtime[Any]:
    """Divide the time among a seat's models, without retries.

    Otherwise a model that hangs would use up the time of its fallbacks.
    """
    if not seat.fallback_models:
        return runtime
    share = seconds / (1 + len(seat.fallback_models))
    limits = {limit: min(getattr(runtime.context, limit), share), "max_retries": 0}
    return runtime.override(context=runtime.context.model_copy(update=limits))


async def _fill(
    state: DebateState,
    node_runtime: Runtime[Any],
    seat: Seat,
    part: str,
    about: Turn,
    schema: type[BaseModel],
    deadline: Deadline,
) -> Filled:
    nothing: Filled = {
        "block": None,
        "usage": NO_USAGE,
        "seconds": 0.0,
        "degraded": [],
        "called": False,
    }
    seconds = deadline.left
    if seconds <= 0:
        return nothing
    prompt = build_prompt(
        _about_argument(state, part, about),
        node_runtime.context,
        seat,
        part,
        debate_id(node_runtime),
        "",
    )
    try:
        async with asyncio.timeout(seconds):
            hurried = _hurried(node_runtime, seat, seconds, "total_timeout")
            filled = await fill_form(state, hurried, seat, prompt.messages, schema)
    except TimeoutError:
        return nothing | {"usage": Usage(), "seconds": seconds, "called": True}
    return {**filled, "called": True}


def how_often(filled: Filled) -> str:
    return "asked twice" if filled["called"] else "with no time left to ask again"


def _about_argument(state: DebateState, phase: str, about: Turn | None) -> DebateState:
    """Return the state of a call that is about one argument.

    A seat may speak about several in parallel, so the call is labelled by the argument; a new
    version of the own argument is numbered instead.
    """
    if about is None:
        return state
    label = "" if about.phase == phase else about.id
    return {**state, "cue": CallSubject(label=label, about=(about.text,), turns=(about.id,))}


speak_once = stored_task("_speak", _speak)
fill_once = stored_task("_fill", _fill)


async def gather_work(calls: Iterable[Awaitable[Result]]) -> list[Result]:
    """Return the results of all calls that did not fail."""
    return [each for each in await gather_results([*calls]) if not isinstance(each, ModelFailed)]


def with_turns(state: DebateState, turns: Iterable[Turn]) -> DebateState:
    return {**state, "turns": [*state.get("turns", []), *turns]}


def report_missing(
    runtime: Runtime[Any], seat: Seat, number: int, outcome: CallOutcome, otherwise: str
) -> Degradation:
    what = outcome["what"] if outcome["what"] == OUT_OF_TIME else otherwise
    return report_problem(runtime, seat, number, what, outcome["why"])


def without_turn(outcome: CallOutcome, reported: Degradation, given_up: Sequence[str] = ()) -> Work:
    degraded = [*outcome["degraded"], reported]
    return {
        "turns": [],
        "degraded": degraded,
        "spans": outcome["spans"],
        "given_up": list(given_up),
    }
