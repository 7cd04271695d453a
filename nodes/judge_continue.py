"""After each critique: stop or go on, by the protocol's rule or by a person's wish."""

from datetime import UTC, datetime
from typing import Any

from langgraph.runtime import Runtime
from langgraph.types import interrupt

from graph.events import node_event
from graph.settings import AdversarialSettings
from graph.state import Assessment, DebateState, Remark, StopDecision, StopReason, Turn, turns_of
from models.text import clean
from nodes.briefing import points_of


async def judge_continue(
    state: DebateState, runtime: Runtime[AdversarialSettings]
) -> dict[str, Any]:
    """Decide, let a person speak where one asked to, then close the rounds or open the next."""
    settings, number = runtime.context, state["round"]
    stop = stop_rule(turns_of(state, "critique")[-1].assessment, number, settings)
    if stop and stop.reason != "max_rounds":
        stop = stop.model_copy(update={"evidence": stop.evidence + _loose_ends(state)})
    # Everything before the pause is free and repeatable: the node runs again when it is answered.
    remark = _ask_person(state, stop) if _pauses_here(settings, stop) else Remark()
    if remark.finish and stop is None:
        stop = StopDecision(reason="user", round=number, evidence="the user asked for the answer")
    _tell(runtime, state, stop)
    update: dict[str, Any] = {"stop": stop} if stop else {"round": number + 1}
    # An empty list would count as an update of the transcript, and cost every checkpoint.
    return update | ({"turns": [human_turn(state, remark.say)]} if remark.say else {})


def stop_rule(
    assessment: Assessment | None, round_number: int, settings: AdversarialSettings
) -> StopDecision | None:
    """The protocol's rule, in its order. An unread critique can only meet the maximum."""
    at_minimum = round_number >= settings.min_rounds
    score = assessment.score if assessment else None
    enough = score is not None and score >= settings.early_stop_score
    ready = assessment is not None and assessment.ready and (score is None or enough)

    if ready and (at_minimum or not settings.ready_respects_min_rounds):
        return _stop("skeptic_ready", round_number, "the Skeptic found the answer ready")
    if enough and at_minimum:
        return _stop("score_reached", round_number, f"the Skeptic scored it {score:g} of 10")
    if round_number >= settings.max_rounds:
        used = (
            f"all {settings.max_rounds} rounds were"
            if settings.max_rounds > 1
            else "the one round was"
        )
        return _stop("max_rounds", round_number, f"{used} used")
    if assessment and at_minimum and assessment.none_critical:
        return _stop("no_critical_issues", round_number, "no critical issue is left")
    return None


def human_turn(state: DebateState, text: str) -> Turn:
    """A person's words as a turn of the transcript."""
    now = datetime.now(UTC)
    count = len(turns_of(state, "remark")) + 1
    return Turn(
        id=f"r{state.get('round', 0)}.remark.{count}",
        round=state.get("round", 0),
        phase="remark",
        seat="user",
        role="user",
        model="",
        text=clean(text),
        started_at=now,
        ended_at=now,
        status="human",
    )


def _stop(reason: StopReason, round_number: int, evidence: str) -> StopDecision:
    return StopDecision(reason=reason, round=round_number, evidence=evidence)


def _loose_ends(state: DebateState) -> str:
    """Critical points nobody settled: the stop stands, and says so."""
    critical = [point for point in points_of(state) if point.severity == "critical"]
    left = ", ".join(p.id for p in critical if p.status in ("open", "partial"))
    dropped = ", ".join(p.id for p in critical if p.status == "dropped")
    said = [f"still open: {left}"] if left else []
    said += [f"not raised again: {dropped}"] if dropped else []
    return f" (critical and {'; '.join(said)})" if said else ""


def _pauses_here(settings: AdversarialSettings, stop: StopDecision | None) -> bool:
    return settings.pause == "each_round" or (
        settings.pause == "before_synthesis" and stop is not None
    )


def _ask_person(state: DebateState, stop: StopDecision | None) -> Remark:
    shown = {
        "round": state["round"],
        "stop": stop.model_dump() if stop else None,
        "points": [point.model_dump() for point in points_of(state)],
    }
    answer = interrupt(shown)
    return Remark(say=answer) if isinstance(answer, str) else Remark.model_validate(answer or {})


def _tell(
    runtime: Runtime[AdversarialSettings], state: DebateState, stop: StopDecision | None
) -> None:
    number = state["round"]
    points = [point.model_dump() for point in points_of(state)]
    emit = runtime.stream_writer
    emit(node_event("round_complete", number, points=points))
    if stop is None:
        emit(node_event("judge_decision", number, "continue", decision="continue"))
        emit(node_event("round_start", number + 1))
        return
    emit(node_event("judge_decision", number, stop.evidence, decision="stop", reason=stop.reason))
    if stop.reason != "max_rounds":
        emit(node_event("early_stop", number, stop.evidence, reason=stop.reason))
