"""Who sits at the table, in which colour, and who has conceded to whom."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from contend.cli.view.format import listed, one_line, plain
from contend.cli.view.wrap import cut
from contend.graph.values import Seat

Entry = Mapping[str, Any]
"""An elimination, as the record tells it."""

# Yellow is kept for what went wrong, and dark blue cannot be read on black.
_COLOURS = (
    "cyan",
    "magenta",
    "green",
    "bright_blue",
    "bright_red",
    "bright_magenta",
    "bright_cyan",
    "bright_green",
    "white",
)


class SeatTable:
    """The seats of a debate and what has become of them."""

    def __init__(self, seats: Sequence[Seat] = (), eliminations: Iterable[Entry] = ()) -> None:
        self._seats = {seat.id: seat for seat in seats}
        self._colours = {
            seat.id: _COLOURS[place % len(_COLOURS)] for place, seat in enumerate(seats)
        }
        self.eliminations = list(eliminations)

    def name(self, seat: str) -> str:
        """What a seat is called; one that sits at no table by what it is."""
        found = self._seats.get(seat)
        return plain(found.name if found else seat.capitalize())

    @property
    def by_id(self) -> dict[str, str]:
        """What the seats are called, by id."""
        return {seat: self.name(seat) for seat in self._seats}

    @property
    def roles(self) -> set[str]:
        """Which roles are played."""
        return {seat.role for seat in self._seats.values()}

    def names(self, seats: Iterable[str]) -> str:
        """Several seats as one says them."""
        return listed([self.name(seat) for seat in seats])

    def model(self, seat: str) -> str:
        """The model a seat was given."""
        found = self._seats.get(seat)
        return found.model if found else ""

    def colour(self, seat: str) -> str:
        """The colour a seat keeps, wherever it is named."""
        return self._colours.get(seat, _COLOURS[0])

    def called(self, seat: str) -> Text:
        """A seat's name as a title."""
        return Text.assemble((self.name(seat), f"bold {self.colour(seat)}"))

    def in_order(self, seats: Iterable[str]) -> list[str]:
        """Seats in the order of the table."""
        wanted = dict.fromkeys(seats)
        return [s for s in self._seats if s in wanted] + [s for s in wanted if s not in self._seats]

    def table(self) -> list[Text]:
        """Everybody with their models; those who left are struck out."""
        widest = max((cell_len(self.name(seat)) for seat in self._seats), default=0)
        left = {entry["seat"]: entry for entry in self.eliminations}
        lines = []
        for seat in self._seats.values():
            name = Text(self.name(seat.id), style=self.colour(seat.id))
            gap = widest - name.cell_len + 2
            if seat.id in left:
                name.stylize("strike")
            line = Text.assemble("  ", name, " " * gap, plain(seat.model))
            if seat.id in left:
                line.append(f"  ✗ {self._conceded(left[seat.id])}", style="dim")
            lines.append(line)
        return lines

    def eliminate(self, entry: Entry) -> None:
        """Somebody has conceded and leaves."""
        self.eliminations = [*self.eliminations, entry]

    def before(self, round_number: int) -> list[Entry]:
        """Who had left when a round began."""
        return [entry for entry in self.eliminations if entry["round"] < round_number]

    def at_start(self, round_number: int, active: Sequence[str], width: int) -> list[Text]:
        """How the table stands when a round begins; nothing as long as nobody has left."""
        left = self.before(round_number)
        if not left:
            return []
        still = [f"  Still in: {self.names(self.in_order(active))}"] if active else []
        lines = [Text(line) for line in still]
        for entry in left:
            tail = f" {self._conceded(entry)}: {argument_of(entry)}"
            lines.append(Text.assemble("  ✗ ", self._struck(entry["seat"]), (tail, "dim")))
        return [cut(line, width) for line in lines]

    def elimination(self, entry: Entry, width: int) -> tuple[Text, str]:
        """That somebody leaves and to whom it concedes, and the argument it concedes to."""
        to = self.name(entry["convinced_by"])
        head = Text.assemble("  ✗ ", self._struck(entry["seat"]), f" is out: concedes to {to}")
        unfound = " (its quote was not found)" if _quote_is_missing(entry) else ""
        # Two lines hold it, and the record has it in full.
        why = one_line(argument_of(entry), max(20, 2 * (width - 8) - len(unfound)))
        return cut(head, width), f"{why}{unfound}"

    def conviction(self, seat: str, reading: Entry | None, width: int) -> Text:
        """Whether a seat concedes, with its reason as far as the line holds it."""
        line = Text.assemble("  ", self.called(seat), f" {self._says(reading)}")
        reason = (reading or {}).get("reasoning") or (reading or {}).get("argument")
        if reason:
            line.append(f": {one_line(str(reason), 2 * width)}", style="dim")
        return cut(line, width)

    def _says(self, reading: Entry | None) -> str:
        if reading is None:
            return "gave no word that could be read, and stays in"
        if not reading.get("convinced"):
            return "stands firm"
        to = reading.get("convinced_by")
        return f"concedes to {self.name(to)}" if to else "is convinced, but by nobody it can name"

    def _struck(self, seat: str) -> Text:
        return Text(self.name(seat), style=f"strike {self.colour(seat)}")

    def _conceded(self, entry: Entry) -> str:
        return f"conceded to {self.name(entry['convinced_by'])} in round {entry['round']}"


def argument_of(entry: Entry) -> str:
    """What a seat conceded to; where it named no argument, why it says it did."""
    said = entry.get("argument") or entry.get("reasoning") or "no argument is named"
    return one_line(str(said), 1000)


def _quote_is_missing(entry: Entry) -> bool:
    return bool(entry.get("quote")) and entry.get("quote_found") is False
