"""An index of the final positions of all seats."""

import re

from contend.graph.state import DebateState
from contend.graph.values import Seat
from contend.nodes.prompting.answers import answers_of

_BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")


def index_of_positions(state: DebateState) -> str:
    """List every seat that spoke, with the beginning of its position and its turns."""
    seats = [seat for seat in state["seats"] if answers_of(state, seat.id)]
    return "\n\n".join(["# Positions", *(_position(state, seat) for seat in seats)])


def _position(state: DebateState, seat: Seat) -> str:
    turns = answers_of(state, seat.id)
    paragraphs = _BETWEEN_PARAGRAPHS.split(turns[-1].text.strip())
    # A heading says nothing of what is held.
    opening = next((each for each in paragraphs if not each.startswith("#")), paragraphs[0])
    where = ", ".join(turn.id for turn in turns)
    return (
        f"## {seat.name} ({turns[-1].model})\n\n{opening}\n\n"
        f"The whole of it: round {turns[-1].round}. All turns: {where}."
    )
