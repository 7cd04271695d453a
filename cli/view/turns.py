"""Speeches one below the other: streamed as they are said, or printed whole."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from contend.cli.view.format import duration, number, one_line, plain
from contend.cli.view.page import INDENT, Page, Paragraph
from contend.cli.view.seats import SeatTable
from contend.cli.view.wrap import WordWrapper
from contend.debates.events import Event
from contend.debates.exports.labels import (
    FLOOR_PHASES,
    overlong_words,
    quote_words,
    quotes_told,
    stand_in_words,
    tool_words,
)
from contend.graph.events import NodeEvent
from contend.graph.readings import SEVERITY_MARKS

_LONGEST_TOOL_USE = 160
_POINT_MARKS = {"resolved": "✅", "partial": "⚠️", "dropped": "·"}


@dataclass(frozen=True)
class ShownTurn:
    """One finished speech, whether it was just heard or has been kept."""

    seat: str
    model: str
    phase: str
    text: str
    status: str
    tokens: int | None
    elapsed_ms: float
    reading: Mapping[str, Any] | None = None
    """What was read from it: points, a decision, a conviction; each has its `kind`."""
    tools: tuple[Mapping[str, Any], ...] = ()
    quotes: tuple[Mapping[str, Any], ...] = ()
    thinking: str | None = None
    length: Mapping[str, Any] | None = None

    @classmethod
    def of_event(cls, event: Event | NodeEvent) -> "ShownTurn":
        """Read the event of a finished turn; `turn_event` makes it from a stored one."""
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
        """Whether its words are those of an earlier answer, which the reader has seen."""
        return self.status == "kept_previous" and self.phase != "synthesize"


class TurnPrinter:
    """Prints who speaks and what they say; at any time one speech can be under way."""

    def __init__(self, page: Page, standing: SeatTable) -> None:
        self._page, self._standing = page, standing
        self._speaker: tuple[str, str, str] | None = None
        self._wrapper: WordWrapper | None = None

    @property
    def under_way(self) -> bool:
        """Whether words of a speech have been printed that is not ended."""
        return self._wrapper is not None and self._wrapper.started

    def stream(self, seat: str, model: str, piece: str, phase: str = "") -> None:
        """Print the next piece of a speech."""
        wrapper = self._begin(seat, model, phase)
        wrapper.resize(self._page.width)
        wrapper.feed(piece)

    def finish(self, speech: ShownTurn, *, thinking: bool = False) -> None:
        """End a speech with what there is to know about it; print it if nobody has heard it."""
        wrapper = self._begin(speech.seat, speech.model, speech.phase)
        if thinking and speech.thinking:
            self._page.paragraph(speech.thinking, "dim italic", indent=2 * INDENT)
            self._page.line()
        if not wrapper.started and not speech.is_repeated:
            wrapper.feed(speech.text)
        self.end()
        self._page.paragraphs(about(speech))

    def cut(self, *, between_words: bool = False) -> None:
        """Leave the line a speech is being written on."""
        if self._wrapper:
            self._wrapper.cut(between_words=between_words)

    def end(self) -> None:
        """End the speech that is under way."""
        if self._wrapper:
            self._wrapper.finish()
        self._speaker = self._wrapper = None

    def _begin(self, seat: str, model: str, phase: str) -> WordWrapper:
        """Print who speaks, unless this speech is already under way."""
        if self._wrapper and self._speaker == (seat, model, phase):
            return self._wrapper
        self.end()
        self._page.line()
        self._page.print(self._title(seat, model, phase))
        self._speaker = (seat, model, phase)
        page, on_screen = self._page, self._page.console.is_terminal
        self._wrapper = WordWrapper(page.width, page.write, INDENT, on_screen=on_screen)
        return self._wrapper

    def _title(self, seat: str, model: str, phase: str) -> Text:
        title = self._standing.called(seat)
        title.append(f": {FLOOR_PHASES[phase]}" if phase in FLOOR_PHASES else "", style="bold")
        return title.append(f" · {plain(model)}", style="dim") if model else title


def about(speech: ShownTurn) -> list[Paragraph]:
    """What there is to know about a speech besides its words."""
    facts = [Paragraph(_facts(speech), "dim")] if _facts(speech) else []
    reading = speech.reading if speech.reading and speech.reading["kind"] == "critique" else None
    points = _points(reading) if reading else ()
    return [*facts, *points, *_tools(speech.tools), *_quotes(speech.quotes)]


def _facts(speech: ShownTurn) -> str:
    if what := stand_in_words(speech.phase, speech.status):
        return what
    if not speech.model:  # a person's words, or such as no model was asked for
        return ""
    if not speech.tokens and not speech.elapsed_ms:  # part of a turn that tells what both took
        return ""
    facts = [f"{number(speech.tokens)} tokens", duration(speech.elapsed_ms)]
    if speech.status == "fallback_model":
        facts.append("by a fallback model")
    if over := overlong_words(speech.length):
        facts.append(over)
    return " · ".join(facts)


def _points(assessment: Mapping[str, Any]) -> Iterable[Paragraph]:
    """The objections of a critique, and what has become of earlier ones."""
    points, score = assessment["points"], assessment.get("score")
    left = [p["severity"] for p in points if p["status"] in ("open", "partial")]
    counts = " ".join(f"{mark} {left.count(level)}" for level, mark in SEVERITY_MARKS.items())
    tail = f" · Score so far: {score:g}" if score is not None else ""
    yield Paragraph("")
    yield Paragraph(f"Open: {counts}{tail}", "bold")
    for point in points:
        mark = _POINT_MARKS.get(point["status"], SEVERITY_MARKS[point["severity"]])
        style = "dim" if point["status"] in ("resolved", "dropped") else ""
        yield Paragraph(f"{mark} {point['id']} {point['text']}", style, hang=3)


def _tools(uses: Iterable[Mapping[str, Any]]) -> Iterable[Paragraph]:
    """What tools were used, in a few words each."""
    for use in uses:
        style = "yellow" if use["failed"] else "dim"
        yield Paragraph(one_line(tool_words(use), _LONGEST_TOOL_USE), style, hang=2)


def _quotes(quotes: Iterable[Mapping[str, Any]]) -> Iterable[Paragraph]:
    """What of the quoted words stands in the documents."""
    checked = [quote for quote in quotes if quote["status"] != "from_debate"]
    if not checked:
        return
    yield Paragraph("")
    yield Paragraph(f"Quotes: {quotes_told(checked)}", "bold")
    for quote in checked:
        style = "dim" if quote["status"] == "found" else "yellow"
        yield Paragraph(quote_words(quote), style, hang=3)
