"""The objections raised in a debate."""

from contend.graph.state import Assessment, DebateState, Point
from contend.models.replies.critique import all_points


def points_of(state: DebateState) -> list[Point]:
    """Return every objection raised so far, with its latest status."""
    read = [turn.assessment for turn in state.get("turns", [])]
    return all_points([each for each in read if isinstance(each, Assessment)])
