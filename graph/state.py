from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
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
ADDED = "added"  # marks the lists that grow with every write; see graph/channels.py


class Turn(Value):
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
    passages: tuple[str, ...] = ()  # the passages that the speaker was shown, as `doc:page`
    quotes: tuple[QuoteCheck, ...] = ()
    tool_calls: tuple[ToolUse, ...] = ()
    length: TurnLength | None = None  # only if there is a limit

    @property
    def is_overlong(self) -> bool:
        return self.length is not None and self.length.tokens > self.length.limit


class Elimination(Value):
    """A concession that eliminates the conceding seat."""

    seat: str
    round: int
    convinced_by: str
    argument: str
    quote: str
    quote_found: bool
    reasoning: str


class Step(Value):
    """A scheduled turn of a moderated debate."""

    phase: StepPhase
    seat: str
    to: str | None = None  # the seat to address or rebut; None if the speaker chooses
    asks: StepPhase | None = None  # the phase that a request asks for


class CallSubject(Value):
    """What a node's model call is about."""

    label: str = ""  # distinguishes the turn from the seat's other turns in the phase
    about: tuple[str, ...] = ()  # texts to find passages for; by default the latest turns
    turns: tuple[str, ...] = ()  # the ids of the turns that the call is about, in display order


class DebateInput(TypedDict, total=False):
    question: str
    seats: list[Seat]
    documents: list[Document]
    images: list[Image]
    request: dict[str, Any]


class DebateState(TypedDict, total=False):
    # Written by the front end or client.
    question: str  # cleaned by retrieve
    seats: list[Seat]  # set by retrieve if missing; moderate fills in missing positions
    documents: list[Document]
    images: list[Image]  # for the speakers of round 1
    outcomes: list[dict[str, str]]  # of a forecast without a request
    due: str  # an ISO date
    request: dict[str, Any]  # a forecast's request in its published form
    paid_before: Usage  # usage of the debate it was forked from; see debates/fork.py
    # Written by retrieve, to keep the settings with the thread, and by the first node that runs
    # with changed settings.
    protocol: str
    settings: dict[str, Any]  # all of them, as JSON; see graph/channels.py for its channel
    # Written by retrieve; the round and its seats by judge_continue too.
    retrieval: Retrieval
    round: int
    waiting: list[str]  # seats that have not spoken yet; propose removes them
    closing: ClosingNode  # the node that follows when all have spoken
    active: list[str]  # seats that have not conceded; conviction_check removes them
    # Appended to by several nodes.
    turns: list[Turn]  # see graph/channels.py for its channel
    degraded: Annotated[list[Degradation], ADDED]
    spans: Annotated[list[WorkSpan], ADDED]  # calls without a turn, work on a forecast
    eliminations: Annotated[list[Elimination], ADDED]  # by conviction_check
    given_up: Annotated[list[str], ADDED]  # turns that a forecast does not retry
    # Written by moderate; turns are removed once taken.
    programme: list[Step]
    # True if the person who resumes the debate asks for the answer now.
    finish: bool
    # Passed by a node to its calls, never stored.
    cue: CallSubject
    # Results.
    stop: StopDecision  # by judge_continue
    final_answer: str  # by synthesize
    forecast: dict[str, Any]  # a forecast's result in its published form, by synthesize
    auto_score: AutoScore  # by score; missing if the judge gave no scores
    verdict: DebateScores  # by score, if statements are scored
    trace: dict[str, Any]  # the record in its published JSON form, by store


class Remark(BaseModel):
    """A person's answer to a pause: a comment for the next speakers, or a request to finish."""

    model_config = ConfigDict(extra="forbid")

    say: str = Field(
        default="", description="A remark from the user that the next speakers are shown."
    )
    finish: bool = Field(default=False, description="End the rounds now and write the answer.")

    @model_validator(mode="before")
    @classmethod
    def _accept_plain_text(cls, answer: Any) -> Any:
        return {"say": answer} if isinstance(answer, str) else answer


def is_begun(state: DebateState) -> bool:
    # Remarks may come before a debate begins.
    return any(turn.phase != "remark" for turn in state.get("turns", []))


def seat_with_role(state: DebateState, role: str) -> Seat:
    return next(seat for seat in state["seats"] if seat.role == role)


def ids_with_role(state: DebateState, role: str) -> list[str]:
    return [seat.id for seat in state["seats"] if seat.role == role]


def seat_with_id(state: DebateState, seat_id: str) -> Seat:
    return next(seat for seat in state["seats"] if seat.id == seat_id)


def turns_of(state: DebateState, phase: PhaseName) -> list[Turn]:
    return [turn for turn in state.get("turns", []) if turn.phase == phase]
