"""The debate as data: what the graph carries from node to node, and nothing else."""

import operator
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from langgraph.channels.delta import DeltaChannel
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from contend.graph.contract import Criterion, Impact
from contend.graph.phases import PhaseName, StepPhase

Number = TypeVar("Number", int, float)

Severity = Literal["critical", "major", "minor"]
SEVERITY_MARKS: dict[Severity, str] = {"critical": "🔴", "major": "🟡", "minor": "🟢"}
PointStatus = Literal["open", "partial", "resolved", "dropped"]
TurnStatus = Literal["ok", "fallback_model", "kept_previous", "failed", "human"]
ClosingNode = Literal["judge_continue", "conviction_check"]
ToolName = Literal["calculate", "search_documents"]
StopReason = Literal[
    "skeptic_ready",
    "score_reached",
    "no_critical_issues",
    "max_rounds",
    "judge_stop",
    "one_left",
    "converged",
    "budget",
    "user",
    "failed",
    "timeout",
]


class Value(BaseModel):
    """A value object: frozen, and tolerant of fields a later release added to stored debates."""

    model_config = ConfigDict(frozen=True)


class Usage(Value):
    """Tokens and price of one or more model calls; None means unknown, never zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=_known_sum(self.input_tokens, other.input_tokens),
            output_tokens=_known_sum(self.output_tokens, other.output_tokens),
            cost_usd=_known_sum(self.cost_usd, other.cost_usd),
        )


NO_USAGE = Usage(input_tokens=0, output_tokens=0, cost_usd=0.0)


def _known_sum(left: Number | None, right: Number | None) -> Number | None:
    return None if left is None or right is None else left + right


class Seat(Value):
    """One place at the table. Two seats may share a model, so the id is never the model's name."""

    id: str
    name: str
    role: str
    model: str
    temperature: float | None = None
    system_prompt: str = ""
    """The user's own instructions for this seat."""
    position: str = ""
    """What the seat argues for, where positions are handed out."""
    fallback_models: tuple[str, ...] = ()
    tools: tuple[ToolName, ...] = ()
    """What its model may use while it speaks."""


class Point(Value):
    """One objection, tracked from the round that raised it to the round that settled it."""

    id: str
    severity: Severity
    status: PointStatus
    text: str


ReadFrom = Literal["block", "words", "extraction"]


class Assessment(Value):
    """What a critique decides, read from its control block, its words or an extraction call."""

    kind: Literal["critique"] = "critique"
    ready: bool
    score: float | None = None
    points: tuple[Point, ...] = ()
    none_critical: bool = False
    """True only if the critique lets one know that nothing critical is left."""
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
    convinced_by: str | None = None
    """The seat's id; None when it named none that it could concede to."""
    argument: str = ""
    quote: str = ""
    quote_found: bool = False
    """Whether the quoted words stand in what that seat said."""
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
    """Probabilities a speaker gave: as written, and as read; what is missing was not stated."""

    raw: dict[str, float] = {}
    probabilities: dict[str, float] = {}
    confidence: float | None = None


class ArgumentReading(Value):
    """What an argument over outcomes states for the record."""

    kind: Literal["argument"] = "argument"
    stated: StatedProbabilities = StatedProbabilities()
    outcome: str | None = None
    """The outcome it supports."""
    point: str = ""
    """Its best point in one sentence, which others answer by its id."""
    evidence: tuple[str, ...] = ()
    rebuts: tuple[str, ...] = ()
    refers_to: tuple[str, ...] = ()
    """The ids of earlier points."""
    precedents: tuple[PastEvent, ...] = ()
    read_from: ReadFrom | None = None
    """None when nothing could be read."""
    asked_again: int = 0
    """Further calls it took to read it."""
    anew: bool = False
    """Whether it was argued because what its earlier version answers does not stand."""


class ScoreReading(Value):
    """How good one argument is, by the criteria that were asked for."""

    kind: Literal["score"] = "score"
    argument: str
    """The id of the turn that is scored."""
    scores: dict[Criterion, float] = {}
    composite: float | None = None
    """None when the scores could not be read."""
    reason: str = ""
    read_from: ReadFrom | None = None
    asked_again: int = 0


class Insight(Value):
    """Something new, and the point that brought it up."""

    insight: str
    point: str
    impact: Impact
    outcomes: tuple[str, ...] = ()


class VerdictReading(Value):
    """What the judge of a forecast decides at its end."""

    kind: Literal["verdict"] = "verdict"
    stated: StatedProbabilities = StatedProbabilities()
    insights: tuple[Insight, ...] = ()
    read_from: ReadFrom | None = None
    asked_again: int = 0


Breach = Literal["off_topic", "new_argument_in_closing", "personal_attack"]


class Ruling(Value):
    """A moderator's word on a statement that broke a rule."""

    kind: Literal["ruling"] = "ruling"
    turn: str
    """The id of the statement."""
    seat: str
    breach: Breach
    read_from: ReadFrom = "block"


class ClaimCheck(Value):
    """One claim of a statement, and what became of it."""

    claim: str
    verdict: Literal["supported", "contradicted", "unverifiable"]
    source: str
    """The place in the documents, as `doc:page`; else OWN_KNOWLEDGE, or NO_SOURCE."""
    why: str = ""


OWN_KNOWLEDGE = "own knowledge"
NO_SOURCE = "no source"


class FactCheck(Value):
    """What a fact checker found in one statement; no claims when there was nothing to check."""

    kind: Literal["fact_check"] = "fact_check"
    turn: str
    """The id of the statement."""
    claims: tuple[ClaimCheck, ...] = ()

    @property
    def contradicted(self) -> tuple[ClaimCheck, ...]:
        """The claims the speaker has to correct."""
        return tuple(each for each in self.claims if each.verdict == "contradicted")


class StatementScores(Value):
    """A scoring judge's marks for one statement, by criterion."""

    turn: str
    values: dict[str, float]


class StageScores(Value):
    """What one scoring call gave."""

    kind: Literal["marking"] = "marking"
    order: int
    """0 as the statements were made, 1 with the sides in the other order."""
    marks: tuple[StatementScores, ...]
    stage: str = ""
    """What was scored: openings, round-1, closings."""
    read_from: ReadFrom = "block"


# What a turn decided, told apart by its kind.
Reading = Annotated[
    Assessment
    | Decision
    | Conviction
    | Ruling
    | FactCheck
    | StageScores
    | ArgumentReading
    | ScoreReading
    | VerdictReading,
    Field(discriminator="kind"),
]


class QuoteCheck(Value):
    """One quoted span of a turn, held against the user's documents."""

    text: str
    status: Literal["found", "altered", "not_found", "from_debate"]
    """`altered`: found but for words that were left out or put in; `from_debate`: no words of the
    documents, but of the question or of an earlier turn."""
    cited: str | None = None
    """The source the speaker named for it, as `doc:page`; `where`, if what was named holds it."""
    written: str | None = None
    """The label of that source as the speaker wrote it."""
    where: str | None = None
    """The place that holds it, as `doc:page`."""
    reads: str | None = None
    """What stands there in full, if the quote is altered."""


class ToolUse(Value):
    """One use of a tool during a turn: what the model asked for, and what it was told."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    result: str
    failed: bool = False
    """Whether the result is the reason why there is none."""


class TurnLength(Value):
    """How long a turn is, against how long it may be, in tokens."""

    tokens: int
    limit: int

    @property
    def is_over(self) -> bool:
        """Whether the limit was overstepped."""
        return self.tokens > self.limit


class Turn(Value):
    """One finished contribution to the debate."""

    id: str
    round: int
    phase: PhaseName
    seat: str
    role: str
    model: str
    text: str
    thinking: str | None = None
    assessment: Reading | None = None
    usage: Usage = Usage()
    started_at: datetime
    ended_at: datetime
    status: TurnStatus = "ok"
    replies_to: str | None = None
    passages: tuple[str, ...] = ()
    """The passages of the documents the speaker was shown, as `doc:page`."""
    quotes: tuple[QuoteCheck, ...] = ()
    tool_calls: tuple[ToolUse, ...] = ()
    length: TurnLength | None = None
    """Only where there is a limit. An overlong turn is kept whole."""

    @property
    def is_overlong(self) -> bool:
        """Whether it is longer than allowed."""
        return self.length is not None and self.length.is_over


class Elimination(Value):
    """A seat that conceded and left the debate: to whom, and what convinced it."""

    seat: str
    round: int
    convinced_by: str
    argument: str
    quote: str
    quote_found: bool
    reasoning: str


class StopDecision(Value):
    """Why the rounds ended."""

    reason: StopReason
    round: int
    evidence: str


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


class Step(Value):
    """One turn that is due: who speaks, and in which capacity."""

    phase: StepPhase
    seat: str
    to: str | None = None
    """Whom a request addresses, or whose argument is rebutted; None if the speaker chooses."""
    asks: StepPhase | None = None
    """What a request asks for."""


class CallSubject(Value):
    """What one of several calls of a node is about."""

    label: str = ""
    """Sets the call's turn apart from the others of the same seat and phase."""
    about: tuple[str, ...] = ()
    """What passages are looked up for; by default what was said last."""
    turns: tuple[str, ...] = ()
    """The ids of the turns it is about, in the order they are shown."""


class Deduction(Value):
    """What a broken rule costs a statement."""

    rule: str
    points: float


class TurnScore(Value):
    """The score of one statement."""

    turn: str
    seat: str
    marks: dict[str, float]
    """By criterion, after deductions; the mean of the readings that agree."""
    total: float
    """The weighted sum of the marks."""
    readings: tuple[float, ...]
    """The weighted sum of each reading."""
    orders: tuple[int, ...] = ()
    """Which order of the statements each of them was given in: 0 as spoken, 1 the other."""
    deductions: tuple[Deduction, ...] = ()
    contested: bool = False
    """True if the readings are too far apart: such a score counts for nothing."""


class SideScore(Value):
    """How one side did."""

    seat: str
    name: str
    total: float | None
    """None when no statement of this side has a score that counts."""
    breakdown: dict[str, float]
    turns: tuple[TurnScore, ...]


class DebateScores(Value):
    """All scores of a debate, and who won where that is declared."""

    standings: tuple[SideScore, ...]
    winner: str | None = None
    """The seat's id."""
    no_winner: str = ""
    """Why there is none."""
    margin: float
    unscored: tuple[str, ...] = ()
    """Statements whose marks could not be had."""
    judge_model: str
    """Several with commas, if the judge fell back."""


class Degradation(Value):
    """Something that did not go as planned, and that no reader may mistake for the plan."""

    seat: str | None = None
    round: int | None = None
    what: str
    why: str


class Document(Value):
    """A file the user brought as evidence; its text is kept by content in the data folder."""

    id: str
    """The short name speakers cite it by, unique in the debate."""
    name: str
    sha256: str
    """Of the file's bytes."""
    pages: int
    passages: int
    seats: tuple[str, ...] = ()
    """The ids of the seats that see it; all when empty."""


class Image(Value):
    """A picture the user brought; its bytes are kept by content in the data folder."""

    name: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: str
    seats: tuple[str, ...] = ()
    """The ids of the seats that see it; all when empty."""


class TemplateUse(Value):
    """A reasoning template handed to the first speaker, with its similarity to the question."""

    id: str
    title: str
    text: str
    score: float


class WorkSpan(Value):
    """A stretch of work, whatever came of it."""

    started_at: datetime
    ended_at: datetime
    calls: int = 0
    """The calls in it that brought no turn, which would count them."""
    usage: Usage = NO_USAGE
    """What those calls took."""


class Retrieval(Value):
    """What phase 0 found, and the time it took."""

    templates: tuple[TemplateUse, ...] = ()
    embedding_model: str
    started_at: datetime
    ended_at: datetime


def append(current: Sequence[Any] | None, writes: Sequence[Sequence[Any]]) -> list[Any]:
    """Fold any number of writes onto a list; batching them differently gives the same list."""
    result = list(current or ())
    for write in writes:
        result.extend(write)
    return result


# DeltaChannel keeps checkpoints linear in the turns (a plain list is quadratic, and so are frequent
# snapshots). It is beta in langgraph 1.2, so this alias is its only mention.
Transcript = Annotated[list[Turn], DeltaChannel(append, snapshot_frequency=1000)]


class DebateInput(TypedDict, total=False):
    """What a caller gives: the question; seats only when a front end has already seated them."""

    question: str
    seats: list[Seat]
    documents: list[Document]
    images: list[Image]
    request: dict[str, Any]


class DebateState(TypedDict, total=False):
    """Everything a debate knows. Each field names its writer."""

    question: str
    """The user's question, cleaned. Written by the caller, cleaned by retrieve."""
    seats: list[Seat]
    """Who sits where with which model. Written by the caller, or by retrieve when started bare;
    positions that nobody gave are filled in by moderate."""
    documents: list[Document]
    """The user's evidence. Written by the caller."""
    images: list[Image]
    """Pictures for the speakers of round 1. Written by the caller."""
    request: dict[str, Any]
    """A forecast's request in its published form. Written by the caller."""
    retrieval: Retrieval
    """Phase 0. Written by retrieve."""
    round: int
    """The round being argued. Written by retrieve, advanced by judge_continue."""
    waiting: list[str]
    """Seats still to speak in this round. Written by whoever opens it, shortened by propose."""
    closing: ClosingNode
    """What follows when all have spoken. Written by whoever opens the round."""
    active: list[str]
    """Seats that have not conceded. Written by retrieve, shortened by conviction_check."""
    eliminations: Annotated[list[Elimination], operator.add]
    """Who conceded to whom. Appended to by conviction_check."""
    spans: Annotated[list[WorkSpan], operator.add]
    """Calls that brought no turn, and when a debate against the clock was at work. Appended to by
    any node."""
    programme: list[Step]
    """The turns still due in this stage. Written by moderate, shortened by whoever takes one."""
    cue: CallSubject
    """What a call is about. Given to the call by its node, never kept."""
    turns: Transcript
    """The transcript. Appended to by every node that speaks, and by a person's remarks."""
    stop: StopDecision
    """Why the rounds ended. Written by judge_continue, once."""
    final_answer: str
    """Written by synthesize."""
    forecast: dict[str, Any]
    """A forecast's result in its published form. Written by synthesize."""
    auto_score: AutoScore
    """Absent when the judge gave none. Written by score."""
    verdict: DebateScores
    """The scores of a debate whose statements are scored. Written by score."""
    degraded: Annotated[list[Degradation], operator.add]
    """What did not go as planned. Appended to by any node."""
    trace: dict[str, Any]
    """The finished record in the published JSON form. Written by store."""


class Remark(BaseModel):
    """What a person answers at a pause: words for the next speakers, or the wish to conclude."""

    say: str = Field(default="", description="Words the next speakers see as the user's.")
    finish: bool = Field(default=False, description="End the rounds now and write the answer.")


def seat_with_role(state: DebateState, role: str) -> Seat:
    """The seat that plays a role; protocols with several such seats pick by id instead."""
    return next(seat for seat in state["seats"] if seat.role == role)


def ids_with_role(state: DebateState, role: str) -> list[str]:
    """The ids of all seats that play a role, in the order of the table."""
    return [seat.id for seat in state["seats"] if seat.role == role]


def seat_with_id(state: DebateState, seat_id: str) -> Seat:
    """The seat with this id."""
    return next(seat for seat in state["seats"] if seat.id == seat_id)


def turns_of(state: DebateState, phase: PhaseName) -> list[Turn]:
    """The turns of one phase, in order."""
    return [turn for turn in state.get("turns", []) if turn.phase == phase]
