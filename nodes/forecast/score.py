from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.readings import ScoreReading
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState, Turn, seat_with_id, seat_with_role
from contend.graph.values import Degradation
from contend.models.replies import forecast as replies
from contend.models.seats import is_small
from contend.nodes.calls.decide import read_decision
from contend.nodes.calls.results import CallResults, turn_results
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import add_extraction_cost
from contend.nodes.forecast.calls import (
    describe_attempts,
    fill_once,
    speak,
    why_missing,
    without_turn,
)
from contend.nodes.forecast.numbers import composite
from contend.nodes.forecast.schedule import Deadline


async def score_argument(
    state: DebateState, runtime: Runtime[Any], argument: Turn, deadline: Deadline
) -> CallResults:
    settings: ForecastSettings = runtime.context
    judge, debater = seat_with_role(state, "judge"), seat_with_id(state, argument.seat)

    def report_unscored(why: str) -> Degradation:
        return report_problem(runtime, debater, argument.round, "not_scored", why)

    spoken = await speak(state, runtime, judge, "score", "score", argument, deadline)
    if isinstance(spoken, ModelFailed):
        reported = report_unscored(why_missing(spoken))
        return without_turn(spoken, reported, given_up=[argument.id])
    turn, degraded, weights = spoken["turn"], list(spoken["degraded"]), settings.criteria_weights
    criteria = tuple(weights)
    reading = read_decision(
        runtime,
        spoken,
        replies.ScoreBlock,
        lambda block, _: replies.score_from_block(block, argument.id, criteria),
        lambda text: replies.score_from_text(text, argument.id, criteria),
    )
    called = False
    if reading is None:
        small = is_small([judge])
        form = replies.scores_form(criteria, small=small)
        filled = await fill_once(state, runtime, judge, "scores", argument, form, deadline)
        turn, called = add_extraction_cost(turn, filled), filled["called"]
        degraded += filled["degraded"]
        if filled["block"]:
            reading = replies.score_from_form(filled["block"], argument.id, criteria, small=small)
        if reading is None:
            why = f"the judge's scores could not be read, {describe_attempts(filled)}"
            degraded.append(report_unscored(why))
    update: dict[str, Any] = {"asked_again": int(called)}
    if reading:
        # Use the judge's text as the reason if it gave no other.
        reason = reading.reason or turn.text
        update |= {"composite": composite(reading.scores, weights), "reason": reason}
    reading = (reading or ScoreReading(argument=argument.id)).model_copy(update=update)
    scored = turn.model_copy(update={"assessment": reading, "replies_to": argument.id})
    return turn_results(scored, degraded)
