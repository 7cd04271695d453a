"""The debate as data: what the graph carries from node to node, and nothing else."""

import operator
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from langgraph.channels.delta import DeltaChannel
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from contend.graph.phases import PhaseName, StepPhase
from contend.graph.readings import AutoScore, DebateScores, Reading
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import (
    Degradation,
    Document,
    Image,
    QuoteCheck,
    Retrieval,
    Seat,
    ToolUse,
    TurnLength,
    Usage,
    Value,
    WorkSpan,
)

TurnStatus = Literal["ok", "fallback_model", "kept_previous", "failed", "human"]
ClosingNode = Literal["judge_continue", "conviction_check"]


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
        return self.length is not None and self.length.is_over


class Elimination(Value):
    """A seat that conceded and left the debate: to which seat, and why."""

    seat: str
    round: int
    convinced_by: str
    argument: str
    quote: str
    quote_found: bool
    reasoning: str


class Step(Value):
    """One scheduled turn: the seat that speaks, and the phase."""

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


def append(current: Sequence[Any] | None, writes: Sequence[Sequence[Any]]) -> list[Any]:
    """Append any number of writes to a list; batching does not change the result."""
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
    """The seats and their models. Written by the caller, or by retrieve when started bare;
    missing positions are filled in by moderate."""
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
    """Seats still to speak. Written by retrieve and judge_continue, shortened by propose."""
    closing: ClosingNode
    """What follows when all have spoken. Written by retrieve and judge_continue."""
    active: list[str]
    """Seats that have not conceded. Written by retrieve, shortened by conviction_check."""
    eliminations: Annotated[list[Elimination], operator.add]
    """Who conceded to whom. Appended to by conviction_check."""
    spans: Annotated[list[WorkSpan], operator.add]
    """Calls that produced no turn, and the working time of a forecast. Appended to by any node."""
    given_up: Annotated[list[str], operator.add]
    """Arguments that could not be scored or argued again, by turn id; they are not retried.
    Appended to by the nodes of a forecast."""
    programme: list[Step]
    """The turns still due in this stage. Written by moderate, shortened as they are taken."""
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
    """Problems. Appended to by any node."""
    trace: dict[str, Any]
    """The finished record in the published JSON form. Written by store."""


class Remark(BaseModel):
    """What a person answers at a pause: words for the next speakers, or the wish to conclude."""

    say: str = Field(default="", description="Words the next speakers see as the user's.")
    finish: bool = Field(default=False, description="End the rounds now and write the answer.")


def seat_with_role(state: DebateState, role: str) -> Seat:
    return next(seat for seat in state["seats"] if seat.role == role)


def ids_with_role(state: DebateState, role: str) -> list[str]:
    return [seat.id for seat in state["seats"] if seat.role == role]


def seat_with_id(state: DebateState, seat_id: str) -> Seat:
    return next(seat for seat in state["seats"] if seat.id == seat_id)


def turns_of(state: DebateState, phase: PhaseName) -> list[Turn]:
    return [turn for turn in state.get("turns", []) if turn.phase == phase]
