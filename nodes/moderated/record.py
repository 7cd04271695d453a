"""What the published record of a debate on the floor has besides that of any other."""

from collections.abc import Iterable
from typing import Any

from contend.graph.readings import DebateScores, Ruling, SideScore
from contend.graph.state import DebateState, Turn
from contend.nodes.moderated.prompt_values import checks_of
from contend.nodes.moderated.schedule import MODERATOR
from contend.nodes.moderated.score_notes import scoring_of


def moderated_record(state: DebateState) -> dict[str, Any]:
    """Ending, scores, checks and rulings; nothing for a debate without a moderator."""
    seats, turns = state.get("seats", []), state.get("turns", [])
    if not any(seat.role == MODERATOR for seat in seats):
        return {}
    stop, verdict = state.get("stop"), state.get("verdict")
    return {
        "end_reason": stop.reason if stop else None,
        "duration_ms": _duration_ms(turns),
        "summary": state.get("final_answer"),
        "scores": scores_of(verdict),
        "scoring": scoring_of(state, verdict) if verdict else None,
        "winner": _winner(verdict),
        "fact_checks": _fact_checks(turns),
        "rulings": _rulings(turns),
    }


def moderated_round(turns: Iterable[Turn]) -> dict[str, Any]:
    """A round in which a seat may speak more than once."""
    said = [{"seat": turn.seat, "phase": turn.phase, "text": turn.text} for turn in turns]
    return {"turns": said}


def scores_of(verdict: DebateScores | None) -> dict[str, Any] | None:
    """The scores by the sides' names; None where nothing was scored."""
    return {each.name: _standing(each) for each in verdict.standings} if verdict else None


def _standing(standing: SideScore) -> dict[str, Any]:
    return {
        "total": standing.total,
        "breakdown": standing.breakdown,
        "turns": [each.model_dump(mode="json") for each in standing.turns],
    }


def _winner(verdict: DebateScores | None) -> str | None:
    standings = verdict.standings if verdict else ()
    return next((each.name for each in standings if verdict and each.seat == verdict.winner), None)


def _fact_checks(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """Every claim that was checked, with the statement it stands in and its correction."""
    listed = list(turns)
    by_id = {turn.id: turn for turn in listed}
    corrected = {turn.replies_to: turn.text for turn in listed if turn.phase == "correction"}
    return [
        {
            "turn": check.turn,
            "seat": by_id[check.turn].seat,
            "round": by_id[check.turn].round,
            **claim.model_dump(),
            "correction": corrected.get(check.turn) if claim in check.contradicted else None,
        }
        for check in checks_of(listed)
        for claim in check.claims
    ]


def _rulings(turns: Iterable[Turn]) -> list[dict[str, Any]]:
    return [
        {**turn.assessment.model_dump(exclude={"kind"}), "round": turn.round, "text": turn.text}
        for turn in turns
        if isinstance(turn.assessment, Ruling)
    ]


def _duration_ms(turns: list[Turn]) -> int | None:
    """From the first word to the last, pauses included."""
    if not turns:
        return None
    begun, ended = min(t.started_at for t in turns), max(t.ended_at for t in turns)
    return round((ended - begun).total_seconds() * 1000)
