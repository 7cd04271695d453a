"""Creates debate records for other programs' threads in our database."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

from langgraph.types import StateSnapshot

from contend.debates.checkpoint_threads import UnreadThread
from contend.debates.family import Origin
from contend.debates.history import Graph, HistoryStep, graph_of, read_history
from contend.debates.loading import UNREADABLE
from contend.debates.record import RAN_ON, StoredDebate, settings_in
from contend.debates.repository import DebateExists, Repository
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.record import Status
from contend.graph.settings import SETTINGS
from contend.graph.state import DebateState
from contend.models.failures import scrub
from contend.models.seats import is_demonstration

_log = logging.getLogger("contend.debates")


async def adopt_new_threads(records: Repository) -> None:
    threads = await asyncio.to_thread(records.threads.unread)
    if threads:
        await adopt_threads(records, threads)


async def adopt_threads(records: Repository, threads: Sequence[UnreadThread]) -> None:
    """Write a record of each thread's current state; log and skip unreadable threads."""
    async with checkpointer() as saver:
        for each in threads:
            try:
                await _adopt_thread(records, graph_of(each.protocol, saver), each)
            except (*UNREADABLE, LookupError) as error:
                why = scrub(f"{type(error).__name__}: {error}")
                _log.warning("Thread %s cannot be read as a debate: %s", each.id, why)
                records.threads.skip_unreadable(each)


async def _adopt_thread(records: Repository, graph: Graph, thread: UnreadThread) -> None:
    begun = (await read_history(graph, thread.id))[0].at
    snapshot = await graph.aget_state(_config(thread.id))
    state = _with_settings(thread.protocol, cast("DebateState", snapshot.values))
    if "retrieval" not in state:  # the debate has not begun
        return
    about = records, thread.protocol, thread.id, state, thread.ran_on
    await asyncio.to_thread(adopt, *about)
    await write_origin_of_copy(records, graph, thread.id)
    status = _status(snapshot)
    await asyncio.to_thread(records.threads.write_record, thread, begun, status, state)


def _with_settings(protocol: str, state: DebateState) -> DebateState:
    if state.get("settings"):
        return state
    models = {seat.id: seat.model for seat in state["seats"]}
    settings = SETTINGS[protocol]().with_models(models)
    return {**state, "settings": settings.model_dump(mode="json")}


def _status(snapshot: StateSnapshot) -> Status:
    if not snapshot.next:
        return "done"
    # Shown as interrupted unless a process holds the lease.
    return "paused" if snapshot.interrupts else "running"


def adopt(
    records: Repository,
    protocol: str,
    debate_id: str,
    state: DebateState,
    where: str,
) -> StoredDebate:
    settings = {**settings_in(state, protocol), RAN_ON: where}
    is_demo = is_demonstration(state["seats"])
    with suppress(DebateExists):  # another process has just adopted it
        records.start(debate_id, protocol, state, settings, demonstration=is_demo)
    return records.find(debate_id)


async def write_origin_of_copy(records: Repository, graph: Graph, thread: str) -> None:
    original = await asyncio.to_thread(records.threads.find_original, thread)
    if original is None:
        return
    parent, shared = original
    steps = [step for step in await read_history(graph, thread) if step.checkpoint in shared]
    if steps:
        origin = Origin(parent, steps[-1].round, _last_node(steps))
        await asyncio.to_thread(records.threads.write_origin, thread, origin)


def _last_node(steps: Sequence[HistoryStep]) -> str:
    return next((step.nodes[0] for step in reversed(steps) if step.is_of_node), steps[-1].nodes[0])


def _config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}
