"""A debate as it happens, for people: events in, lines on a console out."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from contend.cli.view.columns import Clock
from contend.cli.view.format import DEMONSTRATION, one_line, rounds_words
from contend.cli.view.page import Page
from contend.cli.view.seats import Entry, SeatTable
from contend.cli.view.sections import Sections, is_after_the_rounds
from contend.cli.view.speakers import Speakers
from contend.cli.view.summary import end_facts, notice
from contend.cli.view.turns import ShownTurn
from contend.debates.events import Event
from contend.debates.exports.labels import (
    DEGRADED_WORDS,
    POINT_WORDS,
    brought_words,
    known_as,
    point_groups,
    position_words,
    sentence,
    stop_words,
)
from contend.debates.record import StoredDebate
from contend.graph.events import turn_event
from contend.graph.protocols.base import strategy_for
from contend.graph.readings import SEVERITY_MARKS
from contend.graph.state import Turn

_LONGEST_QUESTION = 600
# After these a seat is at nothing any more.
_GIVEN_UP = ("failed", "sat_out")


class Renderer:
    """Writes one debate to one console; only the live area below the text is ever taken back."""

    def __init__(self, console: Console, clock: Clock = time.monotonic) -> None:
        self._page, self._floor = Page(console), Speakers()
        self._stage = Sections(self._page, clock)
        self._standing = SeatTable()
        self._untold: list[Entry] = []

    def header(self, debate: StoredDebate, notice: str) -> None:
        """What is asked, who sits where, and how the models were chosen."""
        state, page = debate.as_state(), self._page
        rounds = strategy_for(debate.as_settings()).rounds
        self._untold = [entry.model_dump() for entry in state.get("eliminations", [])]
        self._standing = SeatTable(state.get("seats", []), self._untold)
        self._stage.lay_table(self._standing, rounds)
        page.paragraph(one_line(debate.question, _LONGEST_QUESTION), "bold", indent=0)
        page.line()
        page.line(" · ".join([debate.protocol, rounds_words(*rounds), f"debate {debate.id[:8]}"]))
        page.print(*self._standing.table())
        page.paragraph(notice, "dim", indent=0)
        labels = known_as(debate.as_settings(), state.get("seats", []))
        for line in (*labels, *position_words(state), *brought_words(state)):
            page.paragraph(line, "dim", indent=0)
        if debate.demonstration:
            page.paragraph(DEMONSTRATION, "yellow", indent=0)

    def remark(self, text: str) -> None:
        """What the user puts in on resuming."""
        self._page.line()
        self._page.print(Text("You", style="bold"))
        self._page.paragraph(text)

    def note(self, text: str) -> None:
        """A sentence on its own."""
        self._stage.note(text)

    def end_rounds(self) -> None:
        """What follows belongs to no round."""
        self._stage.end_rounds()

    def footer(self, debate: StoredDebate) -> None:
        """How it ended, what it took, and what can be done next."""
        self._stage.end()
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
            *([(f"contend resolve {short} OUTCOME", "once it is known")] * unresolved),
        ):
            self._page.line(f"  {command.ljust(38)}{why}" if wide else f"  {command}")

    # --- a debate that is running ---

    def show(self, event: Event) -> None:
        """Render one event; those with nothing to show for themselves are passed over."""
        name = event["event"]
        shower: Callable[[Event], None] | None = getattr(self, f"_on_{name}", None)
        if name.endswith("_chunk"):
            self._on_chunk(event)
        elif shower:
            shower(event)
        self.resume_waiting()

    def break_line(self) -> None:
        """Leave the line a speech is being written on, so that a message can follow."""
        self._stage.break_line()

    def resume_waiting(self) -> None:
        """Show again who is at it, after a message."""
        self._page.live.resume()

    def stop_waiting(self) -> None:
        """Take away whatever is not there to stay."""
        self._stage.stop_waiting()

    def _on_rag_complete(self, event: Event) -> None:
        if event["content"]:
            self._page.paragraph(event["content"], "dim", indent=0)

    def _on_round_start(self, event: Event) -> None:
        number, meta = event["round"] or 0, event["metadata"]
        self._stage.end()
        first = self._floor.open_round(meta)
        active = [str(seat) for seat in meta.get("active", ())]
        self._stage.open_round(number, active)
        if meta.get("at_once") and set(first) == set(active):
            self._stage.join(first, number=number)
        else:
            self._stage.wait_for(first)

    def _on_chunk(self, event: Event) -> None:
        """Somebody is asked, or says something: alone, or at the same time as others."""
        meta, piece, number = event["metadata"], event["content"], event["round"] or 0
        seat, model, phase = str(meta["seat"]), str(meta["model"]), str(meta.get("phase", ""))
        if phase == "score" and self._stage.has_lanes:
            return  # an argument is rated while others are still being made
        if not piece:
            self._floor.ask(seat, phase)
        several = self._floor.together(seat, phase) if event["event"] == "seat_chunk" else []
        if several:
            self._stage.join(several, phase, number)[seat].feed(piece, model)
        elif piece:
            self._stage.say(seat, model, phase, number, piece)
        else:
            self._stage.end()
            self._stage.wait_for([seat], phase)

    def _on_seat_complete(self, event: Event) -> None:
        speech = ShownTurn.of_event(event)
        self._floor.leave(speech.seat, speech.phase)
        if speech.phase != "score":
            self._stage.finish(speech, event["round"] or 0)

    def _on_round_complete(self, _: Event) -> None:
        self._stage.end()

    def _on_model_eliminated(self, event: Event) -> None:
        self._stage.end()
        entry = {**event["metadata"], "round": event["round"], "reasoning": event["content"]}
        self._standing.eliminate(entry)
        self._eliminated(entry)

    def _on_convergence_status(self, event: Event) -> None:
        self._stage.end()
        if not event["metadata"].get("eliminated"):
            remaining = [str(seat) for seat in event["metadata"].get("remaining", ())]
            self.note(f"Nobody leaves: {self._standing.names(remaining)} stay in.")

    def _on_judge_decision(self, event: Event) -> None:
        self._stage.end()
        meta, why = event["metadata"], event["content"]
        if meta.get("decision") == "stop":
            why = why or stop_words(meta.get("reason"))
            self.note(f"The rounds end here: {sentence(why)}")
            self.end_rounds()
        elif meta.get("by_model") and why != "continue":
            # With nothing but that word, what the judge said could not be read.
            self._stage.decide("continue", why)

    def _on_synthesis_start(self, event: Event) -> None:
        self._stage.open_section("Answer")
        if writer := event["metadata"].get("seat"):
            self._stage.wait_for([str(writer)])

    def _on_degraded(self, event: Event) -> None:
        meta = event["metadata"]
        what = str(meta.get("what"))
        why = f"{DEGRADED_WORDS.get(what, what)} ({event['content'].rstrip('.')})"
        seat = str(meta.get("seat") or "debate")
        if what in _GIVEN_UP:
            self._floor.leave(seat, str(meta.get("phase", "")))
        # A rating that starts again voids nothing of what the judge says meanwhile.
        restart = bool(meta.get("restart")) and meta.get("phase") != "score"
        self._stage.hinder(seat, what, why, restart=restart)

    def _on_scores(self, _: Event) -> None:
        self._stage.stop_waiting()

    def _on_paused(self, event: Event) -> None:
        self._stage.end()
        asked = event["metadata"].get("ask")
        if not asked:
            return
        next_step = "the next round begins"
        if asked.get("stop"):
            closing = "position_advocate" in self._standing.roles
            next_step = "the closing statements" if closing else "the answer is written"
        self.note(
            f"Waiting for you before {next_step}. Add --say TEXT to put in a word, "
            "or --finish to have the answer written now."
        )

    def _on_error(self, event: Event) -> None:
        self._stage.end()
        self._stage.tell_failures(but=event["content"])

    def _eliminated(self, entry: Entry) -> None:
        head, why = self._standing.elimination(entry, self._page.width)
        self._page.print(head)
        self._page.paragraph(why, "dim", indent=4)

    # --- a debate that is kept ---

    def turn(self, turn: Turn, *, thinking: bool) -> None:
        """One finished turn."""
        self.eliminations(None if is_after_the_rounds(turn.phase) else turn.round)
        self._stage.open(turn.phase, turn.round)
        self._stage.tell(ShownTurn.of_event(turn_event(turn)), thinking=thinking)

    def eliminations(self, before: int | None = None) -> None:
        """Who left in rounds before this one, or at all, and was not told of yet."""
        due = [each for each in self._untold if before is None or each["round"] < before]
        self._untold = [each for each in self._untold if each not in due]
        for entry in due:
            self._eliminated(entry)

    def points(self, points: Mapping[str, list[Mapping[str, Any]]]) -> None:
        """Every objection and what became of it."""
        if not points["open"] and not points["resolved"]:
            return
        self._page.rule("Objections")
        for group in point_groups(points).values():
            for point in group:
                became = POINT_WORDS.get(point["status"], point["status"])
                mark = SEVERITY_MARKS[point["severity"]]
                self._page.paragraph(f"{mark} {point['id']} {point['text']} ({became})", hang=3)

    def notices(self, entries: list[Mapping[str, Any]]) -> None:
        """What did not go as planned in a debate that has no end yet."""
        for entry in entries:
            told = notice(entry, self._standing.by_id)
            self._page.paragraph(f"! {told}", "yellow", indent=0, hang=2)
