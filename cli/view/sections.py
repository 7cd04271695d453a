"""What is being said now: one speech, several in lanes, or nothing yet."""

from collections.abc import Sequence

from contend.cli.view.columns import Clock, Column, Columns
from contend.cli.view.format import one_line, round_title
from contend.cli.view.live import waiting_line
from contend.cli.view.page import Page
from contend.cli.view.seats import SeatTable
from contend.cli.view.turns import ShownTurn, TurnPrinter
from contend.debates.exports.labels import CLOSINGS, opening_title, sentence
from contend.graph.contract.terms import ROLES

_LONGEST_REASON = 400
_AFTER_THE_ROUNDS = {
    "closing": CLOSINGS,
    "end": CLOSINGS,
    "verdict": "Verdict",
    "synthesize": "Answer",
}
# What these turns decide is told in a line; `contend show --thinking` prints their words.
_TOLD_IN_A_LINE = ("conviction_check", "judge_continue")
# A moderator's short turns may begin with a ruling, a check is made of several calls, and proposed
# positions stand behind the words that were streamed: whole.
_TOLD_WHOLE = ("positions", "request", "summary", "end", "fact_check")
_UNHEARD = ("score", *_TOLD_IN_A_LINE, *_TOLD_WHOLE)
_DOING = {
    "score": "rating the answer",
    "fact_check": "checking claims",
    "judge_continue": "weighing another round",
    "conviction_check": "weighing what the others said",
}


def is_after_the_rounds(phase: str) -> bool:
    """Whether turns of this phase belong to no round."""
    return phase in _AFTER_THE_ROUNDS


class Sections:
    """Opens sections and prints speeches in them; below, where it can, who is at it just now."""

    def __init__(self, page: Page, clock: Clock) -> None:
        self._page, self._clock = page, clock
        self._lanes: Columns | None = None
        self._awaited: list[str] = []
        self._failed: dict[str, str] = {}
        self._rounds_over = False
        self._section, self._round, self._listing = "", -1, -1
        self.lay_table(SeatTable(), (0, 0))

    def lay_table(self, standing: SeatTable, rounds: tuple[int, int]) -> None:
        """Take who sits there, and the least and the most rounds."""
        self._standing, self._rounds = standing, rounds
        self._speeches = TurnPrinter(self._page, standing)

    # --- one at a time ---

    def wait_for(self, seats: Sequence[str], phase: str = "") -> None:
        """Show who is being waited for, where a line can be taken back."""
        if not seats or list(seats) == self._awaited:
            return
        self._awaited = list(seats)
        verb = "is" if len(seats) == 1 else "are"
        text = f"{self._standing.names(seats)} {verb} {self._doing(phase)}"
        self._page.live.set(waiting_line(text, self._clock))

    def _doing(self, phase: str) -> str:
        roles = set(self._standing.roles)
        if phase == "score" and roles and roles <= set(ROLES):
            return "scoring the arguments"  # of a forecast, whose answer nobody rates
        return _DOING.get(phase, "thinking")

    def say(self, seat: str, model: str, phase: str, number: int, piece: str) -> None:
        """Print a piece of a speech, unless only what it decides is told."""
        if phase in _UNHEARD:
            self.wait_for(self._awaited or [seat], phase)
            return
        self._close_lanes()
        self.stop_waiting()
        self.open(phase, number)
        self._speeches.stream(seat, model, piece, phase)

    def finish(self, speech: ShownTurn, number: int) -> None:
        """A speech has ended: print it; those in lanes are printed when all have ended."""
        lane = self._lane(speech.seat)
        if lane:
            lane.finish(speech)
        if not lane or not self._page.live.possible:
            if not self._lanes:
                self.stop_waiting()
            self.open(speech.phase, number)
            # What a judge decides is told by an event of its own.
            if speech.phase != "judge_continue":
                self.tell(speech)
        self._close_settled_lanes()

    def tell(self, speech: ShownTurn, *, thinking: bool = False) -> None:
        """Print a whole speech, or what it decided; all of it with the speaker's thoughts."""
        if speech.phase not in _TOLD_IN_A_LINE or thinking:
            self._speeches.finish(speech, thinking=thinking)
        elif speech.phase == "conviction_check":
            self._list(speech)
        elif speech.reading:
            self.decide(str(speech.reading["decision"]), str(speech.reading["reasoning"]))
        else:
            self.note("What the judge decided could not be read.")

    def _list(self, speech: ShownTurn) -> None:
        """One line of several that belong together."""
        if self._listing != self._round:
            self._page.line()
            self._listing = self._round
        told = self._standing.conviction(speech.seat, speech.reading, self._page.width)
        self._page.print(told)

    def decide(self, decision: str, reason: str) -> None:
        """A judge has decided whether there is another round."""
        what = "ends the rounds" if decision == "stop" else "wants another round"
        told = sentence(one_line(f"The judge {what}: {reason}".rstrip(": "), _LONGEST_REASON))
        self.note(told)

    def note(self, text: str) -> None:
        """A sentence on its own."""
        self._page.line()
        self._page.paragraph(text, "bold", indent=0)

    def break_line(self, *, between_words: bool = False) -> None:
        """Leave the line a speech is being written on, so that a message can follow."""
        self._page.live.hide()
        self._speeches.cut(between_words=between_words)

    def stop_waiting(self) -> None:
        """Take away whatever is not there to stay."""
        self._page.live.clear()
        self._awaited = []

    def end(self) -> None:
        """Whatever is being said or waited for ends here."""
        self.stop_waiting()
        self._close_lanes()
        self._speeches.end()

    # --- several at the same time ---

    def join(self, seats: Sequence[str], phase: str = "", number: int | None = None) -> Columns:
        """Give each of these a lane, beside those who already have one for the same purpose."""
        if self._lanes and self._lanes.phase not in ("", phase):
            self._close_lanes()
        if not self._lanes:
            self.end()
            self.open(phase, number or 0)
            self._lanes = Columns(self._standing, self._clock)
            self._page.live.set(self._lanes.frame)
        self._lanes.phase = phase
        self._lanes.add(seats)
        return self._lanes

    def hinder(self, seat: str, what: str, why: str, *, restart: bool) -> None:
        """Something went wrong with a seat; a restart voids what it has said of its speech.

        That a call failed is told by what follows from it, with the reason.
        """
        lane, again = self._lane(seat), restart and what != "failed"
        begun = self._speeches.under_way
        if lane:
            begun = self._page.live.possible and bool(lane.draft.text)
        elif restart:
            self.end()
        else:
            # Told before a speech or behind it, whose last word waits to be written.
            self.break_line(between_words=True)
        tail = " The text starts again." if again and begun else ""
        if what == "failed":
            self._failed[seat] = why
        else:
            self._failed.pop(seat, None)
            self._notice(seat, f"{why}.{tail}")
        if lane:
            lane.hinder(what, restart=restart)
            self._close_settled_lanes()
        elif again:
            self.wait_for([seat])

    @property
    def has_lanes(self) -> bool:
        """Whether several are speaking now."""
        return self._lanes is not None

    def tell_failures(self, but: str) -> None:
        """Who failed besides the one whose failure ended the debate: its message names that one."""
        for seat, why in self._failed.items():
            if not but.startswith(f"{self._standing.name(seat)} ("):
                self._notice(seat, f"{why}.")

    def _notice(self, seat: str, text: str) -> None:
        self._page.paragraph(f"! {self._standing.name(seat)}: {text}", "yellow", hang=2)

    def _lane(self, seat: str) -> Column | None:
        return self._lanes[seat] if self._lanes and seat in self._lanes else None

    def _close_settled_lanes(self) -> None:
        if self._lanes and self._lanes.settled:
            self._close_lanes()

    def _close_lanes(self) -> None:
        """Leave in the scroll-back what was said at the same time."""
        lanes, self._lanes = self._lanes, None
        if not lanes or not self._page.live.possible:  # elsewhere each was told when it had ended
            return
        self.stop_waiting()
        in_lines = lanes.phase in _TOLD_IN_A_LINE
        if columns := [] if in_lines else lanes.columns(self._page.console.width):
            self._page.print(*columns)
            return
        for lane in lanes.in_order():
            if lane.speech:
                self.tell(lane.speech)
            elif lane.draft.text and not in_lines:
                self._speeches.stream(lane.seat, lane.model, lane.draft.text)
                self._speeches.end()
                self._page.paragraphs(lane.remarks())

    # --- sections ---

    def open(self, phase: str, number: int) -> None:
        """Head the section that a turn belongs to, unless it is headed already."""
        title = _AFTER_THE_ROUNDS.get(phase, CLOSINGS if self._rounds_over else "")
        if title:
            self.open_section(title)
        else:
            self.open_round(number)

    def end_rounds(self) -> None:
        """Whatever is said from now on belongs to no round."""
        self._rounds_over = True

    def open_section(self, title: str) -> None:
        """Head a section, unless it is the one that is open."""
        if title != self._section:
            self.end()
            self._section = title
            self._page.rule(title)

    def open_round(self, number: int, active: Sequence[str] = ()) -> None:
        """Head a round, and tell who is still in it once somebody has left."""
        if number <= self._round:
            return
        self._round = number
        opening = opening_title(self._standing.roles)
        self.open_section(round_title(number, *self._rounds, opening))
        self._page.print(*self._standing.at_start(number, active, self._page.width))
