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
_Role = Annotated[OwnName, Field(description="A built-in role, or one of your own.")]
_ABSENT = "null if missing; report.gaps says why."


class Scores(Contract):
    """An argument's scores by criterion, including your own criteria; null if not requested."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, _Share]

    logical_strength: _Share | None = None
    evidence_quality: _Share | None = None
    novelty: _Share | None = None
    composite: _Share = Field(
        description="Weighted average with weights 0.4, 0.4, 0.2, and those of your own criteria."
    )


class Argument(Contract):
    """One role's argument in one round."""

    role: _Role
    argument: str
    outcome_supported: str | None = Field(description=f"An outcome's id; {_ABSENT}")
    evidence_cited: tuple[str, ...]
    scores: Scores | None = Field(description=f"From 0 to 1; {_ABSENT}")
    rebuts: tuple[_Role, ...] = Field(description="The roles that it rebuts, from round 2 on.")


class EmergingConsensus(Contract):
    """An outcome that the roles moved toward or away from in this round."""

    outcome_id: str
    direction: Direction


class RoundSummary(Contract):
    """A summary of a round, computed from its arguments."""

    dominant_argument: _Role | None = Field(
        description=f"The role with the best-scored argument; {_ABSENT}"
    )
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
    """A role's position on a topic, in the role's own words."""

    role: _Role
    stance: str
    strength: _Share | None = Field(
        description=f"How sure the role is, times the score of its argument; {_ABSENT}"
    )


class Disagreement(Contract):
    """A topic that the roles disagreed on, and whether they came to agree."""

    topic: str = Field(
        description="As the judge names it; otherwise an outcome, with the two points that were "
        "furthest apart on it. If there are only two outcomes, only the first is compared."
    )
    positions: tuple[Position, ...]
    resolved: bool


class RoleAssessment(Contract):
    """The last probability that a role gave for an outcome."""

    role: _Role
    probability: _Share
    confidence: _Share | None = Field(
        description=f"The role's confidence in its own numbers; {_ABSENT}"
    )


class OutcomeForecast(Contract):
    """The forecast for one outcome."""

    outcome_id: str
    probability: _Share | None = Field(description=f"Derived from the debate; {_ABSENT}")
    role_assessments: tuple[RoleAssessment, ...]
    judge_probability: _Share | None = Field(description=f"The judge's verdict; {_ABSENT}")
    consensus_probability: _Share | None = Field(description=f"Mean over roles; {_ABSENT}")


class KeyInsight(Contract):
    """A new insight from the debate."""

    insight: str
    source_role: _Role
    round: int
    impact: Impact
    affected_outcomes: tuple[str, ...]


class Precedent(Contract):
    """A past event that the Historian cited."""

    event: str
    date: str
    similarity_score: _Share | None = Field(description=f"From 0 to 1; {_ABSENT}")
    outcome: str
    relevance: str


class TokensUsed(Contract):
    """Input and output tokens that providers reported; see also report.calls_without_usage."""

    input: int | None
    output: int | None


class ResultMetadata(Contract):
    """Totals of the debate's arguments, tokens, calls and time, and the models used."""

    total_arguments: int
    sonnet_tokens_used: TokensUsed = Field(
        description="Tokens used by all models, whichever they were."
    )
    sonnet_calls: int = Field(
        description="Calls for arguments, scores, verdict and missing parts, including failures."
    )
    wall_clock_time_ms: int
    model: str = Field(description="The model, or all models if there are several.")


class Gap(Contract):
    """Missing information, and why it is missing."""

    what: str
    why: str
    role: str | None = None
    round: int | None = None


class RawValues(Contract):
    """Probabilities as a role wrote them, before they were normalized."""

    role: _Role
    round: int
    part: Literal["argument", "verdict"]
    values: dict[str, float]


class Pools(Contract):
    """An outcome's probability under four pooling methods; `contract` is the published one."""

    outcome_id: str
    contract: _Share | None
    linear: _Share | None
    log_odds: _Share | None
    extremised: _Share | None


class OutcomeConsensus(Contract):
    """How far the roles agree on one outcome."""

    outcome_id: str
    consensus_score: _Share | None


class Replaced(Contract):
    """An unused version of an argument: weak, outdated, or a retry that was no better."""

    round: int
    argument: Argument


class Overlong(Contract):
    """An argument over the length limit. It is kept in full."""

    role: _Role
    round: int
    tokens: int
    limit: int


class Goal(Contract):
    """The share of arguments that meet a goal, and the target share."""

    share: _Share | None = Field(description="null if there was nothing to measure.")
    of: int = Field(description="The number of arguments that it was measured on.")
    goal: _Share | None = None


class Report(Contract):
    """Additional information: the forecast's completeness and raw values."""

    partial: bool
    confidence: _Share | None = Field(
        description="Mean stated confidence, times the share of requested numbers that were given."
    )
    gaps: tuple[Gap, ...]
    argument_quality: Goal = Field(description="Arguments with a composite above 0.4.")
    closing_references: Goal = Field(description="Closing arguments that cite earlier points.")
    consensus_by_outcome: tuple[OutcomeConsensus, ...]
    raw_probabilities: tuple[RawValues, ...]
    pools: tuple[Pools, ...]
    extremising_factor: float
    calls_without_usage: int = Field(
        0, description="Turns and failed calls whose tokens are unknown and therefore not counted."
    )
    replaced_arguments: tuple[Replaced, ...]
    overlong_arguments: tuple[Overlong, ...] = ()
    own_roles: tuple[OwnRole, ...] = Field((), description="As they were requested.")
    own_criteria: tuple[OwnCriterion, ...] = Field((), description="As they were requested.")


class DebateResult(Contract):
    """The result from the debate engine."""

    debate_id: str
    task_id: str
    completed_at: datetime
    debate_log: DebateLog
    consensus_score: _Share | None = Field(
        description=f"Agreement over all outcomes, from 0 to 1; {_ABSENT}"
    )
    disagreement_map: tuple[Disagreement, ...]
    probability_distribution: tuple[OutcomeForecast, ...]
    key_insights: tuple[KeyInsight, ...]
    historical_precedents: tuple[Precedent, ...]
    metadata: ResultMetadata
    report: Report


def json_schemas() -> dict[str, dict[str, object]]:
    return {
        "debate_request": DebateRequest.model_json_schema(mode="validation"),
        "debate_result": DebateResult.model_json_schema(mode="serialization"),
    }
