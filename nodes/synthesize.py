"""The Synthesizer writes the one answer the user reads."""

from typing import Any

from langgraph.runtime import Runtime

from graph.events import node_event
from graph.state import DebateState, seat_with_role
from nodes.speaking import announce, say


async def synthesize(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Write the final answer from the whole debate."""
    seat = seat_with_role(state, "synthesizer")
    runtime.stream_writer(node_event("synthesis_start", state["round"], model=seat.model))
    spoken = await say(state, runtime, seat, "synthesize", "final")
    turn = spoken["turn"]
    announce(runtime, turn)
    runtime.stream_writer(node_event("final_complete", state["round"], turn.text, model=turn.model))
    return {"turns": [turn], "final_answer": turn.text, "degraded": spoken["degraded"]}
