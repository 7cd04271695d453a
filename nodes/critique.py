import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import BUDGET, ModelFailed
from contend.graph.protocols.base import strategy_for
from contend.graph.readings import Assessment, Point
from contend.graph.state import DebateState, seat_with_role, turns_of
from contend.graph.values import Seat
from contend.models.replies.critique import (
    CritiqueBlock,
    ShortCritiqueBlock,
    assessment_from_block,
    assessment_from_report,
)
from contend.models.replies.critique_words import READY_SIGNAL, assessment_from_text
from contend.nodes.budget import ends_rounds_when_spent
from contend.nodes.calls.decide import Reader, decide
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import publish_turn, substitute_turn, take_turn
from contend.nodes.prompting.points import points_of
from contend.prompts import load

_FOR_PEOPLE = (
    "Write the critique. Begin each objection on a line of its own with critical:, major: or "
    "minor:. If one of an earlier round is settled, write its id, such as S1 resolved. If no "
    "critical objection is left, write: No critical issues. If the answer is ready, make this the "
    "last line: Ready for synthesis"
)
_READY = re.compile(r"^ready for synthesis[.!]?$", re.IGNORECASE | re.MULTILINE)
_RESOLVED = re.compile(r"^(S\d+)\W*(?:is )?resolved\b", re.IGNORECASE | re.MULTILINE)


@ends_rounds_when_spent
async def critique(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    if state.get("stop"):  # the budget did not pay for the answer to review
        return {}
    strategy = strategy_for(runtime.context)
    seat = seat_with_role(state, strategy.critic_role)
    if strategy.critique_decides:
        return await _give_verdict(state, runtime, seat)
    return await _give_feedback(state, runtime, seat)


async def _give_verdict(state: DebateState, runtime: Runtime[Any], seat: Seat) -> dict[str, Any]:
    known = points_of(state)
    part = "again" if turns_of(state, "critique") else "first"
    decided = await decide(state, runtime, seat, "critique", part, _reader(known), known)
    turn, assessment, degraded = decided.turn, decided.read, decided.degraded
    if assessment is None:
        why = f"could not parse the verdict of {seat.name}; continuing"
        degraded.append(report_problem(runtime, seat, turn.round, "unreadable", why))
    answered = turns_of(state, "propose")[-1].id
    turn = turn.model_copy(update={"assessment": assessment, "replies_to": answered})
    publish_turn(runtime, turn)
    return {"turns": [turn], "degraded": degraded}


def _reader(known: Sequence[Point]) -> Reader[CritiqueBlock, Assessment]:
    return Reader(
        form=CritiqueBlock,
        short_form=ShortCritiqueBlock,
        from_block=partial(assessment_from_block, known=known),
        from_words=partial(assessment_from_text, known=known),
        from_report=partial(assessment_from_report, known=known),
        for_people=_FOR_PEOPLE,
        add_signs=_add_signs,
    )


def _add_signs(text: str) -> str:
    return _RESOLVED.sub(r"\1 ✅", _READY.sub(READY_SIGNAL, text))


async def _give_feedback(state: DebateState, runtime: Runtime[Any], seat: Seat) -> dict[str, Any]:
    try:
        spoken = await take_turn(state, runtime, seat, "critique", "feedback")
        turn, degraded = spoken["turn"], spoken["degraded"]
    except ModelFailed as failure:
        if failure.kind == BUDGET:
            raise
        reported = report_problem(runtime, seat, state["round"], "generic_feedback", str(failure))
        degraded = [*failure.before, reported]
        turn = substitute_turn(state, "critique", failure, seat, "failed", load("shared/feedback"))
    publish_turn(runtime, turn)
    return {"turns": [turn], "degraded": degraded}
