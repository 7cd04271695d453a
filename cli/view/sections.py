from collections.abc import Callable, Sequence

from contend.cli.view.format import one_line, round_title
from contend.cli.view.live import waiting_line
from contend.cli.view.page import Page
from contend.cli.view.seats import SeatTable
from contend.cli.view.side_by_side import Clock, Column, Columns
from contend.cli.view.turns import ShownTurn, TurnPrinter
from contend.debates.exports.wording import CLOSINGS, opening_title, sentence
from contend.graph.phases import PHASES

_LONGEST_REASON = 400
SECTIONS_AFTER_ROUNDS = {
    "closing": CLOSINGS,
    "end": CLOSINGS,
    "verdict": "Verdict",
    "synthesize": "Answer",
}
# These turns are printed on one line; `contend show --full` prints them in full.
_SUMMARISED = ("conviction_check", "judge_continue", "request")
# Not streamed: a moderator's turn may begin with a ruling, a fact check takes several calls, and
# proposed positions come after the streamed text.
_NOT_STREAMED = frozenset(name for name, row in PHASES.items() if not row.is_streamed)
_ANSWERING = ("proposer", "debater", "position_advocate")
_DOING: dict[str, str] = {name: row.activity for name, row in PHASES.items()}


class Sections:
    def __init__(
        self, page: Page, clock: Clock, cautions: Callable[[], Sequence[str]] = tuple
    ) -> None:
        self._page, self._clock, self._cautions = page, clock, cautions
        self._columns: Columns | None = None
        self._awaited: list[str] = []
        self._failed: dict[str, str] = {}
        self._rounds_over = False
        self._section, self._round, self._listed_round = "", -1, -1
        self.set_seats(SeatTable(), (0, 0))

    def set_seats(self, seats: SeatTable, rounds: tuple[int, int]) -> None:
        self._seats, self._rounds = seats, rounds
        self._printer = TurnPrinter(self._page, seats)

    # --- one at a time ---

    def wait_for(self, seats: Sequence[str], phase: str = "") -> None:
        if not seats or list(seats) == self._awaited:
            return
        self._awaited = list(seats)
        verb = "is" if len(seats) == 1 else "are"
        text = f"{self._seats.names(seats)} {verb} {self._doing(phase)}"
        self._page.live.set(waiting_line(text, self._clock))

    def _doing(self, phase: str) -> str:
        roles = set(self._seats.roles)
        if phase == "score" and roles and roles.isdisjoint(_ANSWERING):
            return "scoring the arguments"  # a forecast has no answer to rate
        return _DOING.get(phase, "thinking")

    def stream(self, seat: str, model: str, phase: str, number: int, piece: str) -> None:
        """Print a piece of a turn, or show a waiting line if the phase is not streamed."""
        if phase in _NOT_STREAMED:
            self.wait_for(self._awaited or [seat], phase)
            return
        self._close_columns()
        self._awaited = []
        if not self._printer.uses_live_area:
            self.stop_waiting()
        self.open(phase, number)
        self._printer.stream(seat, model, piece, phase)

    def wait_for_verdict(self, seat: str, phase: str) -> None:
        column = self._column(seat)
        if column:
            column.state = "deciding"
        elif phase not in _NOT_STREAMED:
            self._printer.release()
            reading = f"reading {self._seats.owner(seat)} verdict"
            self._page.live.set(waiting_line(reading, self._clock))

    def finish(self, turn: ShownTurn, number: int) -> None:
        """Print a finished turn or, if turns are shown in columns, wait until all have finished."""
        column = self._column(turn.seat)
        if column:
            column.finish(turn)
        if not column or not self._page.live.can_redraw:
            if not self._columns:
                self.stop_waiting()
            self.open(turn.phase, number)
            # The judge's decision has an event of its own.
            if turn.phase != "judge_continue":
                self.print_turn(turn)
        self._close_settled_columns()

    def print_turn(self, turn: ShownTurn, *, thinking: bool = False, whole: bool = False) -> None:
        """Print a turn; some phases print only the decision unless `whole` or `thinking` is set."""
        if turn.phase not in _SUMMARISED or thinking or whole:
            self._printer.finish(turn, thinking=thinking)
        elif turn.phase == "conviction_check":
            self._list(turn)
        elif turn.phase == "request":
            self._page.line()
            room = self._page.width if self._page.console.is_terminal else _LONGEST_REASON
            line = self._seats.title(turn.seat).append(": ", style="muted")
            self._page.print(line.append(one_line(turn.text, room - len(line)), style="muted"))
        elif turn.reading:
            self.print_decision(str(turn.reading["decision"]), str(turn.reading["reasoning"]))
        else:
            self.note("Could not parse the judge's decision.")

    def _list(self, turn: ShownTurn) -> None:
        if self._listed_round != self._round:
            self._page.line()
            self._listed_round = self._round
        self._page.print(self._seats.conviction(turn.seat, turn.reading, self._page.width))

    def print_decision(self, decision: str, reason: str) -> None:
        what = "stopped the debate" if decision == "stop" else "asked for another round"
        text = f"The judge {what}: {reason}".rstrip(": ")
        self.note(sentence(one_line(text, _LONGEST_REASON)))

    def note(self, text: str) -> None:
        self._page.line()
        self._page.paragraph(text, "heading", indent=0)

    def break_line(self, *, between_words: bool = False) -> None:
        self._page.live.hide()
        self._printer.cut(between_words=between_words)

    def resume_waiting(self) -> None:
        self._page.live.resume()

    def stop_waiting(self) -> None:
        self._page.live.clear()
        self._awaited = []

    def end(self) -> None:
        self.stop_waiting()
        self._close_columns()
        self._printer.end()

    # --- several at the same time ---

    def join(self, seats: Sequence[str], phase: str = "", number: int | None = None) -> Columns:
        if self._columns and self._columns.phase not in ("", phase):
            self._close_columns()
        if not self._columns:
            self.end()
            self.open(phase, number or 0)
            self._columns = Columns(
                self._seats, self._clock, is_raw=not self._page.renders_markdown
            )
            self._page.live.set(self._columns.frame)
        self._columns.phase = phase
        self._columns.add(seats)
        return self._columns

    def report_problem(self, seat: str, what: str, why: str, *, restart: bool) -> None:
        column, again = self._column(seat), restart and what != "failed"
        begun = self._printer.is_streaming
        if column:
            begun = self._page.live.can_redraw and bool(column.draft.text)
        elif restart:
            self.end()
        else:
            # A turn may have just ended before its last word was printed.
            self.break_line(between_words=True)
        tail = " The turn starts over." if again and begun else ""
        if what == "failed":
            self._failed[seat] = why
        else:
            self._failed.pop(seat, None)
            self._notice(seat, f"{why}.{tail}")
        if column:
            column.report_problem(what, restart=restart)
            self._close_settled_columns()
        elif again:
            self.wait_for([seat])

    @property
    def has_columns(self) -> bool:
        return self._columns is not None

    def print_failures(self, but: str) -> None:
        """Print every seat's failure except the one that the message `but` already reports."""
        for seat, why in self._failed.items():
            if not but.startswith(f"{self._seats.name(seat)} ("):
                self._notice(seat, f"{why}.")

    def _notice(self, seat: str, text: str) -> None:
        self._page.paragraph(f"! {self._seats.name(seat)}: {text}", "warning", hang=2)

    def _column(self, seat: str) -> Column | None:
        return self._columns.get(seat) if self._columns else None

    def _close_settled_columns(self) -> None:
        if self._columns and self._columns.is_settled:
            self._close_columns()

    def _close_columns(self) -> None:
        columns, self._columns = self._columns, None
        if not columns or not self._page.live.can_redraw:  # each was printed when it ended
            return
        self.stop_waiting()
        in_lines = columns.phase in _SUMMARISED
        if lines := [] if in_lines else columns.columns(self._page.console.width):
            self._page.print(*lines)
            return
        for column in columns.in_order():
            if column.turn:
                self.print_turn(column.turn)
            elif column.draft.text and not in_lines:
                self._printer.stream(column.seat, column.model, column.draft.text)
                self._printer.end()
                self._page.paragraphs(column.remarks())

    # --- sections ---

    def open(self, phase: str, number: int) -> None:
        title = SECTIONS_AFTER_ROUNDS.get(phase, CLOSINGS if self._rounds_over else "")
        if title:
            self.open_section(title)
        else:
            self.open_round(number)

    def end_rounds(self) -> None:
        self._rounds_over = True

    def open_section(self, title: str) -> None:
        if title != self._section:
            self.end()
            self._section = title
            self._page.rule(title)
            for caution in self._cautions() if title == "Answer" else ():
                self._page.paragraph(f"⚠ {caution}", "warning", hang=2)

    def open_round(self, number: int, active: Sequence[str] = ()) -> None:
        if number <= self._round:
            return
        self._round = number
        opening = opening_title(self._seats.roles)
        self.open_section(round_title(number, *self._rounds, opening))
        self._page.print(*self._seats.round_opening_lines(number, active, self._page.width))
