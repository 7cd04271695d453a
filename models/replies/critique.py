"""Parses what a critique decides, from its control block or a schema-bound report."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints

from contend.graph.readings import SEVERITY_MARKS, Assessment, Point, PointStatus, Severity
from contend.models.replies.own_words import plain_sentences

MarkedPoint = tuple[str, Severity, PointStatus, str]

_SIGNAL_WORDS = "ready for synthesis"

_Status = Literal["open", "partial", "resolved"]
_STATUS_WORDS: dict[object, _Status] = {
    "new": "open",
    "unresolved": "open",
    "partially resolved": "partial",
    "partly resolved": "partial",
}


def _status_word(given: object) -> object:
    """Accept the words of the speech, since one odd status would make the block unreadable."""
    word = " ".join(given.lower().replace("_", " ").split()) if isinstance(given, str) else given
    return _STATUS_WORDS.get(word, word)


class CritiquePoint(BaseModel):
    """One objection as the Skeptic reports it."""

    id: str | None = Field(default=None, description="The id of an earlier point, else null.")
    severity: Literal["critical", "major", "minor"]
    status: Annotated[_Status, BeforeValidator(_status_word)]
    text: str = Field(description="The objection in one short sentence.")


class CritiqueBlock(BaseModel):
    """What the Skeptic's control block carries."""

    ready: bool = Field(description="True only if the answer is ready for synthesis.")
    score: Annotated[float, Field(ge=1, le=10)] | None = Field(
        default=None, description="Quality of the answer now, 1 to 10."
    )
    points: list[CritiquePoint]


_SHORT = 120
# Of ten words, one may differ.
_SAME_WORDS = 0.85


def _end_at_word(text: str) -> str:
    if len(text) < _SHORT or text.endswith((".", "!", "?", "…")):
        return text
    whole = text[: _SHORT - 1].rpartition(" ")[0].rstrip(" ,;:-") or text[: _SHORT - 1]
    return f"{whole}…"


class ShortPoint(CritiquePoint):
    """One objection, short."""

    text: Annotated[str, StringConstraints(max_length=_SHORT), AfterValidator(_end_at_word)]


class ShortCritiqueBlock(CritiqueBlock):
    """The same for the demonstration model, which without bounds would never end."""

    # Whole numbers: ranges of fractions are not enforced by llama.cpp's schemas.
    score: Annotated[int, Field(ge=1, le=10)] | None = None
    points: Annotated[list[ShortPoint], Field(max_length=3)]  # type: ignore[assignment]


def assessment_from_block(block: CritiqueBlock, speech: str, known: Sequence[Point]) -> Assessment:
    """Read the block; new points get the next free ids, known ones keep theirs."""
    found = [(p.id or "", p.severity, p.status, p.text) for p in block.points]
    points = number_points(found, known)
    clear = _none_critical(points, speech)
    return Assessment(ready=block.ready, score=block.score, points=points, none_critical=clear)


def assessment_from_report(
    report: CritiqueBlock, speech: str, known: Sequence[Point]
) -> Assessment:
    """Read a schema-bound report, which may not add a signal, a score or a resolved new point."""
    ids = {point.id for point in known}
    reported = [(p, p.id or _known_id(p.text, known)) for p in report.points]
    points = number_points(
        [(at, p.severity, p.status if at in ids else "open", p.text) for p, at in reported],
        known,
    )
    said = plain_sentences(speech)
    stated = report.score is not None and any(_states_score(each, report.score) for each in said)
    return Assessment(
        ready=report.ready and any(_SIGNAL_WORDS in each.casefold() for each in said),
        score=report.score if stated else None,
        points=points,
        none_critical=bool(points) and _none_critical(points, speech),
        read_from="extraction",
    )


def _none_critical(points: tuple[Point, ...], speech: str) -> bool:
    """Whether no critical point is left, and every critical mark in the text is listed."""
    critical = [point for point in points if point.severity == "critical"]
    settled = all(point.status == "resolved" for point in critical)
    return settled and (bool(critical) or SEVERITY_MARKS["critical"] not in speech)


def _states_score(speech: str, score: float) -> bool:
    number = rf"{score:g}(?:\.0+)?(?![\d.]\d)"
    said = (
        rf"(?:score|rate|rating|quality)\D{{0,20}}\b{number}|\b{number}\s*(?:/|(?:out )?of)\s*10\b"
    )
    return re.search(said, speech, re.IGNORECASE) is not None


def number_points(found: Sequence[MarkedPoint], known: Sequence[Point]) -> tuple[Point, ...]:
    """Give new points the next free ids; earlier ones keep their text, and get a note."""
    earlier = {point.id: point for point in known}
    highest = max([0, *(int(used[1:]) for used in earlier)])
    points: dict[str, Point] = {}
    seen: set[tuple[Severity, str]] = set()
    for named, severity, status, text in found:
        claimed = named if named in earlier else _known_id(text, known)
        before = earlier.get(claimed) if claimed not in points else None
        if before is None:
            if text and (severity, text.casefold()) in seen:
                continue
            highest += 1
        seen.add((severity, text.casefold()))
        point = Point(id=f"S{highest}", severity=severity, status=status, text=text)
        if before is not None:
            said = {"id": claimed, "text": before.text or text, "note": note_on(before.text, text)}
            point = point.model_copy(update=said)
        points[point.id] = point
    return tuple(points.values())


def note_on(objection: str, said: str) -> str:
    """Return what is said about an objection, or nothing if it only repeats it."""
    return "" if _words(said) == _words(objection) else said


def _known_id(text: str, known: Sequence[Point]) -> str:
    """Return the id of an earlier point in the same or nearly the same words, else nothing."""
    words = _words(text)
    alike = {
        point.id: max(_likeness(words, point.text), _likeness(words, point.note))
        for point in known
        if words
    }
    best = max(alike, key=lambda point: alike[point], default="")
    return best if best and alike[best] >= _SAME_WORDS else ""


def _likeness(words: list[str], text: str) -> float:
    return SequenceMatcher(None, words, _words(text), autojunk=False).ratio()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
