"""Score one argument: the judge's scores from the block, the words or a form."""

from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.contract.terms import Criterion
from contend.graph.readings import ScoreReading
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState, Turn, seat_with_id, seat_with_role
from contend.graph.values import Degradation, Seat
from contend.models.replies.control import nonce, read_block
from contend.models.replies.forecast import (
    ScoreBlock,
    score_from_block,
    score_from_form,
    score_from_words,
    scores_form,
)
from contend.models.seats import is_demonstration
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import TurnResult, add_extraction_cost, debate_id
from contend.nodes.forecast.calls import Work, fill_once, how_often, speak_once
from contend.nodes.forecast.numbers import composite
from contend.nodes.forecast.schedule import Deadline


async def score_argument(
    state: DebateState, room: Runtime[Any], argument: Turn, deadline: Deadline
) -> Work:
    """Have the judge score one argument of the state."""
    settings: ForecastSettings = room.context
    judge, debater = seat_with_role(state, "judge"), seat_with_id(state, argument.seat)
    outcome = await speak_once(state, room, judge, "score", "score", argument, deadline)
    spoken, degraded = outcome["spoken"], list(outcome["degraded"])
    if spoken is None:
        degraded.append(report_problem(room, debater, argument.round, "not_scored", outcome["why"]))
        given_up = [argument.id]
        return {"turns": [], "degraded": degraded, "spans": outcome["spans"], "given_up": given_up}
    turn, reading = spoken["turn"], _read(room, spoken, argument, settings.scoring_criteria)
    if reading is None:
        turn, reading, more = await _asked_again(state, room, judge, turn, argument, deadline)
        degraded += more
    scored = turn.model_copy(update={"assessment": reading, "replies_to": argument.id})
    return {"turns": [scored], "degraded": degraded, "spans": []}


def _read(
    room: Runtime[Any], spoken: TurnResult, argument: Turn, criteria: Sequence[Criterion]
) -> ScoreReading | None:
    turn = spoken["turn"]
    block = read_block(spoken["raw"], nonce(debate_id(room), turn.id), ScoreBlock)
    reading = score_from_block(block, argument.id, criteria) if block else None
    reading = reading or score_from_words(turn.text, argument.id, criteria)
    return _complete(reading, turn) if reading else None


def _complete(reading: ScoreReading, turn: Turn) -> ScoreReading:
    """Add the weighted mean, and the judge's text as the reason if it gave none."""
    update = {"composite": composite(reading.scores), "reason": reading.reason or turn.text}
    return reading.model_copy(update=update)


async def _asked_again(
    state: DebateState,
    room: Runtime[Any],
    judge: Seat,
    turn: Turn,
    argument: Turn,
    deadline: Deadline,
) -> tuple[Turn, ScoreReading, list[Degradation]]:
    criteria, small = room.context.scoring_criteria, is_demonstration([judge])
    form = scores_form(criteria, small=small)
    filled = await fill_once(state, room, judge, "scores", argument, form, deadline)
    turn, block, degraded = (
        add_extraction_cost(turn, filled),
        filled["block"],
        list(filled["degraded"]),
    )
    found = score_from_form(block, argument.id, criteria, small=small) if block else None
    if found is None:
        why = f"the judge's scores could not be read, {how_often(filled)}"
        debater = seat_with_id(state, argument.seat)
        degraded.append(report_problem(room, debater, argument.round, "not_scored", why))
    reading = _complete(found, turn) if found else ScoreReading(argument=argument.id)
    reading = reading.model_copy(update={"asked_again": int(filled["called"])})
    return turn, reading, degraded
