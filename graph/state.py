"""The debate as data: what the graph carries from node to node, and nothing else."""

import operator
from datetime import datetime
from typing import Annotated, Any, Literal

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
    passages: tuple[str, ...] = ()  # what the speaker was shown of the documents, as `doc:page`
    quotes: tuple[QuoteCheck, ...] = ()
    tool_calls: tuple[ToolUse, ...] = ()
    length: TurnLength | None = None  # only where there is a limit

    @property
    def is_overlong(self) -> bool:
        return self.length is not None and self.length.tokens > self.length.limit


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
    to: str | None = None  # the seat that is addressed or rebutted; None if the speaker chooses
    asks: StepPhase | None = None  # what a request asks for


class CallSubject(Value):
    """What one of several calls of a node is about."""

    label: str = ""  # sets the call's turn apart from the others of the same seat and phase
    about: tuple[str, ...] = ()  # what passages are looked up for; by default what was said last
    turns: tuple[str, ...] = ()  # the ids of the turns it is about, in the order they are shown


class DebateInput(TypedDict, total=False):
    """What a caller gives: the question; seats only when a front end has already seated them."""

    question: str
    seats: list[Seat]
    documents: list[Document]
    images: list[Image]
    request: dict[str, Any]


class DebateState(TypedDict, total=False):
    """Everything a debate knows."""

    # Written by the caller.
    question: str  # cleaned by retrieve
    seats: list[Seat]  # by retrieve if the caller gave none; moderate fills in missing positions
    documents: list[Document]
    images: list[Image]  # for the speakers of round 1
    request: dict[str, Any]  # a forecast's request in its published form
    paid_before: Usage  # by the debate from which this one was forked, as in `debates/fork.py`
    # Written by retrieve; the round and its seats by judge_continue too.
    retrieval: Retrieval
    round: int
    waiting: list[str]  # seats still to speak, shortened by propose
    closing: ClosingNode  # the node that follows when all have spoken
    active: list[str]  # seats that have not conceded, shortened by conviction_check
    # Appended to by several nodes.
    turns: list[Turn]  # see graph/channels.py for its channel
    degraded: Annotated[list[Degradation], operator.add]
    spans: Annotated[list[WorkSpan], operator.add]  # calls without a turn, a forecast's work
    eliminations: Annotated[list[Elimination], operator.add]  # by conviction_check
    given_up: Annotated[list[str], operator.add]  # turns that a forecast does not retry
    # Written by moderate, shortened as the turns are taken.
    programme: list[Step]
    # Written when a person who resumes the debate asks for the answer.
    finish: bool
    # Given to a call by its node, never kept.
    cue: CallSubject
    # Results.
    stop: StopDecision  # by judge_continue
    final_answer: str  # by synthesize
    forecast: dict[str, Any]  # a forecast's result in its published form, by synthesize
    auto_score: AutoScore  # by score; absent if the judge gave none
    verdict: DebateScores  # by score, where statements are scored
    trace: dict[str, Any]  # the record in its published JSON form, by store


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
