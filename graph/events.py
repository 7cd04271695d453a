"""Events that nodes send to viewers. Events may be added, but existing ones must not change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from contend.graph.phases import PhaseName

if TYPE_CHECKING:  # --help must not wait for langgraph
    from contend.graph.state import Turn

EventName = Literal[
    "debate_start",
    "rag_complete",
    "round_start",
    "proposer_chunk",
    "skeptic_chunk",
    "seat_chunk",
    "judge_chunk",
    "seat_complete",
    "round_complete",
    "early_stop",
    "judge_decision",
    "model_eliminated",
    "convergence_status",
    "fact_check",
    "scores",
    "synthesis_start",
    "synthesis_chunk",
    "final_complete",
    "paused",
    "resumed",
    "settings_changed",
    "budget",
    "degraded",
    "error",
    "complete",
]

_CHUNK_EVENTS: dict[str, EventName] = {
    "proposer": "proposer_chunk",
    "skeptic": "skeptic_chunk",
    "judge": "judge_chunk",
    "synthesizer": "synthesis_chunk",
}


class NodeEvent(TypedDict):
    """A node's event. The runner adds the debate's id, a sequence number and the time."""

    event: EventName
    round: int | None
    content: str
    metadata: dict[str, Any]


Send = Callable[[Any], None]
"""Sends an event to viewers."""

_receiver: ContextVar[Callable[[Send, NodeEvent], None] | None] = ContextVar("receiver")


@contextmanager
def events_received_by(receive: Callable[[NodeEvent], None]) -> Iterator[None]:
    """Pass nodes' events to `receive`. If it raises, send the exception to LangGraph's stream."""
    is_open = True

    def pass_on(send: Send, event: NodeEvent) -> None:
        if not is_open:  # a call may end later than its run
            return
        try:
            receive(event)
        except Exception as error:  # noqa: BLE001 - it must not look like a failed model call
            send(error)

    token = _receiver.set(pass_on)
    try:
        yield
    finally:
        _receiver.reset(token)
        is_open = False


def event_writer(send: Send) -> Send:
    """Return a function that passes events to the receiver, or `send` if no receiver is set."""
    receive = _receiver.get(None)
    return partial(receive, send) if receive else send


def chunk_event(role: str, phase: PhaseName | Literal[""] = "") -> EventName:
    if phase == "synthesize":
        return "synthesis_chunk"
    if phase == "propose" and role == "judge":
        return "seat_chunk"  # a judge that argues speaks in parallel with other seats
    return _CHUNK_EVENTS.get(role, "seat_chunk")


def node_event(
    event: EventName, round_number: int | None = None, content: str = "", **metadata: Any
) -> NodeEvent:
    return {"event": event, "round": round_number, "content": content, "metadata": metadata}


def turn_event(turn: "Turn") -> NodeEvent:
    return node_event(
        "seat_complete",
        turn.round,
        turn.text,
        seat=turn.seat,
        role=turn.role,
        model=turn.model,
        phase=turn.phase,
        turn=turn.id,
        status=turn.status,
        thinking=turn.thinking,
        assessment=turn.assessment.model_dump() if turn.assessment else None,
        usage=turn.usage.model_dump(),
        length=turn.length.model_dump() if turn.length else None,
        passages=list(turn.passages),
        quotes=[quote.model_dump() for quote in turn.quotes],
        tool_calls=[use.model_dump() for use in turn.tool_calls],
        elapsed_ms=round((turn.ended_at - turn.started_at).total_seconds() * 1000),
    )
