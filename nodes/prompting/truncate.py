"""Fits prompts into a context window by omitting whole items and paragraphs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from contend.graph.settings import DebateSettings
from contend.graph.values import Seat
from contend.models.seats import window_for
from contend.models.tokens import BYTES_PER_TOKEN

Item = TypeVar("Item")

_REPLY_SHARE = 4
_LONGEST_REPLY = 4096
# Templates may fill 1/n of a prompt, and so may passages and quote checks; the
# rest is for the debate itself.
_MATERIAL_SHARE = 4
_TOOLS_SHARE = 4

_BETWEEN_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE_END = re.compile(r"[.!?。！？][\"”’)*_]*(?=\s)")
# A list number or letter: at the beginning of a line, or right after a sentence or a colon.
_LIST_LABEL = re.compile(
    r"(?:^|\n|[.!?:;]\s)[\s>#*_•(-]*(?:\d{1,3}|[a-z]|[ivx]{2,4})\Z", re.IGNORECASE
)
_ABBREVIATION = re.compile(
    r"\b(?:(?:[a-z]\.)+[a-z]|approx|ca|cf|dr|mrs?|(?-i:Ms)|prof|vs)\Z", re.IGNORECASE
)
# These may also end a sentence, but not before a lower-case letter or a number.
_SHORT_FORM = re.compile(r"\b(?:al|etc|figs?|inc|jr|ltd|nos?|pp?|sr|st|vol)\Z", re.IGNORECASE)
_CONTINUATION = re.compile(r"\s+[\da-z]")
# How many characters before a full stop are checked.
_LONGEST_LABEL = 40
_CUT = "…"


def room_beside_reply(seat: Seat, settings: DebateSettings) -> int | None:
    """Return the context window's tokens minus room for a reply, or None if unlimited."""
    window = window_for(seat.model, settings)
    return None if window is None else window - min(_LONGEST_REPLY, window // _REPLY_SHARE)


def room_for_prompt(seat: Seat, settings: DebateSettings) -> int | None:
    """Return the number of tokens that a prompt may fill, leaving room for tool results."""
    room = room_beside_reply(seat, settings)
    return room if room is None or not seat.tools else room - room // _TOOLS_SHARE


def fit_items(
    items: Sequence[Item], room: int | None, text_of: Callable[[Item], str]
) -> tuple[Item, ...]:
    """Return the first items that together fit into a fixed share of the room."""
    if room is None:
        return tuple(items)
    left = BYTES_PER_TOKEN * room // _MATERIAL_SHARE
    fitting = []
    for item in items:
        left -= len(text_of(item).encode())
        if left < 0:
            break
        fitting.append(item)
    return tuple(fitting)


@dataclass(frozen=True)
class Excerpt:
    text: str
    left_out: int = 0
    paragraphs: int = 0
    characters: int = 0
    """Length of the whole answer; 0 unless only the beginning is shown."""

    @property
    def note(self) -> str:
        if self.characters:
            shown = len(self.text.removesuffix(_CUT))
            return f"(An excerpt: the first {shown} of {self.characters} characters.)"
        if not self.left_out:
            return ""
        if self.left_out == self.paragraphs:
            return "(Left out because it does not fit.)"
        return (
            f"(The first {self.left_out} of its {self.paragraphs} paragraphs are left out because "
            "the whole does not fit.)"
        )


def split_room(sizes: Sequence[int], room: int) -> list[int]:
    """Split the room equally. Room that short texts do not need goes to longer texts."""
    given = [0] * len(sizes)
    left = max(0, room)
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda each: sizes[each])):
        given[index] = min(sizes[index], left // (len(sizes) - done))
        left -= given[index]
    return given


def keep_ending(text: str, room: int) -> Excerpt:
    """Return the last whole paragraphs that fit into `room` bytes."""
    if len(text.encode()) <= room:
        return Excerpt(text)
    paragraphs = _BETWEEN_PARAGRAPHS.split(text.strip())
    kept: list[str] = []
    for paragraph in reversed(paragraphs):
        room -= len(f"{paragraph}\n\n".encode())
        if room < 0:
            break
        kept.insert(0, paragraph)
    return Excerpt("\n\n".join(kept), len(paragraphs) - len(kept), len(paragraphs))


def keep_beginning(text: str, characters: int) -> Excerpt:
    """Return the whole sentences, or if none fits the words, within this many characters."""
    if len(text) <= characters:
        return Excerpt(text)
    end = _last_sentence_end(text, characters)
    kept = text[:end].rstrip() if end else _cut_at_word(text[:characters], text[: characters - 1])
    return Excerpt(kept, characters=len(text))


def whole_sentences(text: str) -> str:
    """Return a truncated text's complete sentences or, if there are none, its complete words."""
    end = _last_sentence_end(f"{text} ", len(text) + 1)
    return text[:end] if end or not text.strip() else _cut_at_word(text, text)


def _last_sentence_end(text: str, characters: int) -> int:
    found = _SENTENCE_END.finditer(text, 0, characters)
    return max((each.end() for each in found if _ends_sentence(text, each)), default=0)


def _ends_sentence(text: str, mark: re.Match[str]) -> bool:
    if not mark[0].startswith("."):
        return True
    before = text[max(0, mark.start() - _LONGEST_LABEL) : mark.start()]
    if _LIST_LABEL.search(before) or _ABBREVIATION.search(before):
        return False
    return not (_SHORT_FORM.search(before) and _CONTINUATION.match(text, mark.end()))


def _cut_at_word(text: str, otherwise: str) -> str:
    words = text[: max(text.rfind(" "), text.rfind("\n"), 0)].rstrip()
    # Too little is left in languages without spaces, or if only a list number remains.
    kept = words if len(words) > len(text) // 2 else otherwise
    return f"{kept}{_CUT}"
