from typing import Any

from langgraph.runtime import Runtime

from contend.graph.phases import PhaseName
from contend.graph.readings import Adjustment, Ruling
from contend.graph.state import DebateState, Turn, seat_with_role
from contend.graph.values import NO_USAGE, Seat
from contend.models.replies.moderated import (
    AdjustmentBlock,
    PositionsBlock,
    RulingBlock,
    ShortPositionsBlock,
)
from contend.models.seats import is_small
from contend.nodes.budget import ends_rounds_when_spent
from contend.nodes.calls.decide import block_of, block_reader, decide, in_words
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import TurnResult, next_turn_id, publish_turn, take_turn
from contend.nodes.moderated.prompt_values import breaches_of
from contend.nodes.moderated.schedule import (
    possible_change,
    schedule_for,
    sides_of,
    unreviewed_statement,
)

_POSITIONS = block_reader(PositionsBlock, ShortPositionsBlock)


@ends_rounds_when_spent
async def moderate(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    sides = sides_of(state)
    due = state.get("programme") or schedule_for(state, sides)
    state = {**state, "programme": due}
    seat = seat_with_role(state, "moderator")
    if due[0].phase == "positions":
        return await _propose_positions(state, runtime, seat, sides)
    spoken = await take_turn(state, runtime, seat, due[0].phase, due[0].phase)
    ruled = _rule(state, runtime, seat, spoken)
    adjusted = _adjust(state, runtime, seat, spoken) if due[0].phase == "summary" else []
    turns = [*ruled, in_words(runtime, spoken["turn"]), *adjusted]
    for turn in turns:
        publish_turn(runtime, turn)
    return {"turns": turns, "programme": due[1:], "degraded": spoken["degraded"]}


def _rule(state: DebateState, runtime: Runtime[Any], seat: Seat, spoken: TurnResult) -> list[Turn]:
    reviewed = unreviewed_statement(state.get("turns", []))
    if reviewed is None or is_small([seat]):
        return []
    block = block_of(runtime, spoken, RulingBlock)
    if block is None:
        why = "could not parse the review of the last statement, so no rule was enforced"
        spoken["degraded"].append(report_problem(runtime, seat, state["round"], "unreadable", why))
        return []
    breach = block.found(breaches_of(runtime.context, reviewed))
    if breach is None:
        return []
    found = Ruling(turn=reviewed.id, seat=reviewed.seat, breach=breach)
    ruling = _further_turn(state, spoken["turn"], "ruling", block.ruling.strip(), found)
    return [ruling.model_copy(update={"replies_to": reviewed.id})]


def _adjust(
    state: DebateState, runtime: Runtime[Any], seat: Seat, spoken: TurnResult
) -> list[Turn]:
    possible = possible_change(runtime.context, state.get("turns", []), state["round"])
    if possible is None or is_small([seat]):
        return []
    block = block_of(runtime, spoken, AdjustmentBlock)
    if block is None or (block.adjust == possible and not block.reason):
        why = "could not parse whether the number of rounds changes, so it does not"
        spoken["degraded"].append(report_problem(runtime, seat, state["round"], "unreadable", why))
        return []
    if block.adjust != possible:
        return []
    made = Adjustment(change=possible)
    return [_further_turn(state, spoken["turn"], "adjustment", block.reason, made)]


def _further_turn(
    state: DebateState, said: Turn, phase: PhaseName, text: str, found: Ruling | Adjustment
) -> Turn:
    """Return a separate turn for a decision found in another turn's control block."""
    update = {
        "id": next_turn_id(state, phase, said.seat),
        "phase": phase,
        "text": text,
        "assessment": found,
        # Both turns come from one call; its cost and time are counted in the other turn.
        "usage": NO_USAGE,
        "started_at": said.started_at,
        "ended_at": said.started_at,
        "thinking": None,
        "quotes": (),
    }
    return said.model_copy(update=update)


async def _propose_positions(
    state: DebateState, runtime: Runtime[Any], seat: Seat, sides: list[Seat]
) -> dict[str, Any]:
    decided = await decide(state, runtime, seat, "positions", "positions", _POSITIONS)
    degraded = list(decided.degraded)
    given = decided.read.for_sides(len(sides)) if decided.read else None
    if given is None:
        given = _stand_ins(sides)
        why = f"the positions {seat.name} proposed could not be parsed; using general ones"
        degraded.append(report_problem(runtime, seat, state["round"], "general_positions", why))
    held = {side.id: position for side, position in zip(sides, given, strict=True)}
    seats = [
        each.model_copy(update={"position": held[each.id]}) if each.id in held else each
        for each in state["seats"]
    ]
    turn = _with_positions(in_words(runtime, decided.turn), sides, given)
    publish_turn(runtime, turn)
    rest = state["programme"][1:]
    return {"turns": [turn], "seats": seats, "programme": rest, "degraded": degraded}


def _with_positions(turn: Turn, sides: list[Seat], positions: list[str]) -> Turn:
    """Append the positions to the text, because viewers do not see the control block."""
    held = zip(sides, positions, strict=True)
    lines = "\n".join(f"- {side.name}: {position}" for side, position in held)
    return turn.model_copy(update={"text": f"{turn.text}\n\n{lines}"})


def _stand_ins(sides: list[Seat]) -> list[str]:
    if len(sides) == 2:
        return ["What the topic suggests is right.", "What the topic suggests is wrong."]
    return [f"The view on the topic that {side.name} holds against all others." for side in sides]
