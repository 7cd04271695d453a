"""The conditional edges: pure functions of the state."""

from typing import Literal

from graph.state import DebateState


def after_judging(state: DebateState) -> Literal["propose", "synthesize"]:
    """Another round, or the answer."""
    return "synthesize" if state.get("stop") else "propose"
