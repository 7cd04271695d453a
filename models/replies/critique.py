import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    model_validator,
)

from contend.graph.readings import SEVERITY_MARKS, Assessment, Point, PointStatus, Severity
from contend.models.replies.own_words import plain_sentences

MarkedPoint = tuple[str, Severity, PointStatus, str]

_SIGNAL_WORDS = "ready for synthesis"
ISSUE = r"(?:issues?|points?|problems?|flaws?|concerns?|errors?|gaps?|objections?)"
# Does not match "no new" or "no other" critical issues, because an old one may still be open.
NONE_LEFT = re.compile(
    r"(?:(?:I (?:see|find|found|have)|there (?:are|is|were)) )?(?:no|none|nothing|n/a|zero|0)"
    rf"(?: (?:more|remaining|open|unresolved|critical|major|minor|or))*(?: {ISSUE})?"
    r"(?: (?:left|remain(?:s|ing)?|found|identified|outstanding|open|any ?more|were|are|at all))*",
    re.IGNORECASE,
)
_CRITICAL_LABEL = re.compile(rf"^[\W_]*(?:critical(?: {ISSUE})?[\W_]*[:–—(-])?", re.IGNORECASE)

_Status = Literal["open", "partial", "resolved"]
_STATUS_WORDS: dict[object, _Status] = {
    "new": "open",
    "unresolved": "open",
    "partially resolved": "partial",
    "partly resolved": "partial",
}


def _status_word(given: object) -> object:
    """Normalize a status, and replace a known synonym with the valid word."""
    word = " ".join(given.lower().replace("_", " ").split()) if isinstance(given, str) else given
    return _STATUS_WORDS.get(word, word)


class CritiquePoint(BaseModel):
    """One objection in the Skeptic's control block."""

    id: str | None = Field(default=None, description="The id of an earlier point, else null.")
    severity: Literal["critical", "major", "minor"]
    status: Annotated[_Status, BeforeValidator(_status_word)]
    text: str = Field(description="The objection in one short sentence.")


class CritiqueBlock(BaseModel):
    """The content of the Skeptic's control block."""

    ready: bool = Field(description="True only if the answer is ready for synthesis.")
    score: Annotated[float, Field(ge=1, le=10)] | None = Field(
        default=None, description="Quality of the answer now, 1 to 10."
    )
    points: list[CritiquePoint]

    @model_validator(mode="before")
    @classmethod
    def _is_not_ready_by_default(cls, values: Any) -> Any:
        """Set a missing `ready` to false, because the first round's prompt does not ask for it."""
        return {"ready": False, **values} if isinstance(values, dict) else values


_SHORT = 120
# A text longer than this without a full stop was probably cut off.
_LONG_ENOUGH_TO_END = 80
# One word in ten may differ.
_SAME_WORDS = 0.85


def _end_at_word(text: str) -> str:
    if len(text) < _LONG_ENOUGH_TO_END or text.rstrip().endswith((".", "!", "?", "…")):
        return text
    whole = text[: _SHORT - 1].rpartition(" ")[0].rstrip(" ,;:-") or text[: _SHORT - 1]
    return f"{whole}…"


class ShortPoint(CritiquePoint):
    """An objection with a length limit."""

    text: Annotated[str, StringConstraints(max_length=_SHORT), AfterValidator(_end_at_word)]


class ShortCritiqueBlock(CritiqueBlock):
    """A CritiqueBlock with length limits, for the demo model."""

    # A whole number, because llama.cpp does not enforce a schema's ranges for floats.
    score: Annotated[int, Field(ge=1, le=10)] | None = None
    points: Annotated[list[ShortPoint], Field(max_length=3)]  # type: ignore[assignment]


def assessment_from_block(block: CritiqueBlock, speech: str, known: Sequence[Point]) -> Assessment:
    found = [(p.id or "", p.severity, p.status, p.text) for p in block.points]
    points = number_points(found, known)
    return Assessment(
        ready=block.ready,
        score=block.score,
        points=points,
        none_critical=_none_critical(points, speech),
    )


def assessment_from_report(
    report: CritiqueBlock, speech: str, known: Sequence[Point]
) -> Assessment:
    """Convert an extracted block, ignoring signals and scores that are not in the text."""
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
        unlisted_critical=_leaves_out_critical(points, speech),
        unstated_score=None if stated else report.score,
        read_from="extraction",
    )


def _none_critical(points: tuple[Point, ...], speech: str) -> bool:
    critical = [point for point in points if point.severity == "critical"]
    settled = all(point.status == "resolved" for point in critical)
    return settled and not _leaves_out_critical(points, speech)


def _leaves_out_critical(points: tuple[Point, ...], speech: str) -> bool:
    listed = any(point.severity == "critical" for point in points)
    return not listed and any(map(_marks_critical, re.split(r"\n|(?<=[.!?;])\s", speech)))


def _marks_critical(sentence: str) -> bool:
    """Return whether an objection follows the critical symbol, not ✅ or a word such as `none`."""
    _, mark, issue = sentence.partition(SEVERITY_MARKS["critical"])
    named = _CRITICAL_LABEL.sub("", issue).strip(" .!)*_")
    is_resolved = issue.lstrip().startswith("✅")
    return bool(mark) and not is_resolved and NONE_LEFT.fullmatch(named) is None


def _states_score(speech: str, score: float) -> bool:
    number = rf"{score:g}(?:\.0+)?(?![\d.]\d)"
    said = (
        rf"(?:score|rate|rating|quality)\D{{0,20}}\b{number}|\b{number}\s*(?:/|(?:out )?of)\s*10\b"
    )
    return re.search(said, speech, re.IGNORECASE) is not None


def number_points(found: Sequence[MarkedPoint], known: Sequence[Point]) -> tuple[Point, ...]:
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
    """Return `said`, or an empty string if it only repeats the objection."""
    return "" if _words(said) == _words(objection) else said


def _known_id(text: str, known: Sequence[Point]) -> str:
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
