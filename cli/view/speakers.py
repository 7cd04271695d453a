"""Who has the floor: read from the events, whatever the protocol."""

from collections.abc import Iterable, Mapping
from typing import Any


class Speakers:
    """Who was asked to speak and has not finished, and whether they speak at the same time."""

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}
        self._active: list[str] = []
        self._at_once: bool | None = None

    def open_round(self, told: Mapping[str, Any]) -> list[str]:
        """Take what the start of a round tells; gives who opens it, as far as that is told."""
        self._asked.clear()
        self._active = _ids(told.get("active"))
        self._at_once = told.get("at_once")
        return _ids(told.get("first")) or self._active

    def ask(self, seat: str, phase: str) -> None:
        """A seat has been asked for its speech."""
        self._asked[seat] = phase

    def leave(self, seat: str, phase: str) -> None:
        """A seat has finished this or given up; a judge may be at something else besides."""
        if self._asked.get(seat) == phase:
            del self._asked[seat]

    def together(self, seat: str, phase: str = "") -> list[str]:
        """Who speaks at the same time as this one, itself included; none where it speaks alone."""
        same = [other for other, its_phase in self._asked.items() if its_phase == phase]
        if len(same) > 1:
            return same
        if self._at_once and seat in self._active:
            return self._active
        # One who was never asked may be one of several: a viewer who came late cannot know.
        alone = seat in self._asked or (self._at_once is False and seat in self._active)
        return [] if alone else [seat]


def _ids(told: Iterable[object] | None) -> list[str]:
    return [str(seat) for seat in told or ()]
