"""The result of a forecast."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field

from contend.graph.forecast_contract import terms
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.forecast_contract.terms import (
    Contract,
    Direction,
    Impact,
    OwnCriterion,
    OwnName,
    OwnRole,
    Phase,
)

_Share = Annotated[terms.Share, AfterValidator(lambda value: round(value, terms.DECIMALS))]
_Role = Annotated[OwnName, Field(description="A role of the contract, or one of your own.")]
_ABSENT = "null when it is absent; report.gaps says why."


class Scores(Contract):
    """How good an argument is, also by own criteria; those that were not asked for are null."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Share]

    logical_strength: _Share | None = None
    evidence_quality: _Share | None = None
    novelty: _Share | None = None
    composite: _Share = Field(
        description="Weighted average: 0.4, 0.4, 0.2, and the weights of own criteria."
    )


class Argument(Contract):
    """One argument of one role in one round."""

    role: _Role
    argument: str
    outcome_supported: str | None = Field(description=f"An outcome's id; {_ABSENT}")
    evidence_cited: tuple[str, ...]
    scores: Scores | None = Field(description=f"From 0 to 1; {_ABSENT}")
    rebuts: tuple[_Role, ...] = Field(description="The roles it rebuts; rounds 2 and later.")


class EmergingConsensus(Contract):
    """Whether the roles moved toward an outcome in this round, or away from it."""

    outcome_id: str
    direction: Direction


class RoundSummary(Contract):
    """What a round came to, computed from its arguments."""

    dominant_argument: _Role | None = Field(description=f"The best-scored role; {_ABSENT}")
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
    """Where a role stands on a topic, in its own words."""

    role: _Role
    stance: str
    strength: _Share | None = Field(
        description=f"How sure the role is, times the score of its argument; {_ABSENT}"
    )


class Disagreement(Contract):
    """A topic on which the roles diverged, and whether they came together."""

    topic: str = Field(
        description="As the judge names it; otherwise an outcome, with the two points that were "
        "furthest apart on it. Of two outcomes only the first."
    )
    positions: tuple[Position, ...]
    resolved: bool


class RoleAssessment(Contract):
    """One role's own probability, as it last stated it."""

    role: _Role
    probability: _Share
    confidence: _Share | None = Field(description=f"Of the role in its own numbers; {_ABSENT}")


class OutcomeForecast(Contract):
    """The forecast of one outcome."""

    outcome_id: str
    probability: _Share | None = Field(description=f"Debate-derived; {_ABSENT}")
    role_assessments: tuple[RoleAssessment, ...]
    judge_probability: _Share | None = Field(description=f"The judge's verdict; {_ABSENT}")
    consensus_probability: _Share | None = Field(description=f"Mean over roles; {_ABSENT}")


class KeyInsight(Contract):
    """Something new that the debate brought up."""

    insight: str
    source_role: _Role
    round: int
    impact: Impact
    affected_outcomes: tuple[str, ...]


class Precedent(Contract):
    """A past event the Historian cited."""

    event: str
    date: str
    similarity_score: _Share | None = Field(description=f"From 0 to 1; {_ABSENT}")
    outcome: str
    relevance: str


class TokensUsed(Contract):
    """Tokens in and out, as far as providers reported them; see report.calls_without_usage."""

    input: int | None
    output: int | None


class ResultMetadata(Contract):
    """What the debate used: arguments, tokens, calls, time and models."""

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

    role: _Role
    round: int
    part: Literal["argument", "verdict"]
    values: dict[str, float]


class Pools(Contract):
    """One outcome under four ways of pooling; `contract` is the debate's own probability."""

    outcome_id: str
    contract: _Share | None
    linear: _Share | None
    log_odds: _Share | None
    extremised: _Share | None


class OutcomeConsensus(Contract):
    """How much the roles agree on one outcome."""

    outcome_id: str
    consensus_score: _Share | None


class Replaced(Contract):
    """A version that does not stand: too weak, no better than the first, or overtaken by others."""

    round: int
    argument: Argument


class Overlong(Contract):
    """An argument over the length limit; it is kept whole."""

    role: _Role
    round: int
    tokens: int
    limit: int


class Goal(Contract):
    """A share that is measured, and how large it should be."""

    share: _Share | None = Field(description="null when there was nothing to measure.")
    of: int = Field(description="How many arguments it was measured on.")
    goal: _Share | None = None


class Report(Contract):
    """What lies beside the contract's own fields: how whole the forecast is, and its raw values."""

    partial: bool
    confidence: _Share | None = Field(
        description="Mean stated confidence times the share of the numbers that came."
    )
    gaps: tuple[Gap, ...]
    argument_quality: Goal = Field(description="Arguments with a composite above 0.4.")
    closing_references: Goal = Field(description="Closing arguments that cite earlier points.")
    consensus_by_outcome: tuple[OutcomeConsensus, ...]
    raw_probabilities: tuple[RawValues, ...]
    pools: tuple[Pools, ...]
    extremising_factor: float
    calls_without_usage: int = Field(
        0, description="Turns and lost calls whose tokens are unknown, and not counted."
    )
    replaced_arguments: tuple[Replaced, ...]
    overlong_arguments: tuple[Overlong, ...] = ()
    own_roles: tuple[OwnRole, ...] = Field((), description="As they were requested.")
    own_criteria: tuple[OwnCriterion, ...] = Field((), description="As they were requested.")


class DebateResult(Contract):
    """What the debate engine hands back."""

    debate_id: str
    task_id: str
    completed_at: datetime
    debate_log: DebateLog
    consensus_score: _Share | None = Field(description=f"From 0 to 1, over outcomes; {_ABSENT}")
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
