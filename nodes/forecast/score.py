"""Score one argument: the judge's scores from the block, the words or a form."""

from typing import Any

from langgraph.runtime import Runtime

from contend.graph.readings import ScoreReading
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState, Turn, seat_with_id, seat_with_role
from contend.graph.values import Degradation
from contend.models.replies.forecast import (
    ScoreBlock,
    score_from_block,
    score_from_form,
    score_from_words,
    scores_form,
)
from contend.models.seats import is_demonstration
from contend.nodes.calls.decide import block_of
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import add_extraction_cost
from contend.nodes.forecast.calls import Work, fill_once, how_often, speak_once, without_turn
from contend.nodes.forecast.numbers import composite
from contend.nodes.forecast.schedule import Deadline


async def score_argument(
    state: DebateState, runtime: Runtime[Any], argument: Turn, deadline: Deadline
) -> Work:
    settings: ForecastSettings = runtime.context
    judge, debater = seat_with_role(state, "judge"), seat_with_id(state, argument.seat)

    def report_unscored(why: str) -> Degradation:
        return report_problem(runtime, debater, argument.round, "not_scored", why)

    outcome = await speak_once(state, runtime, judge, "score", "score", argument, deadline)
    spoken, degraded = outcome["spoken"], list(outcome["degraded"])
    if spoken is None:
        return without_turn(outcome, report_unscored(outcome["why"]), given_up=[argument.id])
    turn, criteria = spoken["turn"], settings.scoring_criteria
    block = block_of(runtime, spoken, ScoreBlock)
    reading = score_from_block(block, argument.id, criteria) if block else None
    reading = reading or score_from_words(turn.text, argument.id, criteria)
    called = False
    if reading is None:
        small = is_demonstration([judge])
        form = scores_form(criteria, small=small)
        filled = await fill_once(state, runtime, judge, "scores", argument, form, deadline)
        turn, called = add_extraction_cost(turn, filled), filled["called"]
        degraded += filled["degraded"]
        if filled["block"]:
            reading = score_from_form(filled["block"], argument.id, criteria, small=small)
        if reading is None:
            why = f"the judge's scores could not be read, {how_often(filled)}"
            degraded.append(report_unscored(why))
    reading = _complete(reading, turn) if reading else ScoreReading(argument=argument.id)
    reading = reading.model_copy(update={"asked_again": int(called)})
    scored = turn.model_copy(update={"assessment": reading, "replies_to": argument.id})
    return {"turns": [scored], "degraded": degraded, "spans": []}


def _complete(reading: ScoreReading, turn: Turn) -> ScoreReading:
    update = {"composite": composite(reading.scores), "reason": reading.reason or turn.text}
    return reading.model_copy(update=update)
