"""The objections raised in a debate."""

from collections.abc import Callable

from contend.graph.readings import SEVERITY_MARKS, Assessment, Point
from contend.graph.state import DebateState
from contend.models.replies.critique import all_points

_STATUS_WORDS = {"partial": "partly resolved", "dropped": "not raised again"}


def points_of(state: DebateState) -> list[Point]:
    read = [turn.assessment for turn in state.get("turns", [])]
    return all_points([each for each in read if isinstance(each, Assessment)])


def list_points(points: list[Point], fenced: Callable[[str, str], str]) -> str:
    if not points:
        return "None on record."
    lines = (
        f"{p.id} {SEVERITY_MARKS[p.severity]} ({_STATUS_WORDS.get(p.status, p.status)}) {p.text}"
        for p in points
    )
    return fenced("points", "\n".join(lines))
