import re
from collections.abc import Sequence

from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, Turn, ids_with_role, seat_with_id, turns_of

_WORD = re.compile(r"\w+")
_REVISED = re.compile(
    r"^(?:#{1,4}\s*\**|\*\*)(?:\d+[.)]\s*)?\**revised answer(?:\s*\([^)\n]*\))?[*:.\s]*?$",
    re.IGNORECASE | re.MULTILINE,
)


def answers_of(state: DebateState, seat: str) -> list[Turn]:
    return [turn for turn in turns_of(state, "propose") if turn.seat == seat]


def answer_part(text: str) -> str:
    """Return the text under the heading Revised answer, or the whole text if there is none."""
    return _REVISED.split(text)[-1].strip() or text


def latest_answers(state: DebateState) -> list[Turn]:
    return [answers[-1] for answers in _by_seat(state)]


def label_of(state: DebateState, settings: DebateSettings, seat_id: str) -> str:
    seat = seat_with_id(state, seat_id)
    return strategy_for(settings).label(seat, ids_with_role(state, seat.role).index(seat_id))


def most_shared(answers: Sequence[Turn]) -> Turn:
    """Return the answer that shares the most words with the others."""
    # A statement that several models make independently is more likely to be right.
    words = [set(_WORD.findall(answer_part(answer.text).casefold())) for answer in answers]
    shared = [sum(len(mine & theirs) for theirs in words) - len(mine) for mine in words]
    return answers[shared.index(max(shared))]


def _by_seat(state: DebateState) -> list[list[Turn]]:
    every = [answers_of(state, seat.id) for seat in state["seats"]]
    return [answers for answers in every if answers]
