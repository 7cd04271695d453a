from collections.abc import Iterable
from typing import Any

from contend.graph.readings import Ruling
from contend.graph.record import (
    RecordedAdjustment,
    RecordedClaim,
    RecordedRuling,
    Scoring,
    SideResult,
)
from contend.graph.state import DebateState, Turn
from contend.nodes.moderated.prompt_values import checks_of
from contend.nodes.moderated.schedule import MODERATOR, adjustments_in
from contend.nodes.moderated.score_notes import scoring_of
from contend.nodes.timing import worked_ms


def moderated_record(state: DebateState) -> dict[str, Any]:
    seats, turns = state.get("seats", []), state.get("turns", [])
    if not any(seat.role == MODERATOR for seat in seats):
        return {}
    stop, scores = state.get("stop"), state.get("verdict")
    sides = {
        side.name: SideResult(total=side.total, breakdown=side.breakdown, turns=list(side.turns))
        for side in (scores.standings if scores else ())
    }
    return {
        "end_reason": stop.reason if stop else None,
        "duration_ms": worked_ms(state),
        "summary": state.get("final_answer"),
        "scores": sides if scores else None,
        "scoring": Scoring.model_validate(scoring_of(state, scores)) if scores else None,
        "winner": scores.winner if scores else None,
        "fact_checks": _fact_checks(turns),
        "rulings": _rulings(turns),
        "adjustments": [
            RecordedAdjustment(round=turn.round, change=made.change, text=turn.text)
            for turn, made in adjustments_in(turns)
        ],
    }


def moderated_round(turns: Iterable[Turn]) -> dict[str, Any]:
    return {"turns": [_recorded(turn) for turn in turns]}


def _recorded(turn: Turn) -> dict[str, Any]:
    kept = {"seat": turn.seat, "phase": turn.phase, "text": turn.text}
    cut = turn.length.cut_after if turn.length else None
    return kept if cut is None else {**kept, "cut_after": cut}


def _fact_checks(turns: list[Turn]) -> list[RecordedClaim]:
    by_id = {turn.id: turn for turn in turns}
    corrected = {turn.replies_to: turn.text for turn in turns if turn.phase == "correction"}
    return [
        RecordedClaim(
            turn=check.turn,
            seat=by_id[check.turn].seat,
            round=by_id[check.turn].round,
            correction=corrected.get(check.turn) if claim in check.contradicted else None,
            **claim.model_dump(),
        )
        for check in checks_of(turns)
        for claim in check.claims
    ]


def _rulings(turns: list[Turn]) -> list[RecordedRuling]:
    return [
        RecordedRuling(
            round=turn.round, text=turn.text, **turn.assessment.model_dump(exclude={"kind"})
        )
        for turn in turns
        if isinstance(turn.assessment, Ruling)
    ]
