import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
)

from contend.graph.readings import NO_SOURCE, OWN_KNOWLEDGE, Breach, ClaimCheck, StatementScores
from contend.graph.settings import first_duplicate_position
from contend.graph.values import Seat
from contend.models.replies.signals import Remarked

MOST_CLAIMS = 5
_Sentence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=600)]
# Requires a short sentence, because otherwise a small model writes "position1".
_Short = Annotated[str, StringConstraints(min_length=24, max_length=160)]
# Allows words only, because otherwise it writes "A: 1.1" and argues for that.
_ShortPosition = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z' ,-]{22,157}[a-z]\.$")]
_BETWEEN_SOURCES = re.compile(r"[,;]|\s+and\s+|\]\s*\[")
_STATEMENT = re.compile(r"\bS([0-9]{1,3})\b", re.IGNORECASE)
_WRITTEN_MARK = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?")
_OF_TEN = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(?:(?:/|out of|of)\s*10\s*)?")

# How the rules of the formats name the breaches.
_BREACHES_BY_RULE: dict[str, Breach] = {
    "leaving_the_topic": "off_topic",
    "a_new_argument_in_a_closing_statement": "new_argument_in_closing",
    "new_argument_in_a_closing_statement": "new_argument_in_closing",
    "an_attack_on_a_person": "personal_attack",
    "attack_on_a_person": "personal_attack",
}


def _as_number(mark: object) -> object:
    found = _OF_TEN.fullmatch(mark) if isinstance(mark, str) else None
    return float(found[1]) if found else mark


# In any other order, the schema that a model gets has no bounds.
_Mark = Annotated[float, Field(ge=0, le=10, strict=True), BeforeValidator(_as_number)]


class RulingBlock(BaseModel):
    """The moderator's decision on whether a statement broke a rule."""

    breach: Literal["none", "off_topic", "new_argument_in_closing", "personal_attack"]
    ruling: Annotated[Remarked, StringConstraints(max_length=600)] = Field(
        default="", description="One or two sentences to the speaker; empty without a breach."
    )

    @field_validator("breach", mode="before")
    @classmethod
    def _by_its_name(cls, given: object) -> object:
        if not isinstance(given, str):
            return "none" if given is None else given
        name = "_".join(given.lower().strip(" .").replace("-", " ").split())
        return "none" if name in ("", "n/a") else _BREACHES_BY_RULE.get(name, name)

    def found(self, wanted: Sequence[Breach]) -> Breach | None:
        breach = next((each for each in wanted if each == self.breach), None)
        return breach if self.ruling.strip() else None


class AdjustmentBlock(BaseModel):
    """Whether the moderator changes the number of rounds, and why."""

    adjust: Literal["none", "extend", "cut"]
    reason: Annotated[Remarked, StringConstraints(strip_whitespace=True, max_length=600)] = ""

    @field_validator("adjust", mode="before")
    @classmethod
    def _by_its_name(cls, given: object) -> object:
        name = given.lower().strip(" .") if isinstance(given, str) else given
        return "none" if name in (None, "", "no", "n/a") else name


class PositionsBlock(BaseModel):
    """The positions that a moderator proposes."""

    small_prompt: ClassVar[str] = "moderated/small/extract.positions"

    positions: Annotated[list[_Sentence], Field(min_length=2, max_length=8)]

    def for_sides(self, count: int) -> list[str] | None:
        given = [" ".join(each.split()) for each in self.positions[:count]]
        return given if len(given) == count and first_duplicate_position(given) is None else None


class ShortPositionsBlock(PositionsBlock):
    """A PositionsBlock with length limits, for the demo model."""

    positions: Annotated[list[_ShortPosition], Field(min_length=2, max_length=2)]


class ClaimsBlock(BaseModel):
    """The claims in a statement that can be checked."""

    small_prompt: ClassVar[str] = "moderated/small/extract.claims"

    claims: Annotated[list[_Sentence], Field(max_length=20)]

    def tidied(self) -> list[str]:
        return list(dict.fromkeys(" ".join(claim.split()) for claim in self.claims))


class ShortClaimsBlock(ClaimsBlock):
    """A ClaimsBlock with length limits, for the demo model."""

    claims: Annotated[list[_Short], Field(max_length=2)]


class CheckBlock(BaseModel):
    """The result of checking one claim."""

    small_prompt: ClassVar[str] = "moderated/small/extract.check"

    verdict: Literal["supported", "contradicted", "unverifiable"]
    source: Annotated[str, StringConstraints(max_length=200)] = OWN_KNOWLEDGE
    why: Annotated[str, StringConstraints(max_length=600)] = ""

    def of(self, claim: str, passages: Sequence[str]) -> ClaimCheck:
        """Return the claim's check, `unverifiable` if it cites a source that was not provided."""
        parts = (part.strip(" .[]") for part in _BETWEEN_SOURCES.split(self.source))
        named = [part for part in parts if part and part.casefold() != OWN_KNOWLEDGE]
        source, why = ", ".join(named) or OWN_KNOWLEDGE, self.why.strip()
        unknown = next((part for part in named if part not in passages), None)
        if unknown is None:
            return ClaimCheck(claim=claim, verdict=self.verdict, source=source, why=why)
        why = f"{why} It named '{unknown}', which it was not shown.".strip()
        return ClaimCheck(claim=claim, verdict="unverifiable", source=NO_SOURCE, why=why)


class ShortCheckBlock(CheckBlock):
    """A CheckBlock with length limits, for the demo model."""

    source: Literal["own knowledge"] = "own knowledge"
    why: _Short


class RebutsBlock(BaseModel):
    """The speaker whose argument a rebuttal answers."""

    rebuts: str

    def among(self, seats: Sequence[Seat]) -> str | None:
        wanted = self.rebuts.strip().casefold()
        return next((seat.id for seat in seats if seat.name.casefold() == wanted), None)


class StatementMarks(BaseModel):
    """A judge's scores for one statement."""

    statement: str
    logical_coherence: _Mark
    evidence_quality: _Mark
    responsiveness: _Mark
    persuasiveness: _Mark
    rule_adherence: _Mark


class StageBlock(BaseModel):
    """A judge's scores for the statements in one stage."""

    small_prompt: ClassVar[str] = "moderated/small/extract.stage"

    scores: Annotated[list[StatementMarks], Field(max_length=40)]

    @field_validator("scores", mode="before")
    @classmethod
    def _drop_unreadable(cls, given: object) -> object:
        return [each for each in given if _has_marks(each)] if isinstance(given, list) else given

    def marks(self, shown: Sequence[str]) -> tuple[StatementScores, ...]:
        numbers = dict(enumerate(shown, 1))
        named = [_number(each.statement) for each in self.scores]
        return tuple(
            StatementScores(turn=numbers[number], values=each.model_dump(exclude={"statement"}))
            for number, each in zip(named, self.scores, strict=True)
            if number in numbers and named.count(number) == 1
        )


def _has_marks(entry: object) -> bool:
    try:
        StatementMarks.model_validate(entry)
    except ValidationError:
        return False
    return True


def _number(statement: str) -> int | None:
    found = {int(number) for number in _STATEMENT.findall(statement)}
    return found.pop() if len(found) == 1 else None


_WholeMark = Annotated[int, Field(ge=0, le=10)]


class ShortStatementMarks(StatementMarks):
    """Scores as whole numbers, because llama.cpp does not enforce a schema's ranges for floats."""

    statement: Literal["S1", "S2", "S3", "S4"]
    logical_coherence: _WholeMark
    evidence_quality: _WholeMark
    responsiveness: _WholeMark
    persuasiveness: _WholeMark
    rule_adherence: _WholeMark


class ShortStageBlock(StageBlock):
    """A StageBlock with length limits, for the demo model."""

    scores: Annotated[list[ShortStatementMarks], Field(min_length=1, max_length=4)]  # type: ignore[assignment]


def stage_from_report(report: StageBlock, speech: str) -> StageBlock | None:
    """Drop extracted scores that are not in the judge's text. Return None if none remain."""
    if isinstance(report, ShortStageBlock):
        return report  # the demo model writes no scores, and its scores mean nothing
    written = {float(mark) for mark in _WRITTEN_MARK.findall(speech)}
    stated = [
        each
        for each in report.scores
        if written.issuperset(each.model_dump(exclude={"statement"}).values())
    ]
    return report.model_copy(update={"scores": stated}) if stated else None
