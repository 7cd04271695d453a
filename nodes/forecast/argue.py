"""One role's argument: the turn, its probabilities, and second requests for missing parts."""

import re
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.readings import ArgumentReading, StatedProbabilities
from contend.graph.state import DebateState, Turn
from contend.graph.values import Degradation, Seat
from contend.models.replies.control import nonce, read_block
from contend.models.replies.forecast import (
    ArgumentBlock,
    PrecedentsForm,
    argument_from_block,
    argument_from_words,
    numbers_form,
    point_ids,
    precedents_from_form,
    stated_from_form,
)
from contend.models.seats import is_demonstration
from contend.models.text import shorten
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import TurnResult, add_extraction_cost, debate_id
from contend.nodes.forecast.arguments import all_arguments, context_of
from contend.nodes.forecast.calls import (
    Work,
    fill_once,
    how_often,
    report_missing,
    speak_once,
    with_turns,
)
from contend.nodes.forecast.numbers import is_complete, read_distribution
from contend.nodes.forecast.schedule import Deadline

FEWEST_PRECEDENTS = 2
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_LONGEST_POINT = 160


async def argue(
    state: DebateState,
    room: Runtime[Any],
    seat: Seat,
    part: str,
    about: Turn | None,
    deadline: Deadline,
) -> Work:
    """Take a role's turn; a failure is a result too."""
    outcome = await speak_once(state, room, seat, "propose", part, about, deadline)
    spoken, degraded = outcome["spoken"], list(outcome["degraded"])
    if spoken is None:
        degraded.append(report_missing(room, seat, state["round"], outcome, "sat_out"))
        given_up = [about.id] if about else []
        return {"turns": [], "degraded": degraded, "spans": outcome["spans"], "given_up": given_up}
    turn = _with_reading(state, room, spoken)
    degraded += _overlong(room, seat, turn)
    turn, more = await _with_numbers(state, room, seat, turn, deadline)
    degraded += more
    turn, more = await _with_precedents(state, room, seat, turn, deadline)
    return {"turns": [turn], "degraded": degraded + more, "spans": []}


def _overlong(room: Runtime[Any], seat: Seat, turn: Turn) -> list[Degradation]:
    """Report an argument over the length limit; it is kept whole."""
    if turn.length is None or not turn.is_overlong:
        return []
    why = f"{turn.length.tokens} tokens of at most {turn.length.limit}; it is kept whole"
    return [report_problem(room, seat, turn.round, "overlong", why)]


def reading_of(turn: Turn) -> ArgumentReading:
    read = turn.assessment
    return read if isinstance(read, ArgumentReading) else ArgumentReading()


def _with_reading(state: DebateState, room: Runtime[Any], spoken: TurnResult) -> Turn:
    """Parse the block, or the words, of an argument."""
    turn, outcomes = spoken["turn"], context_of(state).outcome_ids
    block = read_block(spoken["raw"], nonce(debate_id(room), turn.id), ArgumentBlock)
    reading = argument_from_block(block, outcomes) if block else None
    reading = reading or argument_from_words(turn.text, outcomes) or ArgumentReading()
    earlier = {s.point_id for s in all_arguments(state) if s.turn.round < turn.round}
    named = dict.fromkeys((*reading.refers_to, *point_ids(turn.text)))
    rebuts = tuple(role for role in reading.rebuts if role != turn.role)
    update = {
        "stated": _normal(reading.stated, outcomes),
        "point": reading.point or _first_sentence(turn.text),
        "refers_to": tuple(point for point in named if point in earlier),
        "rebuts": rebuts if turn.round > 1 else (),
    }
    return _with(turn, reading.model_copy(update=update))


def _with(turn: Turn, reading: ArgumentReading) -> Turn:
    return turn.model_copy(update={"assessment": reading})


def _normal(stated: StatedProbabilities, outcomes: tuple[str, ...]) -> StatedProbabilities:
    return stated.model_copy(
        update={"probabilities": read_distribution(stated.raw, outcomes) or {}}
    )


def _first_sentence(text: str) -> str:
    """Return the first sentence, for a role that named no point."""
    return shorten(_SENTENCE.split(" ".join(text.split()))[0], _LONGEST_POINT)


async def _with_numbers(
    state: DebateState, room: Runtime[Any], seat: Seat, turn: Turn, deadline: Deadline
) -> tuple[Turn, list[Degradation]]:
    """Ask once more for probabilities that could not be parsed."""
    outcomes, reading = context_of(state).outcome_ids, reading_of(turn)
    if is_complete(reading.stated.probabilities, outcomes):
        return turn, []
    form = numbers_form(outcomes, small=is_demonstration([seat]))
    seen = with_turns(state, [turn])
    filled = await fill_once(seen, room, seat, "numbers", turn, form, deadline)
    turn, degraded = add_extraction_cost(turn, filled), list(filled["degraded"])
    update: dict[str, Any] = {"asked_again": reading.asked_again + filled["called"]}
    if filled["block"] is not None:
        stated, outcome = stated_from_form(filled["block"], outcomes)
        stated = _normal(stated, outcomes)
        if len(stated.probabilities) > len(reading.stated.probabilities):
            update |= {"stated": stated, "outcome": reading.outcome or outcome}
            update |= {"read_from": reading.read_from or "extraction"}
    reading = reading.model_copy(update=update)
    given = reading.stated.probabilities
    missing = [outcome for outcome in outcomes if outcome not in given]
    if missing:
        why = f"no readable probability for {', '.join(missing)}, {how_often(filled)}"
        degraded.append(report_problem(room, seat, turn.round, "no_numbers", why))
    return _with(turn, reading), degraded


async def _with_precedents(
    state: DebateState, room: Runtime[Any], seat: Seat, turn: Turn, deadline: Deadline
) -> tuple[Turn, list[Degradation]]:
    """Ask a historian once for precedents if its first argument cites too few."""
    reading = reading_of(turn)
    enough = len(reading.precedents) >= FEWEST_PRECEDENTS
    if seat.role != "historian" or enough or all_arguments_of(state, seat.role):
        return turn, []
    seen = with_turns(state, [turn])
    filled = await fill_once(seen, room, seat, "precedents", turn, PrecedentsForm, deadline)
    turn, degraded = add_extraction_cost(turn, filled), list(filled["degraded"])
    found = precedents_from_form(filled["block"]) if filled["block"] is not None else ()
    known = {event.event.casefold(): event for event in (*found, *reading.precedents)}
    asked = reading.asked_again + filled["called"]
    update = {"precedents": tuple(known.values()), "asked_again": asked}
    if len(known) < FEWEST_PRECEDENTS:
        have = f"{len(known)} of {FEWEST_PRECEDENTS} precedents with date and outcome"
        why = f"{have}, {how_often(filled)}"
        degraded.append(report_problem(room, seat, turn.round, "no_precedents", why))
    return _with(turn, reading.model_copy(update=update)), degraded


def all_arguments_of(state: DebateState, role: str) -> list[Turn]:
    return [said.turn for said in all_arguments(state) if said.role == role]
