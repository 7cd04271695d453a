from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contend.debates.exports import wording
from contend.graph.readings import SEVERITY_MARKS
from contend.models.text import shorten

COLUMNS = ("Objection", "Severity", "Raised", "Replies", "Outcome")
_LONGEST_REPLY = 300


@dataclass(frozen=True)
class ObjectionRow:
    id: str
    text: str
    mark: str
    severity: str
    raised: str
    replies: Sequence[str]
    reviews: Sequence[str]
    is_open: bool

    def cells(self) -> tuple[str, str, str, str, str]:
        text = f"{self.id} {self.text}"
        severity = f"{self.mark} {self.severity}"
        return text, severity, self.raised, " ".join(self.replies), " ".join(self.reviews)


def objection_rows(record: Mapping[str, Any]) -> list[ObjectionRow]:
    names = wording.seat_names(record["seats"])
    groups = wording.point_groups(record["points"])
    return [_row(point, names) for group in groups.values() for point in group]


def _row(point: Mapping[str, Any], names: Mapping[str, str]) -> ObjectionRow:
    raised_by = names.get(point["raised_by"], point["raised_by"].capitalize())
    return ObjectionRow(
        id=point["id"],
        text=" ".join(point["text"].split()),
        mark="✅" if point["status"] == "resolved" else SEVERITY_MARKS[point["severity"]],
        severity=point["severity"],
        raised=f"round {point['round_raised']}, {raised_by}",
        replies=[_reply(reply, names) for reply in point["replies"]],
        reviews=[_review(review, names) for review in point["reviews"]] or [_fate(point)],
        is_open=point["status"] in ("open", "partial"),
    )


def _reply(reply: Mapping[str, Any], names: Mapping[str, str]) -> str:
    speaker = names.get(reply["seat"], reply["seat"].capitalize())
    said = shorten(" ".join(reply["text"].split()), _LONGEST_REPLY)
    return wording.sentence(f"Round {reply['round']}, {speaker}: {said}")


def _fate(point: Mapping[str, Any]) -> str:
    return f"{wording.POINT_WORDS.get(point['status'], point['status']).capitalize()}."


def _review(review: Mapping[str, Any], names: Mapping[str, str]) -> str:
    what = wording.POINT_WORDS.get(review["status"], review["status"])
    critic = names.get(review["seat"], review["seat"].capitalize())
    by = f" by {critic}" if review["status"] == "resolved" else ""
    note = f": {' '.join(review['note'].split())}" if review["note"] else ""
    return wording.sentence(f"{what.capitalize()} in round {review['round']}{by}{note}")
