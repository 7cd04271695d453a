"""Decisions parsed from turns, such as verdicts, scores, probabilities and fact checks."""

from typing import Annotated, Literal

from pydantic import Field

from contend.graph.forecast_contract.terms import Impact
from contend.graph.values import Value

Severity = Literal["critical", "major", "minor"]
SEVERITY_MARKS: dict[Severity, str] = {"critical": "🔴", "major": "🟡", "minor": "🟢"}
PointStatus = Literal["open", "partial", "resolved", "dropped"]


class Point(Value):
    id: str
    severity: Severity
    status: PointStatus
    text: str  # the objection as it was raised
    note: str = ""  # what this critique says about an objection raised earlier


class PointReply(Value):
    round: int
    seat: str
    turn: str
    text: str


class PointReview(Value):
    round: int
    seat: str
    turn: str
    severity: Severity
    status: PointStatus  # `dropped` if the critique does not mention the objection
    note: str = ""


class TrackedPoint(Point):
    round_raised: int
    raised_by: str
    replies: tuple[PointReply, ...] = ()
    reviews: tuple[PointReview, ...] = ()
    round_settled: int | None = None
    settled_by: str | None = None


ReadFrom = Literal["block", "words", "extraction"]


class Assessment(Value):
    """A critique's verdict on an answer."""

    kind: Literal["critique"] = "critique"
    ready: bool
    score: float | None = None
    points: tuple[Point, ...] = ()
    none_critical: bool = False  # according to the critique, nothing critical is left
    # These two contradict a ready signal, but have no other effect:
    unlisted_critical: bool = False  # the text has a critical issue that is not in `points`
    unstated_score: float | None = None  # reported, but not found in the text
    read_from: ReadFrom = "block"


class Decision(Value):
    kind: Literal["decision"] = "decision"
    decision: Literal["continue", "stop"]
    reasoning: str
    read_from: ReadFrom = "block"


class Conviction(Value):
    """A seat's answer to whether another seat convinced it."""

    kind: Literal["conviction"] = "conviction"
    convinced: bool
    convinced_by: str | None = None  # a seat id; None if no valid seat was named
    argument: str = ""
    quote: str = ""
    quote_found: bool = False  # the named seat really said the quoted words
    reasoning: str = ""
    read_from: ReadFrom = "block"


class PastEvent(Value):
    event: str
    date: str = ""
    outcome: str = ""
    relevance: str = ""
    similarity: float | None = None


class StatedProbabilities(Value):
    """A speaker's probabilities by outcome, as written and as parsed."""

    raw: dict[str, float] = Field(default_factory=dict)
    probabilities: dict[str, float] = Field(default_factory=dict)
    confidence: float | None = None


class ArgumentReading(Value):
    kind: Literal["argument"] = "argument"
    stated: StatedProbabilities = StatedProbabilities()
    outcome: str | None = None
    point: str = ""  # the role's best point in one sentence; others cite it by an id
    evidence: tuple[str, ...] = ()
    rebuts: tuple[str, ...] = ()
    refers_to: tuple[str, ...] = ()  # the ids of earlier points
    precedents: tuple[PastEvent, ...] = ()
    read_from: ReadFrom | None = None
    asked_again: int = 0  # how many further calls were needed to get these values
    anew: bool = False  # written again, because the argument that it answered was replaced


class ScoreReading(Value):
    kind: Literal["score"] = "score"
    argument: str  # the id of the turn that is scored
    scores: dict[str, float] = Field(default_factory=dict)
    composite: float | None = None
    reason: str = ""
    read_from: ReadFrom | None = None
    asked_again: int = 0


class Insight(Value):
    insight: str
    point: str  # the id of the point where it first appears
    impact: Impact
    outcomes: tuple[str, ...] = ()


class Dispute(Value):
    topic: str
    points: tuple[str, ...]  # the ids of the roles' points
    resolved: bool


class VerdictReading(Value):
    kind: Literal["verdict"] = "verdict"
    stated: StatedProbabilities = StatedProbabilities()
    insights: tuple[Insight, ...] = ()
    disputes: tuple[Dispute, ...] = ()
    read_from: ReadFrom | None = None
    asked_again: int = 0


Breach = Literal["off_topic", "new_argument_in_closing", "personal_attack"]


class Ruling(Value):
    kind: Literal["ruling"] = "ruling"
    turn: str  # the id of the statement
    seat: str
    breach: Breach
    read_from: ReadFrom = "block"


class Adjustment(Value):
    """A moderator's change to the number of rounds."""

    kind: Literal["adjustment"] = "adjustment"
    change: Literal["extend", "cut"]  # one more round, or no further rounds
    read_from: ReadFrom = "block"


class ClaimCheck(Value):
    claim: str
    verdict: Literal["supported", "contradicted", "unverifiable"]
    source: str  # a place in the documents, as `doc:page`, or OWN_KNOWLEDGE or NO_SOURCE
    why: str = ""


OWN_KNOWLEDGE = "own knowledge"
NO_SOURCE = "no source"


class FactCheck(Value):
    kind: Literal["fact_check"] = "fact_check"
    turn: str  # the id of the statement
    claims: tuple[ClaimCheck, ...] = ()  # empty if there is nothing to check

    @property
    def contradicted(self) -> tuple[ClaimCheck, ...]:
        return tuple(each for each in self.claims if each.verdict == "contradicted")


class StatementScores(Value):
    turn: str
    values: dict[str, float]


class StageScores(Value):
    kind: Literal["marking"] = "marking"
    order: int  # 0 if statements were shown as spoken, 1 if with the sides in reverse order
    marks: tuple[StatementScores, ...]
    stage: str = ""  # what was scored: openings, round-1, closings
    read_from: ReadFrom = "block"


# Any decision parsed from a turn; `kind` is the discriminator.
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
    """The judge's ratings of the final answer. `score` is their weighted mean."""

    correctness: int
    completeness: int
    clarity: int
    depth: int
    score: float
    justification: str
    would_benefit_from_finetune: bool
    judge_model: str


class Deduction(Value):
    """Points deducted from a statement for breaking a rule."""

    rule: str
    points: float


class TurnScore(Value):
    """The score of one statement."""

    turn: str
    seat: str
    marks: dict[str, float]  # by criterion: the mean of the readings, after deductions
    total: float  # the weighted sum of `marks`
    readings: tuple[float, ...]  # the weighted sum of each reading
    orders: tuple[int, ...] = ()  # the order of sides in each reading: 0 as spoken, 1 reversed
    deductions: tuple[Deduction, ...] = ()
    contested: bool = False  # the readings differ too much, so the score does not count


class SideScore(Value):
    """The scores of one side."""

    seat: str
    name: str
    total: float | None  # None if no statement by this side has a score that counts
    breakdown: dict[str, float]
    turns: tuple[TurnScore, ...]


class DebateScores(Value):
    """A debate's scores, and the winner if the debate format declares one."""

    standings: tuple[SideScore, ...]
    winner: str | None = None  # the seat's id
    no_winner: str = ""  # the reason
    draw: bool = False  # all scores were read, and no side is clearly ahead
    lead: float | None = None  # points between the two best totals, if the format declares a winner
    winner_margin: float | None = None  # the lead that a winner needs
    margin: float  # how far two readings of a statement may differ
    unscored: tuple[str, ...] = ()  # statements without readable scores
    judge_model: str  # separated by commas if the judge fell back to other models
