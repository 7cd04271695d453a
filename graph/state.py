"""The debate as data: what the graph carries from node to node, and nothing else."""

import operator
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from langgraph.channels.delta import DeltaChannel
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

Number = TypeVar("Number", int, float)

Severity = Literal["critical", "major", "minor"]
SEVERITY_MARKS: dict[Severity, str] = {"critical": "🔴", "major": "🟡", "minor": "🟢"}
PointStatus = Literal["open", "partial", "resolved", "dropped"]
TurnStatus = Literal["ok", "fallback_model", "kept_previous", "failed", "human"]
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
    fallback_models: tuple[str, ...] = ()


class Point(Value):
    """One objection, tracked from the round that raised it to the round that settled it."""

    id: str
    severity: Severity
    status: PointStatus
    text: str


class Assessment(Value):
    """What a critique decides, read from its control block, its words or an extraction call."""

    kind: Literal["critique"] = "critique"
    ready: bool
    score: float | None = None
    points: tuple[Point, ...] = ()
    none_critical: bool = False
    """True only if the critique lets one know that nothing critical is left."""
    read_from: Literal["block", "words", "extraction"] = "block"


class Turn(Value):
    """One finished contribution to the debate."""

    id: str
    round: int
    phase: str
    seat: str
    role: str
    model: str
    text: str
    thinking: str | None = None
    assessment: Assessment | None = None
    usage: Usage = Usage()
    started_at: datetime
    ended_at: datetime
    status: TurnStatus = "ok"
    replies_to: str | None = None


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


class Degradation(Value):
    """Something that did not go as planned, and that no reader may mistake for the plan."""

    seat: str | None = None
    round: int | None = None
    what: str
    why: str


class TemplateUse(Value):
    """A reasoning template handed to the first speaker, with its similarity to the question."""

    id: str
    title: str
    text: str
    score: float


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


class DebateState(TypedDict, total=False):
    """Everything a debate knows. Each field names its writer."""

    question: str
    """The user's question, cleaned. Written by the caller, cleaned by retrieve."""
    seats: list[Seat]
    """Who sits where with which model. Written by the caller, or by retrieve when started bare."""
    retrieval: Retrieval
    """Phase 0. Written by retrieve."""
    round: int
    """The round being argued, from 1. Written by retrieve, advanced by judge_continue."""
    turns: Transcript
    """The transcript. Appended to by every node that speaks, and by a person's remarks."""
    stop: StopDecision
    """Why the rounds ended. Written by judge_continue, once."""
    final_answer: str
    """Written by synthesize."""
    auto_score: AutoScore
    """Absent when the judge gave none. Written by score."""
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


def turns_of(state: DebateState, phase: str) -> list[Turn]:
    """The turns of one phase, in order."""
    return [turn for turn in state.get("turns", []) if turn.phase == phase]
