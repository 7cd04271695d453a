from collections.abc import Iterable
from typing import Any, NotRequired

from typing_extensions import TypedDict

from contend.graph.errors import ModelFailed
from contend.graph.state import DebateState, Turn
from contend.graph.values import Degradation, WorkSpan
from contend.nodes.calls.turn import lost_call


class CallResults(TypedDict):
    turns: list[Turn]
    degraded: list[Degradation]
    spans: list[WorkSpan]
    given_up: NotRequired[list[str]]  # turn ids; missing in data from earlier releases


def turn_results(turn: Turn, degraded: Iterable[Degradation]) -> CallResults:
    return {"turns": [turn], "degraded": list(degraded), "spans": []}


def failure_results(failure: ModelFailed, reported: Degradation) -> CallResults:
    degraded = [*failure.before, reported]
    return {"turns": [], "degraded": degraded, "spans": [lost_call(failure)]}


def join_results(parts: Iterable[CallResults]) -> CallResults:
    listed = list(parts)
    return {
        "turns": [turn for each in listed for turn in each["turns"]],
        "degraded": [entry for each in listed for entry in each["degraded"]],
        "spans": [span for each in listed for span in each["spans"]],
        "given_up": [turn for each in listed for turn in each.get("given_up", [])],
    }


def update_of(results: CallResults) -> dict[str, Any]:
    # Leave out empty lists, which would count as updates and enlarge every checkpoint.
    return {field: values for field, values in results.items() if values}


def with_turns(state: DebateState, turns: Iterable[Turn]) -> DebateState:
    return {**state, "turns": [*state.get("turns", []), *turns]}
