from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, turns_of
from contend.graph.values import Seat
from contend.nodes.budget import ends_rounds_when_spent
from contend.nodes.calls.results import (
    CallResults,
    failure_results,
    join_results,
    turn_results,
    update_of,
)
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import (
    TurnResult,
    gather_results,
    publish_turn,
    substitute_turn,
    take_turn,
    take_turn_once,
)
from contend.nodes.prompting.answers import answers_of
from contend.nodes.rounds import still_active

Result = TurnResult | ModelFailed


@ends_rounds_when_spent
async def propose(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    if state.get("stop"):  # the budget did not pay for the judge's feedback
        return {}
    settings: DebateSettings = runtime.context
    # A debate stored by an earlier release has no list of waiting seats.
    waiting = state.get("waiting") or still_active(state, settings)
    now = strategy_for(settings).speakers(state["round"], waiting)
    seats = [seat for seat in state["seats"] if seat.id in now]
    results = await _take_turns(state, runtime, seats)
    rest = [seat for seat in waiting if seat not in now]
    failures = [each for each in results if isinstance(each, ModelFailed)]
    somebody_else = bool(rest) or len(failures) < len(results)
    if failures and not _can_continue(state, settings, somebody_else=somebody_else):
        failures[0].degraded = [entry for failure in failures for entry in failure.degraded]
        raise failures[0]
    return {**update_of(_collect(state, runtime, seats, results)), "waiting": rest}


async def _take_turns(state: DebateState, runtime: Runtime[Any], seats: list[Seat]) -> list[Result]:
    # A single call needs no task; if there are several, each is a task, so that a crash loses none.
    speak: Callable[..., Awaitable[TurnResult]] = take_turn if len(seats) == 1 else take_turn_once
    calls = []
    for seat in seats:
        has_spoken = bool(answers_of(state, seat.id))
        part = strategy_for(runtime.context).answering_part(state["round"], has_spoken=has_spoken)
        calls.append(speak(state, runtime, seat, "propose", part))
    critiques = turns_of(state, "critique")
    reply_to = critiques[-1].id if critiques else None
    return await gather_results([_publish_when_done(runtime, call, reply_to) for call in calls])


async def _publish_when_done(
    runtime: Runtime[Any], call: Awaitable[TurnResult], reply_to: str | None
) -> TurnResult:
    spoken = await call
    turn = spoken["turn"].model_copy(update={"replies_to": reply_to})
    publish_turn(runtime, turn)
    return {**spoken, "turn": turn}


def _can_continue(state: DebateState, settings: DebateSettings, *, somebody_else: bool) -> bool:
    answers = turns_of(state, "propose")
    match strategy_for(settings).when_a_seat_fails:
        case "keep_answer":
            return somebody_else or bool(answers)
        case "sit_out":
            return somebody_else or any(turn.round == state["round"] for turn in answers)
        case "stop":
            return False


def _collect(
    state: DebateState, runtime: Runtime[Any], seats: Sequence[Seat], results: Sequence[Result]
) -> CallResults:
    keeps = strategy_for(runtime.context).when_a_seat_fails == "keep_answer"
    none_spoke = keeps and all(isinstance(each, ModelFailed) for each in results)
    joined = join_results(
        _keep_answer(state, runtime, seat, each, initial=none_spoke)
        if isinstance(each, ModelFailed)
        else turn_results(each["turn"], each["degraded"])
        for seat, each in zip(seats, results, strict=True)
    )
    if none_spoke:
        why = "every model failed, so the initial answers stand"
        reported = report_problem(runtime, None, state["round"], "initial_answers_stand", why)
        joined["degraded"].append(reported)
    return joined


def _keep_answer(
    state: DebateState, runtime: Runtime[Any], seat: Seat, failure: ModelFailed, *, initial: bool
) -> CallResults:
    """Reuse a seat's previous answer after a failure, or let the seat sit out the round."""
    answers = answers_of(state, seat.id)
    if not answers or strategy_for(runtime.context).when_a_seat_fails == "sit_out":
        why = str(failure)
        sat_out = report_problem(runtime, seat, state["round"], "sat_out", why, phase="propose")
        return failure_results(failure, sat_out)
    source = answers[0] if initial else answers[-1]
    turn = substitute_turn(state, "propose", failure, source, "kept_previous")
    reported = report_problem(runtime, seat, state["round"], "kept_previous", str(failure))
    publish_turn(runtime, turn)
    return turn_results(turn, [*failure.before, reported])
