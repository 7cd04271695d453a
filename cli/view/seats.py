from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from contend.cli.view.format import one_line, plain
from contend.cli.view.theme import seat_style
from contend.cli.view.wrap import cut
from contend.debates.exports.wording import listed
from contend.graph.values import Seat

Entry = Mapping[str, Any]
"""An elimination, as stored in the record."""


class SeatTable:
    def __init__(self, seats: Sequence[Seat] = (), eliminations: Iterable[Entry] = ()) -> None:
        self._seats = {seat.id: seat for seat in seats}
        self._styles = {seat.id: seat_style(place) for place, seat in enumerate(seats)}
        self.eliminations = list(eliminations)

    def name(self, seat: str) -> str:
        found = self._seats.get(seat)
        return plain(found.name if found else seat.capitalize())

    def owner(self, seat: str) -> str:
        """Return the possessive of the seat's name, such as `the Skeptic's` or `Ann's`."""
        found = self._seats.get(seat)
        article = "the " if found is None or found.id == found.role else ""
        return f"{article}{self.name(seat)}'s"

    @property
    def by_id(self) -> dict[str, str]:
        return {seat: self.name(seat) for seat in self._seats}

    @property
    def roles(self) -> set[str]:
        return {seat.role for seat in self._seats.values()}

    def names(self, seats: Iterable[str]) -> str:
        return listed([self.name(seat) for seat in seats])

    def model(self, seat: str) -> str:
        found = self._seats.get(seat)
        return found.model if found else ""

    def style(self, seat: str) -> str:
        return self._styles.get(seat, seat_style(0))

    def title(self, seat: str) -> Text:
        return Text.assemble((self.name(seat), f"{self.style(seat)}.title"))

    def in_order(self, seats: Iterable[str]) -> list[str]:
        wanted = dict.fromkeys(seats)
        return [s for s in self._seats if s in wanted] + [s for s in wanted if s not in self._seats]

    def table(self) -> list[Text]:
        widest = max((cell_len(self.name(seat)) for seat in self._seats), default=0)
        left = {entry["seat"]: entry for entry in self.eliminations}
        lines = []
        for seat in self._seats.values():
            name = Text(self.name(seat.id), style=self.style(seat.id))
            gap = widest - name.cell_len + 2
            if seat.id in left:
                name.stylize("strike")
            line = Text.assemble("  ", name, " " * gap, plain(seat.model))
            if seat.id in left:
                line.append(f"  ✗ {self._conceded(left[seat.id])}", style="muted")
            lines.append(line)
        return lines

    def eliminate(self, entry: Entry) -> None:
        self.eliminations = [*self.eliminations, entry]

    def round_opening_lines(
        self, round_number: int, active: Sequence[str], width: int
    ) -> list[Text]:
        left = [entry for entry in self.eliminations if entry["round"] < round_number]
        if not left:
            return []
        still = [f"  Still in: {self.names(self.in_order(active))}"] if active else []
        lines = [Text(line) for line in still]
        for entry in left:
            tail = f" {self._conceded(entry)}: {argument_of(entry)}"
            lines.append(Text.assemble("  ✗ ", self._struck_name(entry["seat"]), (tail, "muted")))
        return [cut(line, width) for line in lines]

    def elimination(self, entry: Entry, width: int) -> tuple[Text, str]:
        to = self.name(entry["convinced_by"])
        head = Text.assemble("  ✗ ", self._struck_name(entry["seat"]), f" is out: conceded to {to}")
        is_missing = entry.get("quote") and entry.get("quote_found") is False
        unfound = " (the quote was not found)" if is_missing else ""
        # Two lines at most; the record has the whole text.
        why = one_line(argument_of(entry), max(20, 2 * (width - 8) - len(unfound)))
        return cut(head, width), f"{why}{unfound}"

    def conviction(self, seat: str, reading: Entry | None, width: int) -> Text:
        line = Text.assemble("  ", self.title(seat), f" {self._says(reading)}")
        reason = (reading or {}).get("reasoning") or (reading or {}).get("argument")
        if reason:
            line.append(f": {one_line(str(reason), 2 * width)}", style="muted")
        return cut(line, width)

    def _says(self, reading: Entry | None) -> str:
        if reading is None:
            return "could not be parsed, stays in"
        if not reading.get("convinced"):
            return "does not concede"
        to = reading.get("convinced_by")
        return f"concedes to {self.name(to)}" if to else "is convinced, but names no other seat"

    def _struck_name(self, seat: str) -> Text:
        return Text(self.name(seat), style=f"{self.style(seat)}.out")

    def _conceded(self, entry: Entry) -> str:
        return f"conceded to {self.name(entry['convinced_by'])} in round {entry['round']}"


def argument_of(entry: Entry) -> str:
    said = entry.get("argument") or entry.get("reasoning") or "no argument given"
    return one_line(str(said), 1000)
