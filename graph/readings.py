"""What turns decided, as read from their text: verdicts, scores, probabilities, checks."""

from typing import Annotated, Literal

from pydantic import Field

from contend.graph.forecast_contract.terms import Impact
from contend.graph.values import Value

Severity = Literal["critical", "major", "minor"]
SEVERITY_MARKS: dict[Severity, str] = {"critical": "🔴", "major": "🟡", "minor": "🟢"}
PointStatus = Literal["open", "partial", "resolved", "dropped"]


class Point(Value):
    """One objection as a critique sees it."""

    id: str
    severity: Severity
    status: PointStatus
    text: str  # the objection as it was raised
    note: str = ""  # what the critique now says about it, if it was raised earlier


class PointReply(Value):
    """What a speaker answered to an objection."""

    round: int
    seat: str
    turn: str
    text: str


class PointReview(Value):
    """What a later critique said about an objection; `dropped` if it was not raised again."""

    round: int
    seat: str
    turn: str
    severity: Severity
    status: PointStatus
    note: str = ""


class TrackedPoint(Point):
    """One objection, from the round that raised it to the round that settled it."""

    round_raised: int
    raised_by: str
    replies: tuple[PointReply, ...] = ()
    reviews: tuple[PointReview, ...] = ()
    round_settled: int | None = None
    settled_by: str | None = None


ReadFrom = Literal["block", "words", "extraction"]


class Assessment(Value):
    """What a critique decides, read from its control block, its words or an extraction call."""

    kind: Literal["critique"] = "critique"
    ready: bool
    score: float | None = None
    points: tuple[Point, ...] = ()
    none_critical: bool = False  # the critique shows that nothing critical is left
    # What speaks against a ready signal, but decides nothing else:
    unlisted_critical: bool = False  # the text marks a critical issue that the points leave out
    unstated_score: float | None = None  # reported, but not found in the text
    read_from: ReadFrom = "block"


class Decision(Value):
    """A judge's word on whether another round is worth it."""

    kind: Literal["decision"] = "decision"
    decision: Literal["continue", "stop"]
    reasoning: str
    read_from: ReadFrom = "block"


class Conviction(Value):
    """Whether a seat holds another seat's position to be better than its own."""

    kind: Literal["conviction"] = "conviction"
    convinced: bool
    convinced_by: str | None = None  # a seat id; None if it named no seat it can concede to
    argument: str = ""
    quote: str = ""
    quote_found: bool = False  # that seat really said the quoted words
    reasoning: str = ""
    read_from: ReadFrom = "block"


class PastEvent(Value):
    """A precedent as a role cites it."""

    event: str
    date: str = ""
    outcome: str = ""
    relevance: str = ""
    similarity: float | None = None


class StatedProbabilities(Value):
    """Probabilities a speaker gave, raw and parsed; an absent outcome was not stated."""

    raw: dict[str, float] = Field(default_factory=dict)
    probabilities: dict[str, float] = Field(default_factory=dict)
    confidence: float | None = None


class ArgumentReading(Value):
    """What an argument over outcomes states for the record."""

    kind: Literal["argument"] = "argument"
    stated: StatedProbabilities = StatedProbabilities()
    outcome: str | None = None
    point: str = ""  # its best point in one sentence, which others answer by its id
    evidence: tuple[str, ...] = ()
    rebuts: tuple[str, ...] = ()
    refers_to: tuple[str, ...] = ()  # the ids of earlier points
    precedents: tuple[PastEvent, ...] = ()
    read_from: ReadFrom | None = None
    asked_again: int = 0  # further calls it took to read it
    anew: bool = False  # replaces a version that answered a replaced argument


class ScoreReading(Value):
    """How good one argument is, by the criteria that were asked for."""

    kind: Literal["score"] = "score"
    argument: str  # the id of the turn that is scored
    scores: dict[str, float] = Field(default_factory=dict)
    composite: float | None = None
    reason: str = ""
    read_from: ReadFrom | None = None
    asked_again: int = 0


class Insight(Value):
    """Something new, and the point that brought it up."""

    insight: str
    point: str
    impact: Impact
    outcomes: tuple[str, ...] = ()


class Dispute(Value):
    """What roles disagree on, and their points about it, as the judge sees it."""

    topic: str
    points: tuple[str, ...]
    resolved: bool


class VerdictReading(Value):
    """What the judge of a forecast decides at its end."""

    kind: Literal["verdict"] = "verdict"
    stated: StatedProbabilities = StatedProbabilities()
    insights: tuple[Insight, ...] = ()
    disputes: tuple[Dispute, ...] = ()
    read_from: ReadFrom | None = None
    asked_again: int = 0


Breach = Literal["off_topic", "new_argument_in_closing", "personal_attack"]


class Ruling(Value):
    """A moderator's word on a statement that broke a rule."""

    kind: Literal["ruling"] = "ruling"
    turn: str  # the id of the statement
    seat: str
    breach: Breach
    read_from: ReadFrom = "block"


class Adjustment(Value):
    """A moderator's change of the number of rounds."""

    kind: Literal["adjustment"] = "adjustment"
    change: Literal["extend", "cut"]  # one round more, or no further round
    read_from: ReadFrom = "block"


class ClaimCheck(Value):
    """One claim of a statement, and what became of it."""

    claim: str
    verdict: Literal["supported", "contradicted", "unverifiable"]
    source: str  # the place in the documents, as `doc:page`; else OWN_KNOWLEDGE, or NO_SOURCE
    why: str = ""


OWN_KNOWLEDGE = "own knowledge"
NO_SOURCE = "no source"


class FactCheck(Value):
    """What a fact checker found in one statement; no claims when there was nothing to check."""

    kind: Literal["fact_check"] = "fact_check"
    turn: str  # the id of the statement
    claims: tuple[ClaimCheck, ...] = ()

    @property
    def contradicted(self) -> tuple[ClaimCheck, ...]:
        return tuple(each for each in self.claims if each.verdict == "contradicted")


class StatementScores(Value):
    """A scoring judge's marks for one statement, by criterion."""

    turn: str
    values: dict[str, float]


class StageScores(Value):
    """What one scoring call gave."""

    kind: Literal["marking"] = "marking"
    order: int  # 0 as the statements were made, 1 with the sides in the other order
    marks: tuple[StatementScores, ...]
    stage: str = ""  # what was scored: openings, round-1, closings
    read_from: ReadFrom = "block"


# What a turn decided; `kind` is the discriminator.
Reading = Annotated[
    Assessment
    | Decision
    | Conviction
    | Ruling
    | Adjustment
    | FactCheck
    | StageScores
    | ArgumentReading
    | ScoreReading
    | VerdictReading,
    Field(discriminator="kind"),
]


class AutoScore(Value):
    """The judge's ratings of the final answer; `score` is their weighted mean, computed here."""

    correctness: int
    completeness: int
    clarity: int
    depth: int
    score: float
    justification: str
    would_benefit_from_finetune: bool
    judge_model: str


class Deduction(Value):
    """What a broken rule costs a statement."""

    rule: str
    points: float


class TurnScore(Value):
    """The score of one statement."""

    turn: str
    seat: str
    marks: dict[str, float]  # by criterion, after deductions; the mean of the readings that agree
    total: float  # the weighted sum of the marks
    readings: tuple[float, ...]  # the weighted sum of each reading
    orders: tuple[int, ...] = ()  # the order of each reading: 0 as spoken, 1 the other
    deductions: tuple[Deduction, ...] = ()
    contested: bool = False  # the readings are too far apart, so the score does not count


class SideScore(Value):
    """How one side did."""

    seat: str
    name: str
    total: float | None  # None when no statement of this side has a score that counts
    breakdown: dict[str, float]
    turns: tuple[TurnScore, ...]


class DebateScores(Value):
    """All scores of a debate, and who won where that is declared."""

    standings: tuple[SideScore, ...]
    winner: str | None = None  # the seat's id
    no_winner: str = ""  # the reason
    draw: bool = False  # all scores were read, and no side is clearly ahead
    lead: float | None = None  # points between the two best totals, where a winner is declared
    winner_margin: float | None = None  # the lead that a winner needs
    margin: float  # how far two readings of a statement may differ
    unscored: tuple[str, ...] = ()  # statements without readable scores
    judge_model: str  # several with commas, if the judge fell back
