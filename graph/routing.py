from typing import Literal

from contend.graph.phases import STATEMENTS
from contend.graph.state import DebateState, ids_with_role

ScheduledNode = Literal["moderate", "propose", "judge_continue", "score", "synthesize"]


def after_asking(state: DebateState) -> Literal["retrieve", "find_outcomes"]:
    """Route to `find_outcomes` if the state has neither outcomes nor a request."""
    return "retrieve" if state.get("outcomes") or state.get("request") else "find_outcomes"


def after_judging(state: DebateState) -> Literal["propose", "synthesize"]:
    return "synthesize" if state.get("stop") else "propose"


def after_arguing(state: DebateState) -> list[Literal["critique", "propose"]]:
    """Route to `critique`, and in parallel to `propose` if a role is waiting."""
    return ["critique", "propose"] if state.get("waiting") else ["critique"]


def after_scoring(state: DebateState) -> list[Literal["judge_continue"]]:
    """Route to `judge_continue`, unless a role is still arguing."""
    return [] if state.get("waiting") else ["judge_continue"]


def after_answering(state: DebateState) -> Literal["critique", "synthesize"]:
    return "synthesize" if state.get("stop") else "critique"


def after_speaking(state: DebateState) -> Literal["propose", "conviction_check", "judge_continue"]:
    return "propose" if state["waiting"] else state["closing"]


def after_writing(state: DebateState) -> Literal["score", "store"]:
    return "score" if any(seat.role == "judge" for seat in state["seats"]) else "store"


def next_scheduled(state: DebateState) -> ScheduledNode:
    due = state.get("programme")
    if due:
        return "moderate" if due[0].seat in ids_with_role(state, "moderator") else "propose"
    if not state.get("stop"):
        return "judge_continue"
    return "score" if ids_with_role(state, "judge") else "synthesize"


def after_statement(
    state: DebateState,
) -> Literal["fact_check", "moderate", "propose", "judge_continue", "score", "synthesize"]:
    spoken = state["turns"][-1].phase
    if spoken in STATEMENTS and ids_with_role(state, "fact_checker"):
        return "fact_check"
    return next_scheduled(state)
