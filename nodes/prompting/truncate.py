"""Fitting prompts into a model's window: whole items and paragraphs, and a count of the rest."""

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
# The part of a prompt that templates may fill, and passages and checks of quotes as much: the
# debate itself comes first.
_MATERIAL_SHARE = 4
_TOOLS_SHARE = 4

_BETWEEN_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE_END = re.compile(r"[.!?。！？][\"”’)*_]*(?=\s)")


def room_beside_reply(seat: Seat, settings: DebateSettings) -> int | None:
    """Return the tokens of the seat's window left for its input; None without a limit."""
    window = window_for(seat.model, settings)
    return None if window is None else window - min(_LONGEST_REPLY, window // _REPLY_SHARE)


def room_for_prompt(seat: Seat, settings: DebateSettings) -> int | None:
    """Return the tokens a prompt may fill: tools need some for their results."""
    room = room_beside_reply(seat, settings)
    return room if room is None or not seat.tools else room - room // _TOOLS_SHARE


def fit_items(
    items: Sequence[Item], room: int | None, text_of: Callable[[Item], str]
) -> tuple[Item, ...]:
    """Return as many of the first items, whole, as may fill their part of the prompt."""
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
    """A part of an answer, and how much of it is missing."""

    text: str
    left_out: int = 0
    paragraphs: int = 0
    characters: int = 0
    """The length of the whole, if only its beginning is shown."""

    @property
    def note(self) -> str:
        if self.characters:
            return f"(An excerpt: the first {len(self.text)} of {self.characters} characters.)"
        if not self.left_out:
            return ""
        if self.left_out == self.paragraphs:
            return "(Left out because it does not fit.)"
        return (
            f"(The first {self.left_out} of its {self.paragraphs} paragraphs are left out because "
            "the whole does not fit.)"
        )


def split_room(sizes: Sequence[int], room: int) -> list[int]:
    """Split the room equally; what a short text does not use goes to the longer ones."""
    given = [0] * len(sizes)
    left = max(0, room)
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda each: sizes[each])):
        given[index] = min(sizes[index], left // (len(sizes) - done))
        left -= given[index]
    return given


def keep_ending(text: str, room: int) -> Excerpt:
    """Return as many of the last paragraphs, whole, as fit in this many bytes."""
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
    """Return the first whole sentences, or the first words, within this many characters."""
    if len(text) <= characters:
        return Excerpt(text)
    ends = [found.end() for found in _SENTENCE_END.finditer(text[:characters])]
    kept = text[: ends[-1]] if ends else text[:characters].rpartition(" ")[0] or text[:characters]
    return Excerpt(kept.rstrip(), characters=len(text))


def whole_sentences(text: str) -> str:
    """Return the whole sentences of a text that breaks off; all of it if it has none."""
    return keep_beginning(f"{text} …", len(text) + 1).text
