import re
from collections.abc import Iterable
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.readings import ArgumentReading, StatedProbabilities, VerdictReading
from contend.graph.state import DebateState, Turn
from contend.graph.values import Degradation, Seat
from contend.models.replies import forecast as replies
from contend.models.replies.fields import Outcomes
from contend.models.seats import is_small
from contend.models.text import shorten
from contend.nodes.calls.decide import read_decision
from contend.nodes.calls.results import CallResults, turn_results, with_turns
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import TurnResult, add_extraction_cost
from contend.nodes.forecast.arguments import (
    FEWEST_PRECEDENTS,
    all_arguments,
    context_of,
    kept_arguments,
    prefixes_of,
)
from contend.nodes.forecast.calls import (
    FilledForm,
    describe_attempts,
    fill_once,
    report_missing,
    speak,
    without_turn,
)
from contend.nodes.forecast.numbers import is_complete, read_distribution
from contend.nodes.forecast.schedule import Deadline

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_LONGEST_POINT = 160

Stating = ArgumentReading | VerdictReading


async def argue(
    state: DebateState,
    runtime: Runtime[Any],
    seat: Seat,
    part: str,
    about: Turn | None,
    deadline: Deadline,
) -> CallResults:
    spoken = await speak(state, runtime, seat, "propose", part, about, deadline)
    if isinstance(spoken, ModelFailed):
        reported = report_missing(runtime, seat, state["round"], spoken, "sat_out")
        return without_turn(spoken, reported, given_up=[about.id] if about else [])
    turn = _with_reading(state, runtime, spoken)
    overlong = _report_overlong(runtime, seat, turn)
    turn, no_numbers = await with_numbers(state, runtime, seat, turn, deadline)
    turn, no_precedents = await _with_precedents(state, runtime, seat, turn, deadline)
    turn, no_references = await _with_references(state, runtime, seat, turn, deadline)
    problems = [*overlong, *no_numbers, *no_precedents, *no_references]
    return turn_results(turn, [*spoken["degraded"], *problems])


def _report_overlong(runtime: Runtime[Any], seat: Seat, turn: Turn) -> list[Degradation]:
    if turn.length is None or not turn.is_overlong:
        return []
    why = f"{turn.length.tokens} tokens of at most {turn.length.limit}; it is kept whole"
    return [report_problem(runtime, seat, turn.round, "overlong", why)]


def reading_of(turn: Turn) -> ArgumentReading:
    read = turn.assessment
    return read if isinstance(read, ArgumentReading) else ArgumentReading()


def _with_reading(state: DebateState, runtime: Runtime[Any], spoken: TurnResult) -> Turn:
    turn, outcomes = spoken["turn"], context_of(state).outcome_labels
    prefixes = prefixes_of(state)
    read = read_decision(
        runtime,
        spoken,
        replies.ArgumentBlock,
        lambda block, _: replies.argument_from_block(block, outcomes, prefixes),
        lambda text: replies.argument_from_text(text, outcomes),
    )
    reading = read or ArgumentReading()
    earlier = {each.point_id for each in all_arguments(state) if each.turn.round < turn.round}
    named = dict.fromkeys((*reading.refers_to, *replies.point_ids(turn.text)))
    first_sentence = _SENTENCE.split(" ".join(turn.text.split()))[0]
    rebuts = tuple(role for role in reading.rebuts if role != turn.role)
    update = {
        "stated": normalise_stated(reading.stated, outcomes),
        "point": reading.point or shorten(first_sentence, _LONGEST_POINT),
        "refers_to": tuple(point for point in named if point in earlier),
        "rebuts": rebuts if turn.round > 1 else (),
    }
    return turn.model_copy(update={"assessment": reading.model_copy(update=update)})


def normalise_stated(stated: StatedProbabilities, outcomes: Iterable[str]) -> StatedProbabilities:
    probabilities = read_distribution(stated.raw, list(outcomes)) or {}
    return stated.model_copy(update={"probabilities": probabilities})


async def with_numbers(
    state: DebateState, runtime: Runtime[Any], seat: Seat, turn: Turn, deadline: Deadline
) -> tuple[Turn, list[Degradation]]:
    outcomes, reading = context_of(state).outcome_labels, turn.assessment
    if not isinstance(reading, Stating):
        return turn, []
    if is_complete(reading.stated.probabilities, list(outcomes)):
        return turn, []
    form = replies.numbers_form(list(outcomes), small=is_small([seat]))
    seen = with_turns(state, [turn])
    filled = await fill_once(seen, runtime, seat, "numbers", turn, form, deadline)
    reading = _with_form(reading, filled, outcomes)
    turn = add_extraction_cost(turn, filled).model_copy(update={"assessment": reading})
    missing = [outcome for outcome in outcomes if outcome not in reading.stated.probabilities]
    if not missing:
        return turn, filled["degraded"]
    why = f"no readable probability for {', '.join(missing)}, {describe_attempts(filled)}"
    reported = report_problem(runtime, seat, turn.round, "no_numbers", why)
    return turn, [*filled["degraded"], reported]


def _with_form(reading: Stating, filled: FilledForm, outcomes: Outcomes) -> Stating:
    reading = reading.model_copy(update={"asked_again": reading.asked_again + filled["called"]})
    if filled["block"] is None:
        return reading
    stated, outcome = replies.stated_from_form(filled["block"], outcomes)
    stated = normalise_stated(stated, outcomes)
    if len(stated.probabilities) <= len(reading.stated.probabilities):
        return reading
    update: dict[str, Any] = {"stated": stated, "read_from": reading.read_from or "extraction"}
    if isinstance(reading, ArgumentReading):
        update["outcome"] = reading.outcome or outcome
    return reading.model_copy(update=update)


async def _with_precedents(
    state: DebateState, runtime: Runtime[Any], seat: Seat, turn: Turn, deadline: Deadline
) -> tuple[Turn, list[Degradation]]:
    reading = reading_of(turn)
    enough = len(reading.precedents) >= FEWEST_PRECEDENTS
    argued_before = any(each.role == seat.role for each in all_arguments(state))
    if seat.role != "historian" or enough or argued_before:
        return turn, []
    seen = with_turns(state, [turn])
    filled = await fill_once(
        seen, runtime, seat, "precedents", turn, replies.PrecedentsForm, deadline
    )
    found = replies.precedents_from_form(filled["block"]) if filled["block"] is not None else ()
    known = {event.event.casefold(): event for event in (*found, *reading.precedents)}
    asked = reading.asked_again + filled["called"]
    reading = reading.model_copy(update={"precedents": tuple(known.values()), "asked_again": asked})
    turn = add_extraction_cost(turn, filled).model_copy(update={"assessment": reading})
    if len(known) >= FEWEST_PRECEDENTS:
        return turn, filled["degraded"]
    have = f"{len(known)} of {FEWEST_PRECEDENTS} precedents with date and outcome"
    why = f"{have}, {describe_attempts(filled)}"
    reported = report_problem(runtime, seat, turn.round, "no_precedents", why)
    return turn, [*filled["degraded"], reported]


async def _with_references(
    state: DebateState, runtime: Runtime[Any], seat: Seat, turn: Turn, deadline: Deadline
) -> tuple[Turn, list[Degradation]]:
    earlier = [e.point_id for e in kept_arguments(state) if e.turn.round < turn.round]
    reading = reading_of(turn)
    is_closing = turn.round == runtime.context.max_rounds
    if not is_closing or not earlier or reading.refers_to:
        return turn, []
    seen, form = with_turns(state, [turn]), replies.points_form(earlier)
    filled = await fill_once(seen, runtime, seat, "references", turn, form, deadline)
    cited = dict.fromkeys(filled["block"]["refers_to"] if filled["block"] else ())
    asked = reading.asked_again + filled["called"]
    reading = reading.model_copy(update={"refers_to": tuple(cited), "asked_again": asked})
    turn = add_extraction_cost(turn, filled).model_copy(update={"assessment": reading})
    if cited:
        return turn, filled["degraded"]
    why = f"it refers to no point of earlier rounds, {describe_attempts(filled)}"
    reported = report_problem(runtime, seat, turn.round, "no_references", why)
    return turn, [*filled["degraded"], reported]
