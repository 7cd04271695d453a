"""The conditional edges: pure functions of the state."""

from typing import Literal

from contend.graph.phases import STATEMENTS
from contend.graph.state import DebateState, ids_with_role

OnTheFloor = Literal["moderate", "propose", "judge_continue", "score", "synthesize"]


def after_judging(state: DebateState) -> Literal["propose", "synthesize"]:
    """Another round that begins with an answer, or the final one."""
    return "synthesize" if state.get("stop") else "propose"


def after_arguing(state: DebateState) -> list[Literal["critique", "propose"]]:
    """What was argued is scored; whoever must wait for it argues meanwhile."""
    return ["critique", "propose"] if state.get("waiting") else ["critique"]


def after_scoring(state: DebateState) -> list[Literal["judge_continue"]]:
    """The round is over when nobody is still arguing; else that argument is scored next."""
    return [] if state.get("waiting") else ["judge_continue"]


def after_answering(state: DebateState) -> Literal["critique", "synthesize"]:
    """Another round that begins with a critique, or the final answer."""
    return "synthesize" if state.get("stop") else "critique"


def after_speaking(
    state: DebateState,
) -> Literal["propose", "conviction_check", "judge_continue"]:
    """The next of those who wait to speak; when all have spoken, what closes the round."""
    return "propose" if state["waiting"] else state["closing"]


def after_writing(state: DebateState) -> Literal["score", "store"]:
    """The answer is rated where there is a judge."""
    return "score" if any(seat.role == "judge" for seat in state["seats"]) else "store"


def next_scheduled(state: DebateState) -> OnTheFloor:
    """Whoever is due by the programme; when it is empty, the stage is over."""
    due = state.get("programme")
    if due:
        return "moderate" if due[0].seat in ids_with_role(state, "moderator") else "propose"
    if not state.get("stop"):
        return "judge_continue"
    return "score" if ids_with_role(state, "judge") else "synthesize"


def after_statement(
    state: DebateState,
) -> Literal["fact_check", "moderate", "propose", "judge_continue", "score", "synthesize"]:
    """A statement is checked if somebody is there to do it."""
    spoken = state["turns"][-1].phase
    if spoken in STATEMENTS and ids_with_role(state, "fact_checker"):
        return "fact_check"
    return next_scheduled(state)
