import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from contend.cli.view.format import DEMONSTRATION, one_line, rounds_words
from contend.cli.view.overview import print_objections, print_verdict
from contend.cli.view.page import Page
from contend.cli.view.seats import Entry, SeatTable
from contend.cli.view.sections import SECTIONS_AFTER_ROUNDS, Sections
from contend.cli.view.side_by_side import Clock
from contend.cli.view.speakers import Speakers
from contend.cli.view.summary import end_facts, notice
from contend.cli.view.turns import ShownTurn
from contend.debates.events import Event
from contend.debates.exports import wording
from contend.debates.exports.cautions import answer_cautions
from contend.debates.exports.objections import objection_rows
from contend.debates.exports.verdict import changes, dissent
from contend.debates.record import StoredDebate
from contend.graph.events import turn_event
from contend.graph.protocols.base import strategy_for
from contend.graph.state import Turn
from contend.nodes.prompting.points import track_points

_LONGEST_QUESTION = 600
# After these events the seat is idle.
_GIVEN_UP = ("failed", "sat_out", "out_of_budget")


class Renderer:
    def __init__(
        self, console: Console, clock: Clock = time.monotonic, *, is_raw: bool = False
    ) -> None:
        self._page, self._speakers = Page(console, is_raw=is_raw), Speakers()
        self.sections = Sections(self._page, clock, self._cautions)
        self._seats = SeatTable()
        self._about_seats: list[Mapping[str, Any]] = []
        self._points: list[Mapping[str, Any]] = []
        self._degraded: list[Mapping[str, Any]] = []
        self._is_demonstration = False
        self._unreported: list[Entry] = []
        self._clock, self._began = clock, clock()

    def prepare(self, debate: StoredDebate) -> tuple[int, int]:
        state = debate.as_state()
        rounds = strategy_for(debate.as_settings()).rounds
        self._unreported = [entry.model_dump() for entry in state.get("eliminations", [])]
        self._seats = SeatTable(state.get("seats", []), self._unreported)
        self.sections.set_seats(self._seats, rounds)
        self._about_seats = [seat.model_dump() for seat in state.get("seats", [])]
        self._points = [point.model_dump() for point in track_points(debate.turns)]
        self._degraded = [entry.model_dump() for entry in state.get("degraded", [])]
        self._is_demonstration = debate.demonstration
        return rounds

    def header(self, debate: StoredDebate, *notices: str) -> None:
        state, page = debate.as_state(), self._page
        rounds = self.prepare(debate)
        if debate.title:
            page.paragraph(debate.title, "heading", indent=0)
        page.paragraph(one_line(debate.question, _LONGEST_QUESTION), "heading", indent=0)
        page.line()
        page.line(" · ".join([debate.protocol, rounds_words(*rounds), f"debate {debate.id[:8]}"]))
        page.print(*self._seats.table())
        for each in notices:
            page.paragraph(each, "muted", indent=0)
        labels = wording.label_notice(debate.as_settings(), state.get("seats", []))
        for line in (*labels, *wording.position_words(state), *wording.attachment_lines(state)):
            page.paragraph(line, "muted", indent=0)
        if debate.demonstration:
            page.paragraph(DEMONSTRATION, "warning", indent=0)

    def remark(self, text: str) -> None:
        self._page.line()
        self._page.print(Text("You", style="heading"))
        self._page.paragraph(text)

    def ring_after(self, seconds: float) -> None:
        if self._page.console.is_terminal and self._clock() - self._began > seconds:
            self._page.console.bell()

    def footer(self, debate: StoredDebate) -> None:
        self.sections.end()
        if debate.status != "done":
            return
        self._page.rule("Done")
        self._page.facts(end_facts(debate.as_json()))
        self._page.line()
        short, wide = debate.id[:8], self._page.width >= 66
        unresolved = "request" in debate.state and debate.resolution is None
        for command, why in (
            (f"contend show {short}", "the whole debate"),
            (f"contend export {short} --format md", "as a document"),
            (f"contend rate {short} 8", "your own rating, 1 to 10"),
            *([(f"contend resolve {short} OUTCOME", "once the outcome is known")] * unresolved),
        ):
            self._page.line(f"  {command.ljust(38)}{why}" if wide else f"  {command}")

    # --- a debate that is running ---

    def show(self, event: Event) -> None:
        name = event["event"]
        shower: Callable[[Event], None] | None = getattr(self, f"_on_{name}", None)
        if name.endswith("_chunk"):
            self._on_chunk(event)
        elif shower:
            shower(event)
        self._page.live.resume()

    def _on_rag_complete(self, event: Event) -> None:
        if event["content"]:
            self._page.paragraph(event["content"], "muted", indent=0)

    def _on_resumed(self, event: Event) -> None:
        if event["content"]:
            self._page.paragraph(event["content"], "warning", indent=0)

    def _on_round_start(self, event: Event) -> None:
        number, meta = event["round"] or 0, event["metadata"]
        self.sections.end()
        first = self._speakers.open_round(meta)
        active = [str(seat) for seat in meta.get("active", ())]
        self.sections.open_round(number, active)
        if meta.get("at_once") and set(first) == set(active):
            self.sections.join(first, number=number)
        else:
            self.sections.wait_for(first)

    def _on_chunk(self, event: Event) -> None:
        meta, piece, number = event["metadata"], event["content"], event["round"] or 0
        seat, model, phase = str(meta["seat"]), str(meta["model"]), str(meta.get("phase", ""))
        if phase == "score" and self.sections.has_columns:
            return  # arguments are scored while others are still being written
        if not piece:
            self._speakers.ask(seat, phase)
        is_seat = event["event"] == "seat_chunk"
        several = self._speakers.speaking_with(seat, phase) if is_seat else []
        if several:
            self.sections.join(several, phase, number)[seat].feed(piece, model)
        elif piece:
            self.sections.stream(seat, model, phase, number, piece)
        else:
            self.sections.end()
            self.sections.wait_for([seat], phase)
        if meta.get("deciding"):
            self.sections.wait_for_verdict(seat, phase)

    def _on_seat_complete(self, event: Event) -> None:
        turn = ShownTurn.of_event(event)
        if turn.phase == "remark":  # shown when the debate was resumed
            return
        self._speakers.leave(turn.seat, turn.phase)
        if turn.phase != "score":
            self.sections.finish(turn, event["round"] or 0)

    def _on_round_complete(self, event: Event) -> None:
        self._points = event["metadata"].get("points", self._points)
        self.sections.end()

    def _on_model_eliminated(self, event: Event) -> None:
        self.sections.end()
        entry = {**event["metadata"], "round": event["round"], "reasoning": event["content"]}
        self._seats.eliminate(entry)
        self._eliminated(entry)

    def _on_convergence_status(self, event: Event) -> None:
        self.sections.end()
        if not event["metadata"].get("eliminated"):
            remaining = [str(seat) for seat in event["metadata"].get("remaining", ())]
            self.sections.note(f"Nobody conceded; still in: {self._seats.names(remaining)}.")

    def _on_judge_decision(self, event: Event) -> None:
        self.sections.end()
        meta, why = event["metadata"], event["content"]
        if meta.get("decision") == "stop":
            why = why or wording.stop_words(meta.get("reason"))
            self.sections.note(f"The rounds ended: {wording.sentence(why)}")
            self.sections.end_rounds()
        elif meta.get("by_model") and why != "continue":
            # A bare "continue" means that the decision could not be parsed.
            self.sections.print_decision("continue", why)

    def _on_synthesis_start(self, event: Event) -> None:
        self.sections.open_section("Answer")
        if writer := event["metadata"].get("seat"):
            self.sections.wait_for([str(writer)])

    def _on_degraded(self, event: Event) -> None:
        meta = event["metadata"]
        what = str(meta.get("what"))
        self._degraded.append({**meta, "what": what, "round": event["round"]})
        why = f"{wording.DEGRADED_WORDS.get(what, what)} ({event['content'].rstrip('.')})"
        seat = str(meta.get("seat") or "debate")
        if what in _GIVEN_UP:
            self._speakers.leave(seat, str(meta.get("phase", "")))
        # A restarted score does not discard what the judge is writing.
        restart = bool(meta.get("restart")) and meta.get("phase") != "score"
        self.sections.report_problem(seat, what, why, restart=restart)

    def _on_budget(self, event: Event) -> None:
        self.sections.break_line(between_words=True)
        self._page.paragraph(wording.sentence(event["content"]), "warning", indent=0)

    def _on_scores(self, _: Event) -> None:
        self.sections.stop_waiting()

    def _on_paused(self, event: Event) -> None:
        self.sections.end()
        asked = event["metadata"].get("ask")
        if not asked or "seat" in asked:  # the session asks a person who holds a seat
            return
        next_step = "the next round"
        if asked.get("stop"):
            closing = "position_advocate" in self._seats.roles
            next_step = "the closing statements" if closing else "the answer"
        self.sections.note(
            f'Paused before {next_step}. To add a comment, resume with --say "..."; '
            "to get the answer now, resume with --finish."
        )

    def _on_error(self, event: Event) -> None:
        self.sections.end()
        self.sections.print_failures(but=event["content"])

    def _cautions(self) -> list[str]:
        given = self._points, self._about_seats, self._degraded
        return answer_cautions(*given, demonstration=self._is_demonstration)

    def _eliminated(self, entry: Entry) -> None:
        head, why = self._seats.elimination(entry, self._page.width)
        self._page.print(head)
        self._page.paragraph(why, "muted", indent=4)

    # --- a stored debate ---

    def turn(self, turn: Turn, *, thinking: bool, whole: bool = False) -> None:
        self.eliminations(None if turn.phase in SECTIONS_AFTER_ROUNDS else turn.round)
        self.sections.open(turn.phase, turn.round)
        shown = ShownTurn.of_event(turn_event(turn))
        self.sections.print_turn(shown, thinking=thinking, whole=whole)

    def eliminations(self, before: int | None = None) -> None:
        """Print the eliminations not yet printed, or only those before round `before`."""
        due = [each for each in self._unreported if before is None or each["round"] < before]
        self._unreported = [each for each in self._unreported if each not in due]
        for entry in due:
            self._eliminated(entry)

    def overview(self, record: Mapping[str, Any]) -> None:
        if record["final_answer"]:
            print_verdict(self._page, record)
        if rows := objection_rows(record):
            self._page.rule("Objections")
            print_objections(self._page, rows)
        for title, lines in (("What changed", changes(record)), ("Dissent", dissent(record))):
            if lines:
                self._page.rule(title)
            for line in lines:
                self._page.paragraph(f"• {line}", hang=2)

    def notices(self, entries: list[Mapping[str, Any]]) -> None:
        for entry in entries:
            text = f"! {notice(entry, self._seats.by_id)}"
            self._page.paragraph(text, "warning", indent=0, hang=2)
