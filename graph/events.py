"""The events that nodes and viewers share: add new ones, but never change existing ones."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from contend.graph.phases import PhaseName

if TYPE_CHECKING:  # --help must not wait for langgraph
    from langgraph.runtime import Runtime

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
    """An event before the runner adds the debate's id, a sequence number and the time."""

    event: EventName
    round: int | None
    content: str
    metadata: dict[str, Any]


# Gets an event and LangGraph's way to send it.
EventListener = Callable[[NodeEvent, Callable[[Any], None]], None]


@dataclass
class _Listening:
    listener: EventListener
    has_ended: bool = False


_listening: ContextVar[_Listening | None] = ContextVar("listening", default=None)


@contextmanager
def listening(listener: EventListener) -> Iterator[None]:
    ours = _Listening(listener)
    token = _listening.set(ours)
    try:
        yield
    finally:
        _listening.reset(token)
        ours.has_ended = True  # tasks that are still running have a copy of the variable


def send_event(runtime: "Runtime[Any]", event: NodeEvent) -> None:
    """Send an event to this process's listener, or else through LangGraph, which takes longer."""
    ours = _listening.get()
    if ours is None:
        runtime.stream_writer(event)
    elif not ours.has_ended:
        ours.listener(event, runtime.stream_writer)


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
