from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from contend.evals.items import read_own_lines
from contend.graph.readings import Point
from contend.models.replies.conviction import claim_from_text, named_seat
from contend.models.replies.critique_words import assessment_from_text
from contend.models.replies.decision import decision_from_text
from contend.models.replies.rating import ratings_from_text

UNREADABLE = "unreadable"
# The seats and earlier objections that the cases mention.
_SEATS = {"Ann": "ann", "Ben": "ben"}
_POINTS = (
    Point(id="S1", severity="critical", status="open", text="The rule that applies is not cited."),
    Point(id="S2", severity="major", status="open", text="The date and its source are missing."),
)


class SignalCase(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    reader: Literal["decision", "conviction", "critique", "rating"]
    text: str
    expected: str


@dataclass(frozen=True)
class ReadCase:
    case: SignalCase
    read: str

    @property
    def is_right(self) -> bool:
        return self.read == self.case.expected

    @property
    def is_misread(self) -> bool:
        """Return whether the reply was parsed incorrectly (not just left unparsed)."""
        return not self.is_right and self.read != UNREADABLE


def signal_cases() -> list[SignalCase]:
    return [SignalCase.model_validate_json(line) for line in read_own_lines("signals")]


def read_signals(cases: Iterable[SignalCase]) -> Sequence[ReadCase]:
    return [ReadCase(case, _READERS[case.reader](case.text)) for case in cases]


def _decision(text: str) -> str:
    read = decision_from_text(text)
    return read.decision if read else UNREADABLE


def _conviction(text: str) -> str:
    claim = claim_from_text(text)
    if claim is None:
        return UNREADABLE
    return (named_seat(claim.named, _SEATS) or UNREADABLE) if claim.convinced else "stays"


def _critique(text: str) -> str:
    read = assessment_from_text(text, _POINTS)
    if read is None:
        return UNREADABLE
    if not read.none_critical and any(
        point.severity == "critical" and point.status != "resolved" for point in read.points
    ):
        return "critical"
    return "ready" if read.ready else "not ready"


def _rating(text: str) -> str:
    read = ratings_from_text(text)
    return f"{read.weighted:g}" if read else UNREADABLE


_READERS: dict[str, Callable[[str], str]] = {
    "decision": _decision,
    "conviction": _conviction,
    "critique": _critique,
    "rating": _rating,
}
