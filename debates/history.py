import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, cast

from langgraph._internal._typing import MISSING
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import StateSnapshot

from contend.debates.family import Origin
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import BadInput
from contend.graph.state import DebateState, Turn
from contend.models.recording import Recording, using_recording

Graph = CompiledStateGraph[Any, Any, Any, Any]

# LangGraph's task id for writes from outside the graph.
_NO_TASK = "00000000-0000-0000-0000-000000000000"
_EARLIEST = datetime.min.replace(tzinfo=UTC)
# A person's additions are appended to these lists.
_LISTS = {"turns", "degraded"}


class _CheckpointChain(BaseCheckpointSaver[Any]):
    """An in-memory saver with the checkpoints that led to a debate's current state."""

    def __init__(self, newest_first: Sequence[CheckpointTuple]) -> None:
        super().__init__()
        every = {_id(each.config): each for each in newest_first}
        self._saved: dict[str, CheckpointTuple] = {}
        at = newest_first[0] if newest_first else None
        while at:
            self._saved[_id(at.config)] = at
            at = every.get(_id(at.parent_config)) if at.parent_config else None

    def add_deltas(self, channels: Mapping[str, Any]) -> None:
        """Replace deltas with whole values, so that LangGraph need not replay them at each step."""
        for name, channel in channels.items():
            if isinstance(channel, DeltaChannel):
                self._add_deltas(name, channel)

    def _add_deltas(self, name: str, channel: DeltaChannel[Any]) -> None:
        current = channel.from_checkpoint(MISSING)
        for saved in reversed(self._saved.values()):
            values = saved.checkpoint["channel_values"]
            if name in values:
                current = channel.from_checkpoint(values[name])
            elif name in saved.checkpoint["channel_versions"]:
                values[name] = current.value
            current.replay_writes([each for each in saved.pending_writes or () if each[1] == name])

    def writes(self, config: Any) -> Sequence[Any]:
        return self._saved[_id(config)].pending_writes or []

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        return self._saved.get(_id(config))

    async def alist(self, *_: Any, **__: Any) -> AsyncIterator[CheckpointTuple]:
        for each in self._saved.values():
            yield each


@dataclass(frozen=True)
class HistoryStep:
    checkpoint: str
    nodes: tuple[str, ...]  # the nodes that may have run last
    next: tuple[str, ...]  # the nodes that follow; empty at the end
    round: int | None  # the round in which the nodes ran
    turns: tuple[Turn, ...]  # the turns that this step added
    at: datetime
    state: DebateState
    is_of_node: bool  # False if the checkpoint is from an input or a correction
    is_edit: bool  # whether a client changed the state here, or forked the thread with a change
    given: DebateState  # what a person added to the state before the next node ran
    answer: Any  # what a person answered at a pause of the next node


def graph_of(protocol: str, saver: BaseCheckpointSaver[Any]) -> Graph:
    """Return a copy of the protocol's compiled graph that uses this checkpointer."""
    compiled: Graph = import_module(f"contend.graph.{protocol}").graph
    return compiled.copy({"checkpointer": saver})


@asynccontextmanager
async def opened_graph(debate: StoredDebate) -> AsyncIterator[Graph]:
    async with checkpointer() as saver:
        here: Any = {"configurable": {"thread_id": debate.id, "checkpoint_ns": ""}}
        if debate.server and await saver.aget_tuple(here) is None:
            raise BadInput(
                f"The steps of debate {debate.id[:8]} are stored on its server, {debate.server}, "
                "and only its record is here."
            )
        yield graph_of(debate.protocol, saver)


async def write_state(graph: Graph, config: Any, state: DebateState, as_node: str) -> None:
    """Write a state as the given node's output, without taking a lease."""
    with using_recording(Recording()):
        await graph.aupdate_state(config, state, as_node=as_node)


async def read_history(
    graph: Graph, debate_id: str, origin: Origin | None = None
) -> list[HistoryStep]:
    """Return the steps that led to the debate's current state, oldest first."""
    config: Any = {"configurable": {"thread_id": debate_id}}
    saver = cast("BaseCheckpointSaver[Any]", graph.checkpointer)
    # Read completely first, because an unfinished read blocks writers.
    saved = _CheckpointChain([each async for each in saver.alist(config)])
    saved.add_deltas(graph.channels)
    states = graph.copy({"checkpointer": saved}).aget_state_history(config)
    newest_first = [each async for each in states]
    nodes = tuple(name for name in graph.nodes if name != START)
    steps: list[HistoryStep] = []
    for snapshot in reversed(newest_first):
        before = steps[-1] if steps else _beginning(origin)
        steps.append(_step(snapshot, before, nodes, saved.writes(snapshot.config)))
    return steps


async def node_steps(records: Repository, debate: StoredDebate) -> list[HistoryStep]:
    """Return the steps in which a node ran or a client edited the state, oldest first."""
    origin = await asyncio.to_thread(records.origin, debate.id)
    async with opened_graph(debate) as graph:
        steps = await read_history(graph, debate.id, origin)
    return [step for step in steps if step.is_of_node or step.is_edit]


def describe_step(step: HistoryStep) -> dict[str, Any]:
    return {
        "checkpoint": step.checkpoint,
        "round": step.round,
        "nodes": [] if step.is_edit else list(step.nodes),
        "next": list(step.next),
        "turns": [turn.id for turn in step.turns],
        "at": step.at.isoformat(),
    }


def _beginning(origin: Origin | None) -> HistoryStep:
    first = (origin.node if origin else START,)
    return HistoryStep("", first, first, None, (), _EARLIEST, {}, False, False, {}, None)


def _step(
    snapshot: StateSnapshot, before: HistoryStep, every: tuple[str, ...], writes: Sequence[Any]
) -> HistoryStep:
    source = (snapshot.metadata or {}).get("source")
    is_of_node = source == "loop" and before.next != (START,)
    nodes = before.next if is_of_node else before.nodes
    is_update = source == "update" and bool(before.checkpoint)
    if is_update:
        nodes = every  # a correction does not name the node it replaces
    added: Any = {}
    for task, channel, value in writes:
        if task == _NO_TASK and not channel.startswith("__"):
            added[channel] = value
    state = _without(cast("DebateState", snapshot.values), added)
    known = {turn.id: turn for turn in before.state.get("turns", [])}
    return HistoryStep(
        checkpoint=_id(snapshot.config),
        nodes=nodes,
        next=snapshot.next,
        round=before.state.get("round", state.get("round")),
        turns=tuple(turn for turn in state.get("turns", []) if _is_new(turn, known.get(turn.id))),
        at=datetime.fromisoformat(snapshot.created_at or ""),
        state=state,
        is_of_node=is_of_node,
        is_edit=is_update and state != before.state,
        given=added,
        answer=next(
            (_last(value) for _, channel, value in writes if channel == "__resume__"), None
        ),
    )


def _is_new(turn: Turn, known: Turn | None) -> bool:
    return turn is not known and turn != known  # comparing equal turns takes time


def _last(answer: Any) -> Any:
    return answer[-1] if isinstance(answer, list) else answer


def _without(state: DebateState, added: DebateState) -> DebateState:
    kept: Any = {name: value for name, value in state.items() if name not in added}
    for name in added.keys() & _LISTS:
        whole, new = state[name], added[name]  # type: ignore[literal-required]
        kept[name] = whole[: len(whole) - len(new)]
    return cast("DebateState", kept)


def _id(config: Any) -> str:
    return str(config["configurable"]["checkpoint_id"])
