"""The Proposer answers in round 1 and revises afterwards."""

from typing import Any

from langgraph.runtime import Runtime

from graph.state import DebateState, seat_with_role, turns_of
from nodes.speaking import announce, say


async def propose(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Take the Proposer's turn of this round."""
    part = "again" if turns_of(state, "propose") else "first"
    critiques = turns_of(state, "critique")
    spoken = await say(state, runtime, seat_with_role(state, "proposer"), "propose", part)
    reply_to = critiques[-1].id if critiques else None
    turn = spoken["turn"].model_copy(update={"replies_to": reply_to})
    announce(runtime, turn)
    return {"turns": [turn], "degraded": spoken["degraded"]}
