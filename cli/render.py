"""A debate as it happens, for people: events in, lines on a console out."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.rule import Rule
from rich.text import Text

from cli.words import (
    DEMONSTRATION,
    cost,
    counted,
    duration,
    number,
    one_line,
    plain,
    round_title,
    rounds_words,
    score_words,
)
from cli.wrap import WordWrapper
from debates.events import Event
from debates.exports.words import (
    DEGRADED_WORDS,
    POINT_WORDS,
    degraded_words,
    point_groups,
    sentence,
    stop_words,
)
from debates.records import Debate
from graph.state import SEVERITY_MARKS, Turn

_LONGEST_QUESTION = 600
_INDENT = 2
_POINT_MARKS = {"resolved": "✅", "partial": "⚠️", "dropped": "·"}
# Who speaks after a phase; a viewer is told whom the debate waits for.
_NEXT_ROLE = {"propose": "skeptic", "synthesize": "judge"}


class Renderer:
    """Writes one debate to one console, only ever appending."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._names: dict[str, str] = {}
        self._models: dict[str, str] = {}
        self._settings: dict[str, Any] = {}
        self._round_shown = 0
        self._speaker: tuple[str, str] | None = None
        self._wrapper: WordWrapper | None = None
        self._waiting: Progress | None = None

    def header(self, debate: Debate, notice: str) -> None:
        """What is asked, who sits where, and how the models were chosen."""
        seats = debate.as_state().get("seats", [])
        self._names = {seat.id: seat.name for seat in seats}
        self._models = {seat.id: seat.model for seat in seats}
        self._settings = debate.settings
        self._paragraph(one_line(debate.question, _LONGEST_QUESTION), "bold", indent=0)
        self._line()
        about = [debate.protocol, rounds_words(debate.settings), f"debate {debate.id[:8]}"]
        self._line(" · ".join(part for part in about if part))
        widest = max((cell_len(seat.name) for seat in seats), default=0)
        for seat in seats:
            self._line(f"  {seat.name.ljust(widest)}  {seat.model}")
        self._paragraph(notice, "dim", indent=0)
        if debate.demonstration:
            self._paragraph(DEMONSTRATION, "yellow", indent=0)

    def remark(self, text: str) -> None:
        """What the user puts in on resuming."""
        self._line()
        self._title("You", "")
        self._paragraph(text)

    def show(self, event: Event) -> None:
        """Render one event; those with nothing to show for themselves are passed over."""
        name = event["event"]
        if name.endswith("_chunk"):
            self._chunk(event)
            return
        shower: Callable[[Event], None] | None = getattr(self, f"_on_{name}", None)
        if shower:
            shower(event)

    def break_line(self) -> None:
        """Leave the line a speech is being written on, so that a message can follow."""
        self.stop_waiting()
        if self._wrapper:
            self._wrapper.cut()

    def stop_waiting(self) -> None:
        """Take the waiting line away."""
        if self._waiting:
            self._waiting.stop()
            self._waiting = None

    def footer(self, debate: Debate) -> None:
        """How it ended, what it took, and what can be done next."""
        self._end_speech()
        record = debate.as_json()
        if debate.status != "done":
            return
        self._rule("Done")
        self._facts(end_facts(record))
        self._line()
        short = debate.id[:8]
        for command, why in (
            (f"contend show {short}", "the whole debate"),
            (f"contend export {short} --format md", "as a document"),
            (f"contend rate {short} 8", "your own rating, 1 to 10"),
        ):
            self._line(f"  {command.ljust(38)}{why}" if self._width >= 66 else f"  {command}")

    def turn(self, turn: Turn, *, thinking: bool) -> None:
        """One finished turn of a kept debate."""
        if turn.phase == "synthesize":
            self._on_synthesis_start(None)
        else:
            self._open_round(turn.round)
        self._line()
        self._title(self._names.get(turn.seat, turn.seat.capitalize()), turn.model)
        if thinking and turn.thinking:
            self._paragraph(turn.thinking, "dim italic", indent=2 * _INDENT)
            self._line()
        self._paragraph(turn.text)
        if turn.status != "human":
            elapsed = (turn.ended_at - turn.started_at).total_seconds() * 1000
            self._line(f"  {_turn_facts(turn.usage.output_tokens, elapsed, turn.status)}", "dim")
        if turn.assessment:
            self._assessment(turn.assessment.model_dump())

    def points(self, points: Mapping[str, list[Mapping[str, Any]]]) -> None:
        """Every objection and what became of it."""
        if not points["open"] and not points["resolved"]:
            return
        self._rule("Objections")
        for group in point_groups(points).values():
            for point in group:
                became = POINT_WORDS.get(point["status"], point["status"])
                mark = SEVERITY_MARKS[point["severity"]]
                self._paragraph(f"{mark} {point['id']} {point['text']} ({became})", hang=3)

    def notices(self, entries: list[Mapping[str, Any]]) -> None:
        """What did not go as planned in a debate that has no end yet."""
        for entry in entries:
            self._paragraph(f"! {_notice(entry)}", "yellow", indent=0, hang=2)

    def note(self, text: str) -> None:
        """A sentence on its own."""
        self._line()
        self._paragraph(text, "bold", indent=0)

    # --- events ---

    def _on_rag_complete(self, event: Event) -> None:
        self._paragraph(event["content"], "dim", indent=0)

    def _on_round_start(self, event: Event) -> None:
        self._open_round(event["round"] or 1)
        self._wait_for(next(iter(self._names), ""))

    def _on_seat_complete(self, event: Event) -> None:
        meta = event["metadata"]
        if meta["phase"] == "score":
            return
        self._begin_speech(event)
        if self._wrapper and not self._wrapper.started:
            self._wrapper.feed(event["content"])
        self._end_speech()
        facts = _turn_facts(meta["usage"]["output_tokens"], meta["elapsed_ms"], meta["status"])
        self._line(f"  {facts}", "dim")
        if meta.get("assessment"):
            self._assessment(meta["assessment"])
        self._wait_for(self._seat_with(_NEXT_ROLE.get(meta["phase"], "")))

    def _on_judge_decision(self, event: Event) -> None:
        if event["metadata"].get("decision") != "stop":
            return
        self._end_speech()
        reason = event["content"] or stop_words(event["metadata"].get("reason"))
        self.note(f"The rounds end here: {sentence(reason)}")

    def _on_synthesis_start(self, _: Event | None) -> None:
        self._end_speech()
        self._rule("Answer")
        self._wait_for(self._seat_with("synthesizer"))

    def _on_degraded(self, event: Event) -> None:
        meta = event["metadata"]
        again = meta.get("restart") and meta.get("what") != "failed"
        streaming = self._wrapper is not None and self._wrapper.started
        if meta.get("restart"):
            self._end_speech()
        else:
            self.break_line()
        name = self._names.get(str(meta.get("seat")), str(meta.get("seat")))
        what = DEGRADED_WORDS.get(str(meta.get("what")), str(meta.get("what")))
        tail = " The text starts again." if again and streaming else ""
        why = event["content"].rstrip(".")
        self._paragraph(f"! {name}: {what} ({why}).{tail}", "yellow", hang=2)
        if again:
            self._wait_for(str(meta.get("seat")))

    def _on_scores(self, _: Event) -> None:
        self.stop_waiting()

    def _on_paused(self, event: Event) -> None:
        self._end_speech()
        asked = event["metadata"].get("ask")
        if not asked:
            return
        self._line()
        next_step = "the answer is written" if asked.get("stop") else "the next round begins"
        self._paragraph(
            f"Waiting for you before {next_step}. Add --say TEXT to put in a word, "
            "or --finish to have the answer written now.",
            "bold",
            indent=0,
        )

    def _on_error(self, _: Event) -> None:
        self._end_speech()

    # --- speeches ---

    def _chunk(self, event: Event) -> None:
        if event["event"] == "judge_chunk":
            return
        self._begin_speech(event)
        if self._wrapper:
            self._wrapper.feed(event["content"])

    def _begin_speech(self, event: Event) -> None:
        """Print who speaks, unless this speech is already under way."""
        meta = event["metadata"]
        speaker = (str(meta["seat"]), str(meta["model"]))
        self.stop_waiting()
        if self._speaker == speaker:
            return
        self._end_speech()
        if meta.get("role") != "synthesizer":
            self._open_round(event["round"] or 1)
        self._speaker = speaker
        self._line()
        self._title(self._names.get(speaker[0], speaker[0]), speaker[1])
        self._wrapper = WordWrapper(self._width, self._write, _INDENT)

    def _end_speech(self) -> None:
        self.stop_waiting()
        if self._wrapper:
            self._wrapper.finish()
        self._speaker = self._wrapper = None

    def _assessment(self, assessment: Mapping[str, Any]) -> None:
        points = assessment["points"]
        score = assessment.get("score")
        tail = f"   Score so far: {score:g}" if score is not None else ""
        self._line()
        self._line(f"  Open: {_point_counts(points)}{tail}", "bold")
        for point in points:
            mark = _POINT_MARKS.get(point["status"], SEVERITY_MARKS[point["severity"]])
            style = "dim" if point["status"] in ("resolved", "dropped") else ""
            self._paragraph(f"{mark} {point['id']} {point['text']}", style, hang=3)

    # --- the console ---

    @property
    def _width(self) -> int:
        return self._console.width

    def _open_round(self, round_number: int) -> None:
        if round_number <= self._round_shown:
            return
        self._end_speech()
        self._round_shown = round_number
        self._rule(round_title(round_number, self._settings))

    def _rule(self, title: str) -> None:
        self._line()
        self._console.print(Rule(Text(title, style="bold"), style="dim", characters="─"))

    def _title(self, name: str, model: str) -> None:
        title = Text(name, style="bold cyan")
        if model:
            title.append(f" · {model}", style="dim")
        self._console.print(title, soft_wrap=True)

    def _facts(self, facts: list[tuple[str, str]]) -> None:
        widest = max(len(label) for label, _ in facts) + 2
        for label, value in facts:
            padded = label.ljust(widest).replace(" ", "\u00a0")  # a space would be wrapped away
            self._paragraph(f"{padded}{value}", indent=0, hang=widest)

    def _paragraph(self, text: str, style: str = "", indent: int = _INDENT, hang: int = 0) -> None:
        self.stop_waiting()
        wrapper = WordWrapper(self._width, lambda piece, _: self._write(piece, style), indent, hang)
        wrapper.feed(text)
        wrapper.finish()

    def _line(self, text: str = "", style: str = "") -> None:
        self.stop_waiting()
        self._console.print(Text(plain(text), style=style), soft_wrap=True)

    def _write(self, text: str, style: str) -> None:
        self._console.print(Text(text, style=style), end="", soft_wrap=True)

    def _seat_with(self, role: str) -> str:
        return role if role in self._names else ""

    def _wait_for(self, seat: str) -> None:
        """Show that something is being waited for, where a line can be taken back."""
        terminal = self._console.is_terminal and not self._console.is_dumb_terminal
        if not terminal or not seat:
            return
        self.stop_waiting()
        what = "rates the answer" if seat == "judge" else "is thinking"
        self._waiting = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", style="dim"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._waiting.add_task(f"{self._names[seat]} {what}", total=None)
        self._waiting.start()


def end_facts(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What there is to know about a debate in a few lines."""
    usage, rated = record["usage"], record["auto_score"]
    after = f"after {counted(record['total_rounds'], 'round')}: "
    tokens = f"{number(usage['input_tokens'])} in, {number(usage['output_tokens'])} out"
    facts = [
        ("Stopped", after + stop_words(record["stop_reason"])),
        ("Points", _points_fact(record)),
        (
            "Score",
            "demonstration: it means nothing; " * record["demonstration"] + _score_fact(rated),
        ),
        ("Tokens", tokens),
        ("Cost", cost(usage["cost_usd"])),
        ("Time", duration(record["timing"]["total_ms"])),
    ]
    return facts + [("Notice", _notice(entry)) for entry in record["degraded"]]


def _notice(entry: Mapping[str, Any]) -> str:
    return one_line(degraded_words(entry), 400)


def _points_fact(record: Mapping[str, Any]) -> str:
    critiques = [turn for turn in record["turns"] if turn["phase"] == "critique"]
    if critiques and not any(turn["assessment"] for turn in critiques):
        return "none could be read"
    groups = point_groups(record["points"])
    counts = {name: len(group) for name, group in groups.items()}
    return ", ".join(
        f"{count} {name}" for name, count in counts.items() if count or name != "not raised again"
    )


def _score_fact(rated: Mapping[str, Any] | None) -> str:
    if rated is None:
        return "not rated"
    sharing = rated.get("judge_shares_model_with")
    shared = f"; the judge shares its model with the {' and the '.join(sharing)}" if sharing else ""
    return f"{score_words(rated)} by {rated['judge_model']}{shared}"


def _turn_facts(tokens: int | None, milliseconds: float, status: str) -> str:
    facts = [f"{number(tokens)} tokens", duration(milliseconds)]
    if status == "fallback_model":
        facts.append("by a fallback model")
    return " · ".join(facts)


def _point_counts(points: Iterable[Mapping[str, Any]]) -> str:
    """How many points of each severity are open."""
    left = [p["severity"] for p in points if p["status"] in ("open", "partial")]
    return " ".join(f"{mark} {left.count(level)}" for level, mark in SEVERITY_MARKS.items())
