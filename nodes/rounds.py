from typing import TYPE_CHECKING, Any

from contend.graph.events import NodeEvent, node_event
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, ids_with_role

if TYPE_CHECKING:  # commands that only read debates need no langgraph
    from langgraph.runtime import Runtime


def open_round(state: DebateState, runtime: "Runtime[Any]", number: int) -> DebateState:
    opened, event = describe_round(state, runtime.context, number)
    runtime.stream_writer(event)
    return opened


def describe_round(
    state: DebateState, settings: DebateSettings, number: int
) -> tuple[DebateState, NodeEvent]:
    strategy = strategy_for(settings)
    waiting = still_active(state, settings)
    first = ids_with_role(state, strategy.opening_role(number))
    at_once = len(strategy.speakers(number, waiting)) > 1
    opener = next((seat for seat in state["seats"] if seat.id in first), None)
    about = {"model": opener.model, "role": opener.role} if opener else {}
    event = node_event("round_start", number, active=waiting, at_once=at_once, first=first, **about)
    return {"round": number, "waiting": waiting, "closing": strategy.closing_node(number)}, event


def still_active(state: DebateState, settings: DebateSettings) -> list[str]:
    answering = [seat.id for seat in state["seats"] if strategy_for(settings).answers(seat)]
    active = state.get("active", answering)
    return [seat for seat in answering if seat in active]
