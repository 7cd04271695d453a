"""The steps of a debate, from its checkpoints."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from contend.debates.family import Origin
from contend.debates.record import StoredDebate
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.state import DebateState, Turn

Graph = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True)
class HistoryStep:
    """A checkpoint: what ran last, and the state after it."""

    checkpoint: str
    nodes: tuple[str, ...]  # those that ran last
    next: tuple[str, ...]  # those that follow; none at the end
    round: int | None  # in which they ran
    turns: tuple[Turn, ...]  # those that this step added
    at: datetime
    state: DebateState
    config: Any
    is_of_node: bool  # not a comment or an input


def compile_graph(protocol: str, saver: BaseCheckpointSaver[Any]) -> Graph:
    builder = import_module(f"contend.graph.{protocol}").builder
    compiled: Graph = builder.compile(checkpointer=saver, name=protocol)
    return compiled


@asynccontextmanager
async def opened_graph(debate: StoredDebate) -> AsyncIterator[Graph]:
    async with checkpointer() as saver:
        yield compile_graph(debate.protocol, saver)


async def read_history(
    graph: Graph, debate_id: str, origin: Origin | None = None
) -> list[HistoryStep]:
    """Return the steps that led to where the debate is now, oldest first."""
    config: Any = {"configurable": {"thread_id": debate_id}}
    # Collected at once: a history that is still being read blocks writers.
    snapshots = {_id(each.config): each async for each in graph.aget_state_history(config)}
    line: list[StateSnapshot] = []
    at = next(iter(snapshots.values()), None)
    while at:
        line.append(at)
        at = snapshots.get(_id(at.parent_config)) if at.parent_config else None
    steps: list[HistoryStep] = []
    for snapshot in reversed(line):
        steps.append(_step(snapshot, steps[-1] if steps else None, origin))
    return steps


def _step(
    snapshot: StateSnapshot, before: HistoryStep | None, origin: Origin | None
) -> HistoryStep:
    state = cast("DebateState", snapshot.values)
    first = origin.node if origin else START
    known = len(before.state.get("turns", [])) if before else 0
    source = (snapshot.metadata or {}).get("source")
    is_of_node = before is not None and source == "loop" and before.next != (START,)
    return HistoryStep(
        checkpoint=_id(snapshot.config),
        # A comment or an input is no node: what ran last is what ran before it.
        nodes=before.next if before and is_of_node else before.nodes if before else (first,),
        next=snapshot.next,
        round=before.state.get("round", state.get("round")) if before else None,
        turns=tuple(state.get("turns", [])[known:]),
        at=datetime.fromisoformat(snapshot.created_at or ""),
        state=state,
        config=snapshot.config,
        is_of_node=is_of_node,
    )


def _id(config: Any) -> str:
    return str(config["configurable"]["checkpoint_id"])
