from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from contend.graph.readings import (
    AutoScore,
    Breach,
    ClaimCheck,
    ReadFrom,
    TrackedPoint,
    TurnScore,
)
from contend.graph.state import Elimination, Turn
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import Degradation, Document, Image, QuoteCheck, Seat, Usage, Value

Status = Literal["running", "paused", "interrupted", "failed", "done"]


class _OnlySetFields(Value):
    """A value whose JSON omits unset fields."""

    @model_serializer(mode="wrap")
    def _serialize(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if key in self.model_fields_set}


class TemplateMatch(Value):
    id: str
    title: str
    score: float  # similarity to the question


class RecordedQuote(QuoteCheck):
    turn: str
    seat: str
    round: int


class RecordedAutoScore(AutoScore):
    judge_shares_model_with: list[str]
    judge_wrote_answer: bool


class Timing(Value):
    """Running time in milliseconds, excluding pauses."""

    total_ms: int
    rag_ms: int
    rounds_ms: list[int]
    synthesis_ms: int
    scoring_ms: int


class RecordedPoints(Value):
    open: list[TrackedPoint]
    resolved: list[TrackedPoint]


class TotalUsage(Usage):
    """The known usage of all of a debate's calls, including failed calls."""

    turns: int
    without_usage: int = 0  # turns and failed calls whose tokens are unknown and so not counted


class JudgeDecision(_OnlySetFields):
    round: int
    decision: Literal["continue", "stop"] | None  # None if there is no readable one
    reasoning: str
    read_from: ReadFrom | None = None


class SideResult(Value):
    total: float | None
    breakdown: dict[str, float]
    turns: list[TurnScore]


class Scoring(Value):
    judge_model: str
    judge_shares_model_with: list[str]
    margin: float
    contested: list[str]
    unscored: list[str]
    no_winner: str
    draw: bool = False
    lead: float | None = None
    winner_margin: float | None = None


class RecordedClaim(ClaimCheck):
    turn: str
    seat: str
    round: int
    correction: str | None


class RecordedRuling(Value):
    turn: str
    seat: str
    breach: Breach
    read_from: ReadFrom
    round: int
    text: str


class RecordedAdjustment(Value):
    round: int
    change: Literal["extend", "cut"]
    text: str


class DraftVote(Value):
    """The initial short answers, compared with the final answer."""

    answers: dict[str, str | None]  # by seat id; None if a seat stated none
    vote: str | None  # None if there is no most frequent answer
    final: str
    changed: bool | None  # whether the final answer differs from the vote; None without a vote


class DebateRecord(_OnlySetFields):
    """A debate's record. Missing results are None or empty."""

    id: str
    timestamp: str | None
    query: str
    templates_used: list[str]
    templates: list[TemplateMatch]
    documents: list[Document]
    images: list[Image]
    quotes: list[RecordedQuote]
    seats: list[Seat]
    rounds: list[dict[str, Any]]  # one entry per round; its form depends on the protocol
    warnings: list[str] = Field(default_factory=list)  # shown before the answer
    final_answer: str | None
    total_rounds: int
    early_stopped: bool
    quality_score: int | float | None  # the user's rating if there is one, else the judge's
    user_rating: int | None
    auto_score: RecordedAutoScore | None
    models: dict[str, str]
    timing: Timing
    stop_reason: str | None
    stop: StopDecision | None
    points: RecordedPoints
    usage: TotalUsage
    degraded: list[Degradation]
    demonstration: bool
    drafts: DraftVote | None = None

    # forum and moderated
    winner: str | None = None  # a seat id
    winner_by: Literal["one_left", "most_conceded_to", "first_named"] | None = None

    # forum
    active: list[str] = Field(default_factory=list)
    eliminations: list[Elimination] = Field(default_factory=list)
    moved: dict[str, list[str]] = Field(default_factory=dict)
    judge_decisions: list[JudgeDecision] = Field(default_factory=list)
    verdict: str | None = None

    # moderated
    end_reason: str | None = None
    duration_ms: int | None = None
    summary: str | None = None
    scores: dict[str, SideResult] | None = None  # keyed by the name of the side
    scoring: Scoring | None = None
    fact_checks: list[RecordedClaim] = Field(default_factory=list)
    rulings: list[RecordedRuling] = Field(default_factory=list)
    adjustments: list[RecordedAdjustment] = Field(default_factory=list)
    output_dir: str | None = None

    # forecast: the contract's DebateRequest and DebateResult as JSON
    request: dict[str, Any] | None = None
    forecast: dict[str, Any] | None = None
    due: str | None = None
    resolution: str | None = None

    # added from the database
    title: str | None = None  # the user's title for the debate, shown instead of the question
    protocol: str = ""
    status: Status = "running"
    created_at: str = ""
    updated_at: str = ""
    error: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    turns: list[Turn] = Field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data, without other protocols' fields."""
        return self.model_dump(mode="json")

    @property
    def winner_name(self) -> str | None:
        return next((seat.name for seat in self.seats if seat.id == self.winner), None)

    def rated(self, user_rating: int | None) -> "DebateRecord":
        """Return the record with the user's rating, if any, in place of the judge's score."""
        if user_rating is None:
            return self
        return self.model_copy(update={"user_rating": user_rating, "quality_score": user_rating})
