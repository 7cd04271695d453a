"""Making long answers fit: whole paragraphs, the newest first, and an honest count of the rest."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_BETWEEN_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")


@dataclass(frozen=True)
class Excerpt:
    """The end of an answer, and how much of its beginning is missing."""

    text: str
    left_out: int = 0
    paragraphs: int = 0

    @property
    def note(self) -> str:
        """What a reader must know of it; nothing when it is whole."""
        if not self.left_out:
            return ""
        if self.left_out == self.paragraphs:
            return "(Left out because it does not fit.)"
        return (
            f"(The first {self.left_out} of its {self.paragraphs} paragraphs are left out because "
            "the whole does not fit.)"
        )


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Equal shares of the room; what a short text leaves of its share is for the others."""
    given = [0] * len(sizes)
    left = max(0, room)
    for done, index in enumerate(sorted(range(len(sizes)), key=lambda each: sizes[each])):
        given[index] = min(sizes[index], left // (len(sizes) - done))
        left -= given[index]
    return given


def ending(text: str, room: int) -> Excerpt:
    """As many of the last paragraphs as have room in this many bytes, each of them whole."""
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
