"""Channels for the debate state, kept out of state.py because langgraph is slow to import."""

from collections.abc import Sequence
from typing import Annotated, Any

from langgraph.channels.delta import DeltaChannel

from contend.graph.state import DebateState, Turn


def append(current: Sequence[Any] | None, writes: Sequence[Sequence[Any]]) -> list[Any]:
    """Append all writes to a list; batching does not change the result."""
    result = list(current or ())
    for write in writes:
        result.extend(write)
    return result


# DeltaChannel keeps checkpoints linear in the turns (a plain list is quadratic, and so are frequent
# snapshots). It is beta in langgraph 1.2, so it is used only in this alias.
Transcript = Annotated[list[Turn], DeltaChannel(append, snapshot_frequency=1000)]


class GraphState(DebateState, total=False):
    """The debate state with langgraph channels, as the graphs declare it."""

    turns: Transcript  # the same type, plus its channel
