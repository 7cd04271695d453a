from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_args

from rich.text import Text

from contend.cli.view.format import one_line, plain
from contend.cli.view.page import INDENT, Page, Paragraph
from contend.cli.view.seats import SeatTable
from contend.cli.view.wrap import WordWrapper
from contend.debates.events import Event
from contend.debates.exports import wording
from contend.debates.exports.wording import duration, number
from contend.graph.events import NodeEvent
from contend.graph.phases import PHASES, StepPhase
from contend.graph.readings import SEVERITY_MARKS

_LONGEST_TOOL_USE = 160
# The phases of a moderated debate.
TITLED_PHASES = {
    name: PHASES[name].label
    for name in (*get_args(StepPhase), "ruling", "adjustment", "fact_check")
}
_POINT_MARKS = {"resolved": "✅", "partial": "⚠️", "dropped": "·"}


@dataclass(frozen=True)
class ShownTurn:
    seat: str
    model: str
    phase: str
    text: str
    status: str
    tokens: int | None
    elapsed_ms: float
    reading: Mapping[str, Any] | None = None
    """What was parsed from the turn, such as objections or a decision; `kind` says which."""
    tools: tuple[Mapping[str, Any], ...] = ()
    quotes: tuple[Mapping[str, Any], ...] = ()
    thinking: str | None = None
    length: Mapping[str, Any] | None = None

    @classmethod
    def of_event(cls, event: Event | NodeEvent) -> "ShownTurn":
        meta = event["metadata"]
        return cls(
            seat=str(meta["seat"]),
            model=str(meta["model"]),
            phase=str(meta["phase"]),
            text=event["content"],
            status=str(meta["status"]),
            tokens=meta["usage"]["output_tokens"],
            elapsed_ms=meta["elapsed_ms"],
            reading=meta.get("assessment"),
            tools=tuple(meta.get("tool_calls", ())),
            quotes=tuple(meta.get("quotes", ())),
            thinking=meta.get("thinking"),
            length=meta.get("length"),
        )

    @property
    def is_repeated(self) -> bool:
        return self.status == "kept_previous" and self.phase != "synthesize"


class TextWriter(Protocol):
    started: bool

    def resize(self, width: int) -> None: ...
    def feed(self, text: str) -> None: ...
    def write_whole(self, text: str) -> None: ...
    def cut(self, *, between_words: bool = False) -> None: ...
    def finish(self) -> None: ...


class TurnPrinter:
    def __init__(self, page: Page, seats: SeatTable) -> None:
        self._page, self._seats = page, seats
        self._speaker: tuple[str, str, str] | None = None
        self._wrapper: TextWriter | None = None

    @property
    def is_streaming(self) -> bool:
        return self._wrapper is not None and self._wrapper.started

    @property
    def uses_live_area(self) -> bool:
        return self.is_streaming and self._page.renders_markdown

    def stream(self, seat: str, model: str, piece: str, phase: str = "") -> None:
        wrapper = self._begin(seat, model, phase)
        wrapper.resize(self._page.width)
        wrapper.feed(piece)

    def finish(self, turn: ShownTurn, *, thinking: bool = False) -> None:
        wrapper = self._begin(turn.seat, turn.model, turn.phase)
        if thinking and turn.thinking:
            self._page.paragraph(turn.thinking, "thinking", indent=2 * INDENT)
            self._page.line()
        if not wrapper.started and not turn.is_repeated:
            wrapper.write_whole(turn.text)
        self.end()
        self._page.paragraphs(about(turn))

    def release(self) -> None:
        """Finish printing the text received so far; the rest of the turn is not shown."""
        if self._wrapper and self._page.renders_markdown:
            self._wrapper.finish()
        self.cut(between_words=True)

    def cut(self, *, between_words: bool = False) -> None:
        if self._wrapper:
            self._wrapper.cut(between_words=between_words)

    def end(self) -> None:
        if self._wrapper:
            self._wrapper.finish()
        self._speaker = self._wrapper = None

    def _begin(self, seat: str, model: str, phase: str) -> TextWriter:
        if self._wrapper and self._speaker == (seat, model, phase):
            return self._wrapper
        self.end()
        self._page.line()
        self._page.print(self._title(seat, model, phase))
        self._speaker = (seat, model, phase)
        self._wrapper = self._writer()
        return self._wrapper

    def _writer(self) -> TextWriter:
        page = self._page
        if page.renders_markdown:
            from contend.cli.view.markdown import MarkdownWriter  # slow to import

            return MarkdownWriter(page)
        on_screen = page.console.is_terminal
        return WordWrapper(page.width, page.write, INDENT, on_screen=on_screen)

    def _title(self, seat: str, model: str, phase: str) -> Text:
        title = self._seats.title(seat)
        if phase in TITLED_PHASES:
            title.append(f": {TITLED_PHASES[phase]}", style="heading")
        return title.append(f" · {plain(model)}", style="muted") if model else title


def about(turn: ShownTurn) -> list[Paragraph]:
    facts = [Paragraph(_facts(turn), "muted")] if _facts(turn) else []
    reading = turn.reading if turn.reading and turn.reading["kind"] == "critique" else None
    points = _points(reading) if reading else ()
    return [*facts, *points, *_tools(turn.tools), *_quotes(turn.quotes)]


def _facts(turn: ShownTurn) -> str:
    if what := wording.describe_stand_in(turn.phase, turn.status):
        return what
    if not turn.model:  # written by a person, or without a model call
        return ""
    if not turn.tokens and not turn.elapsed_ms:  # part of another turn
        return ""
    facts = [f"{number(turn.tokens)} tokens", duration(turn.elapsed_ms)]
    if turn.status == "fallback_model":
        facts.append("by a fallback model")
    if over := wording.length_words(turn.length):
        facts.append(over)
    return " · ".join(facts)


def _points(assessment: Mapping[str, Any]) -> Iterable[Paragraph]:
    points, score = assessment["points"], assessment.get("score")
    left = [p["severity"] for p in points if p["status"] in ("open", "partial")]
    counts = " ".join(f"{mark} {left.count(level)}" for level, mark in SEVERITY_MARKS.items())
    tail = f" · Score so far: {score:g}" if score is not None else ""
    yield Paragraph("")
    yield Paragraph(f"Open: {counts}{tail}", "heading")
    for point in points:
        mark = _POINT_MARKS.get(point["status"], SEVERITY_MARKS[point["severity"]])
        style = "muted" if point["status"] in ("resolved", "dropped") else ""
        note = f" → {point['note']}" if point.get("note") else ""
        yield Paragraph(f"{mark} {point['id']} {point['text']}{note}", style, hang=3)


def _tools(uses: Iterable[Mapping[str, Any]]) -> Iterable[Paragraph]:
    for use in uses:
        style = "warning" if use["failed"] else "muted"
        yield Paragraph(one_line(wording.tool_words(use), _LONGEST_TOOL_USE), style, hang=2)


def _quotes(quotes: Iterable[Mapping[str, Any]]) -> Iterable[Paragraph]:
    checked = wording.checked_quotes(quotes)
    if not checked:
        return
    yield Paragraph("")
    yield Paragraph(f"Quotes: {wording.count_quotes(checked)}", "heading")
    for quote in checked:
        style = "muted" if quote["status"] == "found" else "warning"
        yield Paragraph(wording.quote_words(quote), style, hang=3)
