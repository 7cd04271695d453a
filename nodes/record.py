"""Builds the record of a debate from the state, without importing LangGraph."""

from collections.abc import Callable, Iterable
from typing import Any

from contend.graph.phases import AFTER_THE_ROUNDS
from contend.graph.record import (
    DebateRecord,
    JudgeDecision,
    RecordedAutoScore,
    RecordedPoints,
    RecordedQuote,
    TemplateMatch,
    Timing,
)
from contend.graph.state import DebateState, Turn, turns_of
from contend.graph.stop_reasons import StopDecision
from contend.models.seats import is_demonstration, is_demonstration_model
from contend.nodes import timing
from contend.nodes.drafts import draft_vote
from contend.nodes.forum.concessions import count_concessions
from contend.nodes.moderated.record import moderated_record, moderated_round
from contend.nodes.moderated.score_notes import sharing_models
from contend.nodes.prompting.points import points_of


def read_record(state: DebateState, debate: str) -> DebateRecord:
    if not state.get("trace"):
        return build_record(state, debate)
    # Release 0.2 and earlier stored points without their history.
    trace = {**state["trace"], "points": _points(state)}
    return DebateRecord.model_validate(trace)


def build_record(state: DebateState, debate: str) -> DebateRecord:
    stop, rated, retrieval = state.get("stop"), state.get("auto_score"), state.get("retrieval")
    templates = retrieval.templates if retrieval else ()
    return DebateRecord(
        id=debate,
        timestamp=retrieval.started_at.isoformat() if retrieval else None,
        query=state.get("question", ""),
        templates_used=[use.id for use in templates],
        templates=[TemplateMatch(id=use.id, title=use.title, score=use.score) for use in templates],
        documents=state.get("documents", []),
        images=state.get("images", []),
        quotes=_quotes(state),
        seats=state.get("seats", []),
        rounds=_rounds(state),
        final_answer=state.get("final_answer"),
        total_rounds=sum(number > 0 for number in _round_turns(state)),
        early_stopped=stop is not None and _is_early(stop),
        quality_score=rated.score if rated else None,
        user_rating=None,
        auto_score=_auto_score(state),
        models=_models(state),
        timing=_timing(state),
        stop_reason=stop.reason if stop else None,
        stop=stop,
        points=_points(state),
        usage=timing.total_usage(state),
        degraded=[
            each
            for each in state.get("degraded", [])
            if not (rated and each.what == "not_rated")  # it has been scored since
        ],
        demonstration=_is_demonstration(state),
        **_drafts(state),
        **_concessions(state),
        **moderated_record(state),
        **_forecast(state),
    )


def _points(state: DebateState) -> RecordedPoints:
    points = points_of(state)
    return RecordedPoints(
        open=[point for point in points if point.status != "resolved"],
        resolved=[point for point in points if point.status == "resolved"],
    )


def _is_early(stop: StopDecision) -> bool:
    return stop.reason != "max_rounds" if stop.early is None else stop.early


def _concessions(state: DebateState) -> dict[str, Any]:
    if "active" not in state:
        return {}
    gone = state.get("eliminations", [])
    return {
        "active": state["active"],
        "eliminations": gone,
        **_winner(state),
        "moved": {
            by: [each.seat for each in gone if each.convinced_by == by]
            for by in count_concessions(state)
        },
        "judge_decisions": _judge_decisions(state),
        "verdict": next((turn.text for turn in turns_of(state, "verdict")), None),
    }


def _drafts(state: DebateState) -> dict[str, Any]:
    drafts = draft_vote(state)
    return {"drafts": drafts} if drafts else {}


def _winner(state: DebateState) -> dict[str, str | None]:
    active = state["active"]
    if len(active) == 1:
        return {"winner": active[0], "winner_by": "one_left"}
    writer = next((turn.seat for turn in turns_of(state, "synthesize")), None)
    if writer not in active:
        return {"winner": None, "winner_by": None}
    counts = count_concessions(state)
    others = [counts.get(seat, 0) for seat in active if seat != writer]
    is_ahead = counts.get(writer, 0) > max(others)
    return {"winner": writer, "winner_by": "most_conceded_to" if is_ahead else "first_named"}


def _judge_decisions(state: DebateState) -> list[JudgeDecision]:
    return [
        JudgeDecision(round=turn.round, **turn.assessment.model_dump(exclude={"kind"}))
        if turn.assessment
        else JudgeDecision(round=turn.round, decision=None, reasoning=turn.text)
        for turn in turns_of(state, "judge_continue")
    ]


def _forecast(state: DebateState) -> dict[str, Any]:
    if "request" not in state:
        return {}
    return {"request": state["request"], "forecast": state.get("forecast")}


def _quotes(state: DebateState) -> list[RecordedQuote]:
    return [
        RecordedQuote(turn=turn.id, seat=turn.seat, round=turn.round, **quote.model_dump())
        for turn in state.get("turns", [])
        for quote in turn.quotes
    ]


def _is_demonstration(state: DebateState) -> bool:
    by_seat = is_demonstration(state.get("seats", []))
    models = {turn.model for turn in state.get("turns", []) if turn.model}
    return by_seat or any(is_demonstration_model(model) for model in models)


def _round_turns(state: DebateState) -> dict[int, list[Turn]]:
    rounds: dict[int, list[Turn]] = {}
    for turn in state.get("turns", []):
        if turn.phase not in AFTER_THE_ROUNDS and turn.phase != "remark":
            rounds.setdefault(turn.round, []).append(turn)
    return rounds


def _rounds(state: DebateState) -> list[dict[str, Any]]:
    remarks = turns_of(state, "remark")
    roles = [seat.role for seat in state.get("seats", [])]
    describe = next((_ROUNDS_OF[role] for role in roles if role in _ROUNDS_OF), _by_seat)
    rounds = []
    for number, turns in _round_turns(state).items():
        by_user = [turn.text for turn in remarks if turn.round == number]
        rounds.append({"round": number, **describe(turns)} | ({"user": by_user} if by_user else {}))
    return rounds


def _by_seat(turns: Iterable[Turn]) -> dict[str, Any]:
    return {turn.seat: turn.text for turn in turns}


def _by_equals(turns: Iterable[Turn]) -> dict[str, Any]:
    feedback = [turn.text for turn in turns if turn.phase == "critique"]
    answers = [
        {"seat": turn.seat, "text": turn.text, "status": turn.status}
        for turn in turns
        if turn.phase == "propose"
    ]
    return {"feedback": feedback[-1] if feedback else None, "answers": answers}


# Functions that build a round's entry, keyed by a role that takes part.
_ROUNDS_OF: dict[str, Callable[[Iterable[Turn]], dict[str, Any]]] = {
    "debater": _by_equals,
    "position_advocate": moderated_round,
}


def _auto_score(state: DebateState) -> RecordedAutoScore | None:
    rated = state.get("auto_score")
    if rated is None:
        return None
    return RecordedAutoScore(
        **rated.model_dump(),
        judge_shares_model_with=sharing_models(state, [rated.judge_model]),
        judge_wrote_answer=any(turn.role == "judge" for turn in turns_of(state, "synthesize")),
    )


def _models(state: DebateState) -> dict[str, str]:
    models = {seat.id: seat.model for seat in state.get("seats", [])}
    retrieval = state.get("retrieval")
    return models | ({"embedding": retrieval.embedding_model} if retrieval else {})


def _timing(state: DebateState) -> Timing:
    return Timing(
        total_ms=timing.worked_ms(state),
        rag_ms=timing.busy_ms(timing.retrieval_intervals(state)),
        rounds_ms=[timing.busy_ms(timing.intervals(r)) for r in _round_turns(state).values()],
        synthesis_ms=timing.busy_ms(timing.intervals(turns_of(state, "synthesize"))),
        scoring_ms=timing.busy_ms(timing.intervals(turns_of(state, "score"))),
    )
