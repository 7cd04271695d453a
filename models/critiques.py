"""Reading what a critique decides: its control block's form, and the words of the protocol."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from graph.state import Assessment, Point
from models.marks import SEVERITY_MARKS, Found, read_marks

__all__ = [
    "SEVERITY_MARKS",
    "CritiqueBlock",
    "CritiqueReport",
    "all_points",
    "assessment_from_block",
    "assessment_from_report",
    "assessment_from_words",
]

_SIGNAL_WORDS = "ready for synthesis"


class CritiquePoint(BaseModel):
    """One objection as the Skeptic reports it."""

    id: Annotated[str, StringConstraints(max_length=8)] | None = Field(
        default="", description="The id of an earlier point, or empty for a new one."
    )
    severity: Literal["critical", "major", "minor"]
    status: Literal["open", "partial", "resolved"]
    text: str = Field(description="The objection in one short sentence.")


class CritiqueBlock(BaseModel):
    """What the Skeptic's control block carries."""

    ready: bool = Field(description="True only if the answer is ready for synthesis.")
    score: Annotated[float, Field(ge=1, le=10)] | None = Field(
        default=None, description="Quality of the answer now, 1 to 10."
    )
    points: Annotated[list[CritiquePoint], Field(max_length=40)] = Field(default_factory=list)


class ReportedPoint(CritiquePoint):
    """One objection as a schema-bound call reports it; short, or a small model never ends."""

    text: Annotated[str, StringConstraints(max_length=120)] = Field(
        description="The objection in one short sentence."
    )


class CritiqueReport(CritiqueBlock):
    """What a schema-bound call reads from a critique that has no readable verdict."""

    # Whole numbers: ranges of fractions are not enforced by llama.cpp's schemas.
    score: Annotated[int, Field(ge=1, le=10)] | None = None
    points: Annotated[list[ReportedPoint], Field(max_length=3)] = Field(default_factory=list)  # type: ignore[assignment]


def assessment_from_block(block: CritiqueBlock, known: list[Point]) -> Assessment:
    """Give new points the next free ids and keep the ids of known ones."""
    found: list[Found] = [(p.id or "", p.severity, p.status, p.text) for p in block.points]
    return Assessment(ready=block.ready, score=block.score, points=_numbered(found, known))


def assessment_from_report(report: CritiqueReport, speech: str, known: list[Point]) -> Assessment:
    """What a schema-bound call read, held to the speech: it may not add a signal or a score to it.

    A point the speech raises for the first time is open, whatever the report says of it.
    """
    ids = {point.id for point in known}
    found: list[Found] = [
        (p.id or "", p.severity, p.status if p.id in ids else "open", p.text) for p in report.points
    ]
    signalled = _SIGNAL_WORDS in speech.casefold()
    stated = report.score is not None and re.search(rf"\b{report.score}\b", speech)
    return Assessment(
        ready=report.ready and signalled,
        score=report.score if stated else None,
        points=_numbered(found, known),
        read_from="extraction",
    )


def assessment_from_words(speech: str, known: list[Point]) -> Assessment | None:
    """Read the protocol's marks; None when they are absent or could be meant either way."""
    marks = read_marks(speech, known)
    if marks is None:
        return None
    points = _numbered(marks.found, known)
    return Assessment(ready=marks.ready, score=marks.score, points=points, read_from="words")


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


def _numbered(found: list[Found], known: list[Point]) -> tuple[Point, ...]:
    ids = {point.id for point in known}
    points: dict[str, Point] = {}
    for claimed, severity, status, text in found:
        if any(text.casefold() == point.text.casefold() for point in points.values()):
            continue
        fresh = f"S{max([0, *(int(used[1:]) for used in ids)]) + 1}"
        point_id = claimed if claimed in ids and claimed not in points else fresh
        ids.add(point_id)
        points[point_id] = Point(id=point_id, severity=severity, status=status, text=text)
    return tuple(points.values())
