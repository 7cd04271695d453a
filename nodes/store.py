"""Phase 6: the debate in its published form."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.runtime import Runtime

from graph.state import NO_USAGE, DebateState, Point, Turn, turns_of
from models.seating import is_demonstration, is_demonstration_model
from nodes.briefing import points_of
from nodes.speaking import debate_id

_AFTER_THE_ROUNDS = ("synthesize", "score")

Interval = tuple[datetime, datetime]


async def store(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Write the trace."""
    return {"trace": trace_of(state, debate_id(runtime))}


def trace_of(state: DebateState, debate: str, user_rating: int | None = None) -> dict[str, Any]:
    """The trace of a debate, finished or not: what is not there yet is null or empty."""
    stop, rated, retrieval = state.get("stop"), state.get("auto_score"), state.get("retrieval")
    by_rating = user_rating if user_rating is not None else (rated.score if rated else None)
    return {
        "id": debate,
        "timestamp": retrieval.started_at.isoformat() if retrieval else None,
        "query": state.get("question", ""),
        "templates_used": [use.id for use in retrieval.templates] if retrieval else [],
        "rounds": _rounds(state),
        "final_answer": state.get("final_answer"),
        "total_rounds": len(_round_turns(state)),
        "early_stopped": stop is not None and stop.reason != "max_rounds",
        "quality_score": by_rating,
        "user_rating": user_rating,
        "auto_score": _auto_score(state),
        "models": _models(state),
        "timing": _timing(state),
        "stop_reason": stop.reason if stop else None,
        "stop": stop.model_dump() if stop else None,
        "points": _points(points_of(state)),
        "usage": _usage(state.get("turns", [])),
        "degraded": [entry.model_dump() for entry in state.get("degraded", [])],
        "demonstration": _is_demonstration(state),
    }


def _is_demonstration(state: DebateState) -> bool:
    """Whether the demonstration model sits at the table, or spoke as a fallback."""
    spoken = spoken_by_models(state.get("turns", []))
    by_seat = is_demonstration(state.get("seats", []))
    return by_seat or any(is_demonstration_model(turn.model) for turn in spoken)


def spoken_by_models(turns: Iterable[Turn]) -> list[Turn]:
    """The turns somebody paid for."""
    return [turn for turn in turns if turn.status != "human"]


def _round_turns(state: DebateState) -> dict[int, list[Turn]]:
    rounds: dict[int, list[Turn]] = {}
    for turn in spoken_by_models(state.get("turns", [])):
        if turn.phase not in _AFTER_THE_ROUNDS:
            rounds.setdefault(turn.round, []).append(turn)
    return rounds


def _rounds(state: DebateState) -> list[dict[str, Any]]:
    remarks = turns_of(state, "remark")
    rounds = []
    for number, turns in _round_turns(state).items():
        said = {turn.seat: turn.text for turn in turns}
        by_user = [turn.text for turn in remarks if turn.round == number]
        rounds.append({"round": number, **said} | ({"user": by_user} if by_user else {}))
    return rounds


def _auto_score(state: DebateState) -> dict[str, Any] | None:
    """The judge's ratings; a judge that shares a model with a speaker is named as such."""
    rated = state.get("auto_score")
    if rated is None:
        return None
    sharing = [
        seat.id
        for seat in state["seats"]
        if seat.model == rated.judge_model and seat.role != "judge"
    ]
    return rated.model_dump() | {"judge_shares_model_with": sharing}


def _models(state: DebateState) -> dict[str, str]:
    models = {seat.id: seat.model for seat in state.get("seats", [])}
    retrieval = state.get("retrieval")
    return models | ({"embedding": retrieval.embedding_model} if retrieval else {})


def _timing(state: DebateState) -> dict[str, Any]:
    """Milliseconds really worked, pauses and time between resumes left out."""
    retrieval = state.get("retrieval")
    opening = [(retrieval.started_at, retrieval.ended_at)] if retrieval else []
    turns = spoken_by_models(state.get("turns", []))
    return {
        "total_ms": _busy_ms([*opening, *_intervals(turns)]),
        "rag_ms": _busy_ms(opening),
        "rounds_ms": [_busy_ms(_intervals(r)) for r in _round_turns(state).values()],
        "synthesis_ms": _busy_ms(_intervals(turns_of(state, "synthesize"))),
        "scoring_ms": _busy_ms(_intervals(turns_of(state, "score"))),
    }


def _intervals(turns: Iterable[Turn]) -> list[Interval]:
    return [(turn.started_at, turn.ended_at) for turn in turns]


def _busy_ms(intervals: list[Interval]) -> int:
    """The time covered by the intervals, counting what overlaps once."""
    covered, reached = timedelta(), datetime.min.replace(tzinfo=UTC)
    for start, end in sorted(intervals):
        covered += max(timedelta(), end - max(start, reached))
        reached = max(reached, end)
    return round(covered.total_seconds() * 1000)


def _points(points: list[Point]) -> dict[str, list[dict[str, Any]]]:
    settled = [point for point in points if point.status == "resolved"]
    left = [point for point in points if point.status != "resolved"]
    return {
        "open": [point.model_dump() for point in left],
        "resolved": [point.model_dump() for point in settled],
    }


def _usage(turns: Iterable[Turn]) -> dict[str, Any]:
    spoken = spoken_by_models(turns)
    total = sum((turn.usage for turn in spoken), NO_USAGE)
    return {"turns": len(spoken), **total.model_dump()}
