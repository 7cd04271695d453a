from typing import Any

from langgraph.runtime import Runtime

from contend.graph.state import DebateState
from contend.nodes.calls.stream import debate_id
from contend.nodes.record import build_record


async def store(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    return {"trace": build_record(state, debate_id(runtime)).as_json()}
