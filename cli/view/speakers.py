from collections.abc import Iterable, Mapping
from typing import Any


class Speakers:
    def __init__(self) -> None:
        self._asked: dict[str, str] = {}
        self._active: list[str] = []
        self._at_once: bool | None = None

    def open_round(self, given: Mapping[str, Any]) -> list[str]:
        """Start a round; return the seats that speak first, or all active seats if not given."""
        self._asked.clear()
        self._active = _ids(given.get("active"))
        self._at_once = given.get("at_once")
        return _ids(given.get("first")) or self._active

    def ask(self, seat: str, phase: str) -> None:
        self._asked[seat] = phase

    def leave(self, seat: str, phase: str) -> None:
        if self._asked.get(seat) == phase:
            del self._asked[seat]

    def speaking_with(self, seat: str, phase: str = "") -> list[str]:
        same = [other for other, its_phase in self._asked.items() if its_phase == phase]
        if len(same) > 1:
            return same
        if self._at_once and seat in self._active:
            return self._active
        # A viewer that joined late missed the request, so it cannot know if the seat speaks alone.
        alone = seat in self._asked or (self._at_once is False and seat in self._active)
        return [] if alone else [seat]


def _ids(given: Iterable[object] | None) -> list[str]:
    return [str(seat) for seat in given or ()]
