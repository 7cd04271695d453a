"""The judge's verdict, and the distribution that is computed from all that was stated."""

from datetime import UTC, datetime
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.contract.result import DebateResult
from contend.graph.events import node_event
from contend.graph.readings import VerdictReading
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState, seat_with_role
from contend.graph.values import Degradation, Seat
from contend.models.replies.control import nonce, read_block
from contend.models.replies.forecast import (
    VerdictBlock,
    numbers_form,
    stated_from_form,
    verdict_from_block,
    verdict_from_words,
)
from contend.models.seats import is_demonstration
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import TurnResult, add_extraction_cost, debate_id, publish_turn
from contend.nodes.forecast.arguments import context_of, kept_arguments
from contend.nodes.forecast.calls import (
    CallOutcome,
    Filled,
    Work,
    fill_once,
    how_often,
    report_missing,
    speak_once,
    update_of,
    with_turns,
)
from contend.nodes.forecast.numbers import is_complete, read_distribution
from contend.nodes.forecast.result import result_of
from contend.nodes.forecast.schedule import Clock, Deadline


async def synthesize(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Ask the judge for a verdict, then compute; without one the roles' own numbers count."""
    settings: ForecastSettings = runtime.context
    judge, number, began = seat_with_role(state, "judge"), state["round"], datetime.now(UTC)
    runtime.stream_writer(node_event("synthesis_start", number, model=judge.model, seat=judge.id))
    deadline = Clock(state, settings).end_of_debate()
    outcome = await speak_once(state, runtime, judge, "synthesize", "final", None, deadline)
    work = await _verdict(state, runtime, judge, outcome, deadline)
    update, turns = update_of(work, began), work["turns"]
    ended: DebateState = {
        **with_turns(state, turns),
        "degraded": [*state.get("degraded", []), *work["degraded"]],
        "spans": [*state.get("spans", []), *update["spans"]],
    }
    result = result_of(ended, settings, debate_id(runtime), datetime.now(UTC))
    answer = turns[0].text if turns else _without_verdict(result, work["degraded"])
    for turn in turns:
        publish_turn(runtime, turn)
    forecast = result.model_dump(mode="json")
    runtime.stream_writer(
        node_event("final_complete", number, answer, model=judge.model, forecast=forecast)
    )
    return update | {"final_answer": answer, "forecast": forecast}


async def _verdict(
    state: DebateState, runtime: Runtime[Any], judge: Seat, outcome: CallOutcome, deadline: Deadline
) -> Work:
    spoken, degraded = outcome["spoken"], list(outcome["degraded"])
    if spoken is None:
        degraded.append(report_missing(runtime, judge, state["round"], outcome, "no_verdict"))
        return {"turns": [], "degraded": degraded, "spans": outcome["spans"]}
    turn, reading = spoken["turn"], _read(state, runtime, spoken)
    outcomes = context_of(state).outcome_ids
    if not is_complete(reading.stated.probabilities, outcomes):
        form = numbers_form(outcomes, small=is_demonstration([judge]))
        seen = with_turns(state, [turn])
        filled = await fill_once(seen, runtime, judge, "numbers", turn, form, deadline)
        turn = add_extraction_cost(turn, filled)
        degraded += filled["degraded"]
        reading = _with_form(reading, filled, outcomes)
        if not is_complete(reading.stated.probabilities, outcomes):
            why = f"the verdict gives no readable distribution, {how_often(filled)}"
            degraded.append(report_problem(runtime, judge, state["round"], "no_numbers", why))
    turn = turn.model_copy(update={"assessment": reading})
    return {"turns": [turn], "degraded": degraded, "spans": []}


def _read(state: DebateState, runtime: Runtime[Any], spoken: TurnResult) -> VerdictReading:
    turn, outcomes = spoken["turn"], context_of(state).outcome_ids
    points = [said.point_id for said in kept_arguments(state)]
    block = read_block(spoken["raw"], nonce(debate_id(runtime), turn.id), VerdictBlock)
    reading = verdict_from_block(block, outcomes, points) if block else None
    reading = reading or verdict_from_words(turn.text, outcomes) or VerdictReading()
    return _normal(reading, outcomes)


def _with_form(
    reading: VerdictReading, filled: Filled, outcomes: tuple[str, ...]
) -> VerdictReading:
    reading = reading.model_copy(update={"asked_again": int(filled["called"])})
    if filled["block"] is None:
        return reading
    stated, _ = stated_from_form(filled["block"], outcomes)
    again = _normal(reading.model_copy(update={"stated": stated}), outcomes)
    more = len(again.stated.probabilities) > len(reading.stated.probabilities)
    better = again.model_copy(update={"read_from": reading.read_from or "extraction"})
    return better if more else reading


def _normal(reading: VerdictReading, outcomes: tuple[str, ...]) -> VerdictReading:
    read = read_distribution(reading.stated.raw, outcomes) or {}
    stated = reading.stated.model_copy(update={"probabilities": read})
    return reading.model_copy(update={"stated": stated})


def _without_verdict(result: DebateResult, degraded: list[Degradation]) -> str:
    """Describe the roles' numbers if the judge gave no verdict."""
    why = degraded[-1].why if degraded else "it gave none"
    known = [
        f"{each.outcome_id} {each.probability:.0%}"
        for each in result.probability_distribution
        if each.probability is not None
    ]
    numbers = f"The roles' own numbers give: {', '.join(known)}." if known else "No numbers either."
    return f"There is no verdict by the judge: {why}. {numbers}"
