from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.events import node_event
from contend.graph.forecast_contract.result import DebateResult
from contend.graph.readings import VerdictReading
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState, Turn, seat_with_role
from contend.graph.values import Degradation, Seat
from contend.models.replies.forecast import VerdictBlock, verdict_from_block, verdict_from_text
from contend.nodes.calls.decide import read_decision
from contend.nodes.calls.results import CallResults, turn_results, update_of, with_turns
from contend.nodes.calls.stream import debate_id
from contend.nodes.calls.turn import TurnResult, publish_turn
from contend.nodes.forecast.argue import normalise_stated, with_numbers
from contend.nodes.forecast.arguments import context_of, kept_arguments
from contend.nodes.forecast.calls import report_missing, speak, without_turn
from contend.nodes.forecast.result import result_of
from contend.nodes.forecast.schedule import Clock, Deadline
from contend.nodes.timing import span_since, steady_now


async def synthesize(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Ask for the verdict and compute the forecast, even if the verdict fails."""
    settings: ForecastSettings = runtime.context
    judge, number, began = seat_with_role(state, "judge"), state["round"], steady_now()
    about = {"model": judge.model, "role": judge.role, "seat": judge.id}
    runtime.stream_writer(node_event("synthesis_start", number, **about))
    deadline = Clock(state, settings).end_of_debate()
    joined = await _give_verdict(state, runtime, judge, deadline)
    joined["spans"].append(span_since(began))
    turns = joined["turns"]
    ended: DebateState = {
        **with_turns(state, turns),
        "degraded": [*state.get("degraded", []), *joined["degraded"]],
        "spans": [*state.get("spans", []), *joined["spans"]],
    }
    result = result_of(ended, settings, debate_id(runtime), steady_now())
    answer = turns[0].text if turns else _without_verdict(result, joined["degraded"])
    for turn in turns:
        publish_turn(runtime, turn)
    forecast = result.model_dump(mode="json")
    runtime.stream_writer(
        node_event("final_complete", number, answer, model=judge.model, forecast=forecast)
    )
    return update_of(joined) | {"final_answer": answer, "forecast": forecast}


async def _give_verdict(
    state: DebateState, runtime: Runtime[Any], judge: Seat, deadline: Deadline
) -> CallResults:
    spoken = await speak(state, runtime, judge, "synthesize", "final", None, deadline)
    if isinstance(spoken, ModelFailed):
        reported = report_missing(runtime, judge, state["round"], spoken, "no_verdict")
        return without_turn(spoken, reported)
    turn = _with_reading(state, runtime, spoken)
    turn, no_numbers = await with_numbers(state, runtime, judge, turn, deadline)
    return turn_results(turn, [*spoken["degraded"], *no_numbers])


def _with_reading(state: DebateState, runtime: Runtime[Any], spoken: TurnResult) -> Turn:
    turn, outcomes = spoken["turn"], context_of(state).outcome_labels
    points = [each.point_id for each in kept_arguments(state)]
    read = read_decision(
        runtime,
        spoken,
        VerdictBlock,
        lambda block, _: verdict_from_block(block, outcomes, points),
        lambda text: verdict_from_text(text, outcomes),
    )
    reading = read or VerdictReading()
    stated = normalise_stated(reading.stated, outcomes)
    return turn.model_copy(update={"assessment": reading.model_copy(update={"stated": stated})})


def _without_verdict(result: DebateResult, degraded: list[Degradation]) -> str:
    why = degraded[-1].why if degraded else "it gave none"
    known = [
        f"{each.outcome_id} {each.probability:.0%}"
        for each in result.probability_distribution
        if each.probability is not None
    ]
    numbers = f"The roles' own numbers give: {', '.join(known)}." if known else "No numbers either."
    return f"There is no verdict by the judge: {why}. {numbers}"
