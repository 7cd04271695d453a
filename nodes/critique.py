"""The Skeptic attacks the latest answer and says what is still open."""

from typing import Any

from langgraph.runtime import Runtime

from graph.state import Assessment, DebateState, Point, seat_with_role, turns_of
from models.control import nonce, read_block
from models.critiques import (
    CritiqueBlock,
    ShortCritiqueBlock,
    assessment_from_block,
    assessment_from_report,
    assessment_from_words,
)
from models.seating import is_demonstration
from nodes.briefing import points_of
from nodes.speaking import Spoken, announce, debate_id, degrade, report_once, say_once, with_report


async def critique(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Take the Skeptic's turn: speech, then its assessment by block, words or extraction."""
    seat = seat_with_role(state, "skeptic")
    known = points_of(state)
    part = "again" if turns_of(state, "critique") else "first"
    spoken = await say_once(state, runtime, seat, "critique", part)
    turn, degraded = spoken["turn"], list(spoken["degraded"])
    assessment = read_critique(spoken, nonce(debate_id(runtime), turn.id), known)
    if assessment is None:
        form = ShortCritiqueBlock if is_demonstration([seat]) else CritiqueBlock
        reported = await report_once(state, runtime, seat, turn.text, form, known)
        degraded += reported["degraded"]
        turn = with_report(turn, reported)
        if reported["block"] is not None:
            block = form.model_validate(reported["block"])
            assessment = assessment_from_report(block, turn.text, known)
        else:
            why = "the critique has no readable verdict, so it cannot end the debate"
            degraded.append(degrade(runtime, seat, turn.round, "unreadable", why))
    answered = turns_of(state, "propose")[-1].id
    turn = turn.model_copy(update={"assessment": assessment, "replies_to": answered})
    announce(runtime, turn)
    return {"turns": [turn], "degraded": degraded}


def read_critique(spoken: Spoken, tag: str, known: list[Point]) -> Assessment | None:
    """The control block first, then the protocol's words; None when neither can be read."""
    block = read_block(spoken["raw"], tag, CritiqueBlock)
    if block is not None:
        return assessment_from_block(block, spoken["turn"].text, known)
    return assessment_from_words(spoken["turn"].text, known)
