from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState
from contend.graph.values import Seat
from contend.nodes.calls.results import CallResults, join_results, update_of, with_turns
from contend.nodes.calls.tasks import stored_task
from contend.nodes.calls.turn import gather_results
from contend.nodes.forecast.argue import argue
from contend.nodes.forecast.calls import TurnPublisher, report_missing, without_turn
from contend.nodes.forecast.schedule import Clock, round_phase
from contend.nodes.forecast.score import score_argument
from contend.nodes.timing import span_since, steady_now


async def propose(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    settings: ForecastSettings = runtime.context
    began, waiting = steady_now(), state["waiting"]
    clock, publisher = Clock(state, settings), TurnPublisher(runtime)
    number = state["round"]
    now = strategy_for(settings).speakers(number, waiting)
    rest = [seat for seat in waiting if seat not in now]
    seats = [seat for seat in state["seats"] if seat.id in now]
    calls = [
        _contribute_once(state, runtime, seat, clock, publisher, awaited=bool(rest))
        for seat in seats
    ]
    results = list(zip(seats, await gather_results(calls), strict=True))
    failures = [(seat, each) for seat, each in results if isinstance(each, ModelFailed)]
    missing = [
        without_turn(failure, report_missing(runtime, seat, number, failure, "sat_out"))
        for seat, failure in failures
    ]
    spoken_results = [each for _, each in results if not isinstance(each, ModelFailed)]
    joined = join_results([*spoken_results, *missing])
    # In the record, arguments come before their scores.
    joined["turns"].sort(key=lambda turn: turn.phase == "score")
    publisher.publish(joined["turns"])
    if len(failures) == len(seats) and not rest:
        # No role has argued, so fail with the first reason.
        _, first = failures[0]
        first.degraded = joined["degraded"]
        raise first
    joined["spans"].append(span_since(began))
    return {**update_of(joined), "waiting": rest}


async def _contribute(
    state: DebateState,
    node_runtime: Runtime[Any],
    seat: Seat,
    clock: Clock,
    publisher: TurnPublisher,
    *,
    awaited: bool,
) -> CallResults:
    """Take a role's turn and score it, unless another role is waiting for the turn."""
    part = round_phase(node_runtime.context, state["round"])
    due = clock.end_of("before_judge" if awaited else "arguments")
    argued = await argue(state, node_runtime, seat, part, None, due)
    publisher.publish(argued["turns"])
    if awaited or not argued["turns"]:
        return argued
    (turn,) = argued["turns"]
    scored = await score_argument(
        with_turns(state, [turn]), node_runtime, turn, clock.end_of("scores")
    )
    return join_results([argued, scored])


# This is a task, so that each role's calls are numbered separately; a resumed step then finds them
# again, whatever order they finished in.
_contribute_once = stored_task("_contribute", _contribute)
