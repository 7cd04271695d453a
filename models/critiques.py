"""Reading what a critique decides: its control block's form, and the words of the protocol."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from graph.state import Assessment, Point, PointStatus, Severity

SEVERITY_MARKS: dict[str, Severity] = {"🔴": "critical", "🟡": "major", "🟢": "minor"}
STATUS_MARKS: dict[str, PointStatus] = {"✅": "resolved", "⚠": "partial", "❌": "open"}
READY_SIGNAL = "Ready for Synthesis ✅"

_Text = Annotated[str, StringConstraints(max_length=400)]


class CritiquePoint(BaseModel):
    """One objection as the Skeptic reports it."""

    id: Annotated[str, StringConstraints(max_length=8)] = Field(
        default="", description="The id of an earlier point, or empty for a new one."
    )
    severity: Literal["critical", "major", "minor"]
    status: Literal["open", "partial", "resolved"]
    text: _Text = Field(description="The objection in one short sentence.")


class CritiqueBlock(BaseModel):
    """What the Skeptic's control block carries."""

    ready: bool = Field(description="True only if the answer is ready for synthesis.")
    score: Annotated[int, Field(ge=1, le=10)] | None = Field(
        default=None, description="Quality of the answer now, 1 to 10."
    )
    points: Annotated[list[CritiquePoint], Field(max_length=12)] = Field(default_factory=list)


def assessment_from_block(
    block: CritiqueBlock, known: list[Point], read_from: Literal["block", "extraction"] = "block"
) -> Assessment:
    """Give new points the next free ids and keep the ids of known ones."""
    points = _numbered([(p.id, p.severity, p.status, p.text) for p in block.points], known)
    return Assessment(ready=block.ready, score=block.score, points=points, read_from=read_from)


def assessment_from_words(speech: str, known: list[Point]) -> Assessment | None:
    """Read the protocol's marks; None when they are absent or could be meant either way.

    A ready signal counts only as the line that closes the speech. One that stands anywhere else
    may be quoted in order to reject it, so such a speech is left to the extraction call.
    """
    lines = [line for line in _own_lines(speech) if line]
    if not lines:
        return None
    ready = _is_signal(lines[-1])
    signals = sum(READY_SIGNAL.lower() in line.lower() for line in lines)
    found = _marked_points(lines, known)
    if signals != int(ready) or not (ready or found or _says_none(lines)):
        return None
    points = _numbered(found, known)
    return Assessment(ready=ready, score=_stated_score(lines), points=points, read_from="words")


def all_points(assessments: list[Assessment]) -> list[Point]:
    """Every point with its latest status; an open one that is not raised again is dropped."""
    ledger: dict[str, Point] = {}
    for assessment in assessments:
        raised = {point.id: point for point in assessment.points}
        for point in ledger.values():
            if point.id not in raised and point.status in ("open", "partial"):
                raised[point.id] = point.model_copy(update={"status": "dropped"})
        ledger |= raised
    return sorted(ledger.values(), key=lambda point: int(point.id[1:]))


_Found = tuple[str, Severity, PointStatus, str]


def _numbered(found: list[_Found], known: list[Point]) -> tuple[Point, ...]:
    ids = {point.id for point in known}
    points: dict[str, Point] = {}
    for claimed, severity, status, text in found:
        fresh = f"S{max([0, *(int(used[1:]) for used in ids)]) + 1}"
        point_id = claimed if claimed in ids and claimed not in points else fresh
        ids.add(point_id)
        points[point_id] = Point(id=point_id, severity=severity, status=status, text=text)
    return tuple(points.values())


def _own_lines(speech: str) -> list[str]:
    """The speaker's own lines, bare of Markdown; quotations and code are not its own."""
    without_code = re.sub(r"```.*?(?:```|\Z)", "", speech, flags=re.DOTALL)
    lines = (line.strip() for line in without_code.splitlines())
    own = (line for line in lines if not line.startswith(">"))
    return [re.sub(r"^(?:[-+•]|\*(?!\*)|#{1,6}|\d+[.)]|\|)\s*", "", line) for line in own]


def _is_signal(line: str) -> bool:
    bare = re.sub(r"[*_`#]", "", line).strip().rstrip(".!").strip()
    label, colon, rest = bare.partition(":")
    if colon and label.lower() in ("verdict", "signal", "status", "decision"):
        bare = rest.strip()
    return bare.lower() == READY_SIGNAL.lower()


def _marked_points(lines: list[str], known: list[Point]) -> list[_Found]:
    earlier = {point.id: point for point in known}
    found = []
    for line in lines:
        severity = next((s for mark, s in SEVERITY_MARKS.items() if _leads(line, mark)), None)
        named = re.search(r"\bS\d+\b", line)
        before = earlier.get(named.group()) if named else None
        marked = severity is not None or any(_leads(line, mark) for mark in STATUS_MARKS)
        text = _bare_text(line) or (before.text if before else "")
        severity = severity or (before.severity if before else None)
        if marked and severity and text and not _means_none(text):
            found.append((before.id if before else "", severity, _status_in(line), text))
    return found


def _leads(line: str, mark: str) -> bool:
    """A mark counts where it labels the line: among its first characters, not in its prose."""
    return mark in re.split(r"[A-Za-z]{2,}", re.sub(r"\bS\d+\b", "", line), maxsplit=1)[0]


def _status_in(line: str) -> PointStatus:
    return next((status for mark, status in STATUS_MARKS.items() if mark in line), "open")


def _bare_text(line: str) -> str:
    marks = "".join([*SEVERITY_MARKS, *STATUS_MARKS, "\ufe0f"])
    text = re.sub(f"[{marks}*_`|]", "", line)
    label = (
        r"^\W*(?:S\d+\W*)?(?:(?:critical|major|minor|partially resolved|resolved|unresolved)"
        r"(?:\s+(?:issues?|points?))?\b\W*)*"
    )
    return re.sub(label, "", text, flags=re.IGNORECASE).strip()[:400]


def _means_none(text: str) -> bool:
    none = r"(?:none|nothing|n/a|0|no (?:\w+ )?(?:issues?|points?|problems?))(?:\W.{0,40})?"
    return re.fullmatch(none, text, re.IGNORECASE) is not None


def _says_none(lines: list[str]) -> bool:
    """A critique that lists severities with nothing under them is readable: nothing is open."""
    return any(
        _leads(line, mark) and _means_none(_bare_text(line))
        for line in lines
        for mark in SEVERITY_MARKS
    )


def _stated_score(lines: list[str]) -> float | None:
    for line in reversed(lines):
        found = re.fullmatch(
            r"\W*(?:quality |overall )?score\W+(10|[1-9](?:\.\d+)?)(?:\s*/\s*10)?\W*",
            line,
            re.IGNORECASE,
        )
        if found:
            return float(found.group(1))
    return None
