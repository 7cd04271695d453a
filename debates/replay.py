"""Replays a debate's events, or reruns the graph with the recorded calls."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise, zip_longest
from typing import Any, cast

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command
from pydantic_core import to_jsonable_python

from contend.debates.events import Event, Watch
from contend.debates.history import (
    Graph,
    HistoryStep,
    graph_of,
    opened_graph,
    read_history,
    write_state,
)
from contend.debates.record import StoredDebate
from contend.debates.recordings import why_not_recorded
from contend.debates.repository import Repository
from contend.debates.spending import Limits, read_limits
from contend.graph.errors import BadInput, ModelFailed, NotRecorded
from contend.graph.events import NodeEvent, chunk_event
from contend.graph.phases import PHASES
from contend.graph.serializer import serializer
from contend.graph.state import DebateState
from contend.models.recording import Recording, using_recording

# Up to five words, each with its trailing spaces.
_PIECE = re.compile(r"(?:\S+\s*){1,5}")

# Times and durations, which differ in every run.
_TIMES = {"started_at", "ended_at", "seconds", "duration_ms", "completed_at", "wall_clock_time_ms"}
# The record repeats the rest of the state.
_NOT_COMPARED = {"trace"}


@dataclass(frozen=True)
class Difference:
    round: int | None
    nodes: tuple[str, ...]
    what: str


@dataclass(frozen=True)
class Replayed:
    steps: int
    calls: int
    differences: list[Difference]


async def play_events(
    events: Sequence[Event],
    watch: Watch,
    speed: float,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    before: datetime | None = None
    for event in events:
        at = datetime.fromisoformat(event["ts"])
        # Skip the time during which the debate was paused.
        if before is not None and at > before and event["event"] != "resumed":
            await sleep((at - before).total_seconds() / speed)
        before = at
        watch(event)


def with_simulated_chunks(events: Sequence[Event]) -> list[Event]:
    """Add simulated chunks, spread over the turn's duration, to turns stored without chunks."""
    streamed = {_speaker(event) for event in events if event["event"].endswith("_chunk")}
    whole: list[Event] = []
    for event in events:
        if event["event"] == "seat_complete" and _speaker(event) not in streamed:
            whole += _chunks(event, whole[-1]["ts"] if whole else event["ts"])
        whole.append(event)
    return whole


def _speaker(event: Event) -> tuple[Any, ...]:
    about = event["metadata"]
    return event["round"], about.get("seat"), about.get("phase")


def _chunks(event: Event, since: str) -> list[Event]:
    about = event["metadata"]
    if not PHASES[about["phase"]].is_streamed or about["status"] == "human":
        return []
    pieces = _PIECE.findall(event["content"])
    begin, end = datetime.fromisoformat(since), datetime.fromisoformat(event["ts"])
    begin = max(begin, end - timedelta(milliseconds=about["elapsed_ms"]))
    name = chunk_event(about["role"], about["phase"])
    seat = {key: about[key] for key in ("model", "role", "seat", "phase")}
    return [
        {
            **event,
            "ts": (begin + (end - begin) * at / len(pieces)).isoformat(),
            "event": name,
            "content": piece,
            "metadata": seat,
        }
        for at, piece in enumerate(pieces)
    ]


async def replay_strictly(records: Repository, debate: StoredDebate) -> Replayed:
    calls = await asyncio.to_thread(records.recordings.read, debate.id)
    if not calls:
        raise BadInput(
            f"Debate {debate.id[:8]} has no recording: {why_not_recorded(debate)}. Without "
            "--strict, its events can be replayed."
        )
    debate.settings_to_run()  # raises if a limit was tightened since
    async with opened_graph(debate) as graph:
        origin = await asyncio.to_thread(records.origin, debate.id)
        steps = await read_history(graph, debate.id, origin)
    budgets = await asyncio.to_thread(read_limits, records, debate)
    recording = Recording(calls, is_complete=True)
    pairs = [pair for pair in pairwise(steps) if _is_replayed(*pair)]
    found = [
        await _compare(_with_limits(debate, budgets, after.at), before, after, recording)
        for before, after in pairs
    ]
    return Replayed(len(found), len(calls), [each for each in found if each])


def _with_limits(
    debate: StoredDebate, budgets: Sequence[tuple[datetime, Limits]], at: datetime
) -> StoredDebate:
    limits = [each for since, each in budgets if since <= at][-1:]
    settings = {**debate.settings, **limits[0]} if limits else debate.settings
    return debate.model_copy(update={"settings": settings})


def _is_replayed(before: HistoryStep, after: HistoryStep) -> bool:
    return before.nodes != (START,) and after.is_of_node


async def run_step(
    debate: StoredDebate, before: HistoryStep, recording: Recording
) -> tuple[DebateState, list[NodeEvent]]:
    """Run the next step in memory with the recorded calls; return the new state and the events."""
    graph, config, _ = await restore_step(debate, before)
    given: Command[Any] | None = Command(update=before.given) if before.given else None
    while True:
        with using_recording(recording):
            stream = graph.astream(
                given,
                config,
                context=debate.as_settings(),
                stream_mode="custom",
                interrupt_after="*",
            )
            # Keep only the last run's events, because a node that paused starts again.
            said = [cast("NodeEvent", part) async for part in stream]
        snapshot = await graph.aget_state(config)
        if not snapshot.interrupts:
            return cast("DebateState", snapshot.values), said
        # An empty answer is text, because langgraph takes an empty dictionary for no answer.
        given = Command(resume=before.answer or {"say": ""})


async def restore_step(debate: StoredDebate, step: HistoryStep) -> tuple[Graph, Any, str]:
    """Restore the state after the step in memory; return the graph, its config and the node."""
    config: Any = {"configurable": {"thread_id": debate.id}}
    follows: tuple[str, ...] = ()
    for node in step.nodes:  # of several parallel nodes, only one leads to the next step
        graph = graph_of(debate.protocol, InMemorySaver(serde=serializer(compresses=False)))
        await write_state(graph, config, step.state, node)
        follows = (await graph.aget_state(config)).next
        if follows == step.next:
            return graph, config, node
    raise _DifferentPath(", ".join(follows) or "the end")


class _DifferentPath(Exception):
    """Raised if the next node differs from the recorded node."""


async def _compare(
    debate: StoredDebate, before: HistoryStep, after: HistoryStep, recording: Recording
) -> Difference | None:
    try:
        state, _ = await run_step(debate, before, recording)
    except _DifferentPath as other:
        what = f"{other} follows instead of {', '.join(before.next) or 'the end'}"
        return Difference(before.round, before.nodes, what)
    except NotRecorded as unknown:
        what = f"another prompt than the recorded one is sent for {unknown.asked}"
        return Difference(after.round, after.nodes, what)
    except ModelFailed as failed:
        return Difference(after.round, after.nodes, f"the step fails: {failed}")
    what = _first_difference(after.state, state)
    return Difference(after.round, after.nodes, what) if what else None


def _first_difference(old: DebateState, new: DebateState) -> str:
    kept = [
        {name: value for name, value in each.items() if name not in _NOT_COMPARED}
        for each in (old, new)
    ]
    return _difference(*map(to_jsonable_python, kept))


def _difference(old: Any, new: Any, path: str = "") -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        names = sorted((old.keys() | new.keys()) - _TIMES)
        pairs = [(old.get(name), new.get(name), f"{path}.{name}") for name in names]
    elif isinstance(old, list) and isinstance(new, list):
        pairs = [(*pair, f"{path}[{at}]") for at, pair in enumerate(zip_longest(old, new))]
    else:
        where = path.removeprefix(".")
        return "" if old == new else f"{where} was {old!r:.200} and is now {new!r:.200}"
    return next(filter(None, (_difference(*pair) for pair in pairs)), "")
