"""The forecasting contract: what is asked of a forecast, and what is handed back.

Names and fields are the published ones. What a debate could not yield is null and named in
`report.gaps`; nothing is made up in its place.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.config import JsonDict

Role = Literal["optimist", "pessimist", "contrarian", "historian", "judge"]
ROLES: tuple[Role, ...] = ("optimist", "pessimist", "contrarian", "historian", "judge")
Criterion = Literal["logical_strength", "evidence_quality", "novelty"]
CRITERIA: tuple[Criterion, ...] = ("logical_strength", "evidence_quality", "novelty")
COMPOSITE_WEIGHTS: dict[Criterion, float] = {
    "logical_strength": 0.4,
    "evidence_quality": 0.4,
    "novelty": 0.2,
}
Phase = Literal["opening", "rebuttal", "closing"]
Direction = Literal["toward", "away"]
Impact = Literal["high", "medium", "low"]

JUDGE_WEIGHT = 0.6
ROUNDS = 3
MAX_ARGUMENT_LENGTH = 500
FEWEST_OUTCOMES, MOST_OUTCOMES = 2, 20
MOST_ROUNDS = 10
MAX_REQUEST_BYTES = 262_144
# How far a distribution given in a request may be from 1 in all.
_ROUNDING = 0.01


def _storable(text: str) -> str:
    """No database keeps a NUL, and half a surrogate pair is no text."""
    if "\x00" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError("has characters that cannot be stored")
    return text


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _tuple(value: object) -> object:
    """Lists are what JSON and Python callers have; the contract keeps them unchangeable."""
    return tuple(value) if isinstance(value, list) else value


def check_roles(roles: Iterable[str]) -> None:
    """The judge sits at every table, with somebody to judge, and nobody sits there twice."""
    named = list(roles)
    twice = _repeated(named)
    if twice:
        raise ValueError(f"roles names the {twice} twice")
    if "judge" not in named or len(named) == 1:
        raise ValueError("roles needs the judge, who gives the verdict, and at least one other")


def check_criteria(criteria: Iterable[str]) -> None:
    """At least one criterion, each of them once."""
    named = list(criteria)
    twice = _repeated(named)
    if twice:
        raise ValueError(f"scoring_criteria names {twice} twice")
    if not named:
        raise ValueError("scoring_criteria names none")


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


_Words = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_storable)]
_Text = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2_000),
    AfterValidator(_storable),
    AfterValidator(_said),
]
_Question = Annotated[
    str,
    StringConstraints(min_length=1, max_length=10_000),
    AfterValidator(_storable),
    AfterValidator(_said),
]
_Id = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200),
    AfterValidator(_storable),
    AfterValidator(_said),
]
OUTCOME_ID = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
OutcomeId = Annotated[str, StringConstraints(pattern=OUTCOME_ID)]
Share = Annotated[float, Field(ge=0, le=1)]
_Items = Annotated[tuple[_Text, ...], Field(max_length=50), BeforeValidator(_tuple)]


class Contract(BaseModel):
    """Strict about types and names, frozen, and without a number that is none."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


# --- what is asked ---


class PredictionTask(Contract):
    """The original prediction task."""

    question: _Question = Field(description="What is to be predicted.")
    description: _Words = Field("", description="Background for those who argue.")
    resolution_criteria: _Words = Field("", description="What decides which outcome came true.")


class Outcome(Contract):
    """One of the outcomes that exclude each other."""

    id: OutcomeId
    label: _Text
    description: _Words = ""


class KeyVariable(Contract):
    """Something the outcome depends on."""

    name: _Text
    category: _Words = ""
    importance: Share
    current_value: _Words | float | None = Field(None, union_mode="left_to_right")


class OutcomeProbability(Contract):
    """How likely one outcome is held to be."""

    outcome_id: OutcomeId
    probability: Share


class SimulationSummary(Contract):
    """What a simulation found before the debate."""

    final_distribution: Annotated[
        tuple[OutcomeProbability, ...], Field(max_length=MOST_OUTCOMES), BeforeValidator(_tuple)
    ] = ()
    key_findings: _Items = ()


class Timeframe(Contract):
    """From when to when; the forecast comes due at the end."""

    start: date | None = None
    end: date | None = None

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.start and self.end and self.start > self.end:
            raise ValueError("start is later than end")
        return self


class DataSummary(Contract):
    """What the data say."""

    region: _Words = ""
    timeframe: Timeframe = Timeframe()
    economic_highlights: _Items = ()
    sentiment_highlights: _Items = ()
    data_gaps: _Items = ()


class PredictionContext(Contract):
    """All that the debate is told."""

    task: PredictionTask
    outcomes: Annotated[
        tuple[Outcome, ...],
        Field(min_length=FEWEST_OUTCOMES, max_length=MOST_OUTCOMES),
        BeforeValidator(_tuple),
    ]
    key_variables: Annotated[
        tuple[KeyVariable, ...], Field(max_length=50), BeforeValidator(_tuple)
    ] = ()
    simulation_summary: SimulationSummary = SimulationSummary()
    data_summary: DataSummary = DataSummary()

    @property
    def outcome_ids(self) -> tuple[str, ...]:
        """The ids of the outcomes, in their order."""
        return tuple(outcome.id for outcome in self.outcomes)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        twice = _repeated(each.casefold() for each in self.outcome_ids)
        if twice:
            raise ValueError(f"two outcomes have the id '{twice}'")
        simulated = self.simulation_summary.final_distribution
        twice = _repeated(each.outcome_id for each in simulated)
        if twice:
            raise ValueError(f"the simulation gives outcome '{twice}' twice")
        strange = [e.outcome_id for e in simulated if e.outcome_id not in self.outcome_ids]
        if strange:
            raise ValueError(f"the simulation knows an outcome '{strange[0]}' that is not given")
        total = sum(each.probability for each in simulated)
        whole = len(simulated) == len(self.outcomes)
        if total > 1 + _ROUNDING or (whole and total < 1 - _ROUNDING):
            raise ValueError(f"the simulation's probabilities sum to {total:g}, not to 1")
        return self


class DebateConfig(Contract):
    """How the debate is held."""

    rounds: int = Field(ROUNDS, ge=1, le=MOST_ROUNDS, description="Number of debate rounds.")
    roles: Annotated[
        tuple[Role, ...], Field(min_length=2, max_length=len(ROLES)), BeforeValidator(_tuple)
    ] = Field(
        ROLES,
        description="Who debates; the judge and at least one other.",
        json_schema_extra={"uniqueItems": True},
    )
    max_argument_length: int = Field(
        MAX_ARGUMENT_LENGTH, ge=100, le=4000, description="Max tokens per argument."
    )
    scoring_criteria: Annotated[
        tuple[Criterion, ...],
        Field(min_length=1, max_length=len(CRITERIA)),
        BeforeValidator(_tuple),
    ] = Field(
        CRITERIA,
        description="What arguments are scored on.",
        json_schema_extra={"uniqueItems": True},
    )
    judge_weight: Share = Field(
        JUDGE_WEIGHT, description="Weight of the judge's assessment against the role consensus."
    )

    @model_validator(mode="after")
    def _whole(self) -> Self:
        check_roles(self.roles)
        check_criteria(self.scoring_criteria)
        return self


# As short as a request can usefully be; the README shows it as well.
_EXAMPLE: JsonDict = {
    "task_id": "bridge-1",
    "prediction_context": {
        "task": {"question": "Will the bridge open before May?"},
        "outcomes": [
            {"id": "yes", "label": "It opens"},
            {"id": "no", "label": "It does not"},
        ],
        "data_summary": {"timeframe": {"end": "2027-05-01"}},
    },
}


class DebateRequest(Contract):
    """What a caller asks of the debate engine."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    task_id: _Id
    prediction_context: PredictionContext
    config: DebateConfig = DebateConfig()


# --- what is handed back ---

_ABSENT = "null when it is absent; report.gaps says why."


class Scores(Contract):
    """How good an argument is; criteria that were not asked for are null."""

    logical_strength: Share | None = None
    evidence_quality: Share | None = None
    novelty: Share | None = None
    composite: Share = Field(description="Weighted average: 0.4, 0.4 and 0.2.")


class Argument(Contract):
    """One argument of one role in one round."""

    role: Role
    argument: str
    outcome_supported: str | None = Field(description=f"An outcome's id; {_ABSENT}")
    evidence_cited: tuple[str, ...]
    scores: Scores | None = Field(description=f"From 0 to 1; {_ABSENT}")
    rebuts: tuple[Role, ...] = Field(description="The roles it rebuts; rounds 2 and later.")


class EmergingConsensus(Contract):
    """Whether the roles moved toward an outcome in this round, or away from it."""

    outcome_id: str
    direction: Direction


class RoundSummary(Contract):
    """What a round came to, computed from its arguments."""

    dominant_argument: Role | None = Field(description=f"The best-scored role; {_ABSENT}")
    key_disagreements: tuple[str, ...]
    emerging_consensus: tuple[EmergingConsensus, ...]


class Round(Contract):
    """One round of the debate."""

    round_number: int
    phase: Phase
    arguments: tuple[Argument, ...]
    round_summary: RoundSummary


class DebateLog(Contract):
    """The rounds in order."""

    rounds: tuple[Round, ...]


class Position(Contract):
    """Where a role stands on a topic."""

    role: Role
    stance: str
    strength: Share | None = Field(description=f"How sure the role says it is; {_ABSENT}")


class Disagreement(Contract):
    """A topic on which the roles diverged, and whether they came together."""

    topic: str
    positions: tuple[Position, ...]
    resolved: bool


class RoleAssessment(Contract):
    """One role's own probability, as it last stated it."""

    role: Role
    probability: Share
    confidence: Share | None = Field(description=f"Of the role in its own numbers; {_ABSENT}")


class OutcomeForecast(Contract):
    """The forecast of one outcome."""

    outcome_id: str
    probability: Share | None = Field(description=f"Debate-derived; {_ABSENT}")
    role_assessments: tuple[RoleAssessment, ...]
    judge_probability: Share | None = Field(description=f"The judge's verdict; {_ABSENT}")
    consensus_probability: Share | None = Field(description=f"Mean over roles; {_ABSENT}")


class KeyInsight(Contract):
    """Something new that the debate brought up."""

    insight: str
    source_role: Role
    round: int
    impact: Impact
    affected_outcomes: tuple[str, ...]


class Precedent(Contract):
    """A past event the Historian cited."""

    event: str
    date: str
    similarity_score: Share | None = Field(description=f"From 0 to 1; {_ABSENT}")
    outcome: str
    relevance: str


class TokensUsed(Contract):
    """Tokens in and out; null when a provider did not say."""

    input: int | None
    output: int | None


class ResultMetadata(Contract):
    """What the debate took."""

    total_arguments: int
    sonnet_tokens_used: TokensUsed = Field(description="Of whichever models argued.")
    sonnet_calls: int = Field(
        description="Arguments, scorings, the verdict, second asks, and tries that failed."
    )
    wall_clock_time_ms: int
    model: str = Field(description="The model, or all of them when they differ.")


class Gap(Contract):
    """Something the forecast lacks, and why."""

    what: str
    why: str
    role: str | None = None
    round: int | None = None


class RawValues(Contract):
    """Probabilities as they were written, before they were normalised."""

    role: Role
    round: int
    part: Literal["argument", "verdict"]
    values: dict[str, float]


class Pools(Contract):
    """One outcome under four ways of pooling; `contract` is the debate's own probability."""

    outcome_id: str
    contract: Share | None
    linear: Share | None
    log_odds: Share | None
    extremised: Share | None


class OutcomeConsensus(Contract):
    """How much the roles agree on one outcome."""

    outcome_id: str
    consensus_score: Share | None


class Replaced(Contract):
    """A version that does not stand: too weak, no better than the first, or overtaken by others."""

    round: int
    argument: Argument


class Goal(Contract):
    """A share that is measured, and how large it should be."""

    share: Share | None = Field(description="null when there was nothing to measure.")
    of: int = Field(description="How many arguments it was measured on.")
    goal: Share | None = None


class Report(Contract):
    """What lies beside the contract's own fields: how whole the forecast is, and its raw values."""

    partial: bool
    confidence: Share | None = Field(
        description="Mean stated confidence times the share of the numbers that came."
    )
    gaps: tuple[Gap, ...]
    argument_quality: Goal = Field(description="Arguments with a composite above 0.4.")
    closing_references: Goal = Field(description="Closing arguments that cite earlier points.")
    consensus_by_outcome: tuple[OutcomeConsensus, ...]
    raw_probabilities: tuple[RawValues, ...]
    pools: tuple[Pools, ...]
    extremising_factor: float
    replaced_arguments: tuple[Replaced, ...]


class DebateResult(Contract):
    """What the debate engine hands back."""

    debate_id: str
    task_id: str
    completed_at: datetime
    debate_log: DebateLog
    consensus_score: Share | None = Field(description=f"From 0 to 1, over outcomes; {_ABSENT}")
    disagreement_map: tuple[Disagreement, ...]
    probability_distribution: tuple[OutcomeForecast, ...]
    key_insights: tuple[KeyInsight, ...]
    historical_precedents: tuple[Precedent, ...]
    metadata: ResultMetadata
    report: Report


def json_schemas() -> dict[str, dict[str, object]]:
    """The JSON Schema of the request and of the result, by name; docs/schemas/ keeps them."""
    return {
        "debate_request": DebateRequest.model_json_schema(mode="validation"),
        "debate_result": DebateResult.model_json_schema(mode="serialization"),
    }
