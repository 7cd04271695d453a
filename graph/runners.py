"""Manages leases and records of debates that a LangGraph server runs."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

from contend.graph.state import DebateState

# The key in a run's metadata for the lease owner that keeps the record instead of the server.
RECORDED_BY = "recorded_by"


class Runner(Protocol):
    def hold_lease(self, graph: Any, config: Any) -> AbstractAsyncContextManager[None]:
        """Hold the lease of a thread's debate. Raise BadInput if another process holds it."""

    async def save_state(self, protocol: str, debate_id: str, state: DebateState) -> None:
        """Save the state that a node starts from."""

    def recorded_settings(self, debate_id: str) -> DebateState:
        """Return a running debate's recorded protocol and settings, or an empty state."""


_runner: Runner | None = None


def set_runner(runner: Runner | None) -> None:
    global _runner  # noqa: PLW0603 - a server loads its graphs and its app separately
    _runner = runner


def is_same_run(snapshot: Any, config: Any) -> bool:
    """Return whether this run wrote the checkpoint, for example before a crash."""
    given = {**config.get("configurable", {}), **config.get("metadata", {})}
    run = given.get("run_id")
    return run is not None and str(run) == str((snapshot.metadata or {}).get("run_id"))


def hold_lease(graph: Any, config: Any) -> AbstractAsyncContextManager[None]:
    return _runner.hold_lease(graph, config) if _runner else nullcontext()


async def save_state(protocol: str, debate_id: str, state: DebateState) -> None:
    if _runner:
        await _runner.save_state(protocol, debate_id, state)


def recorded_settings(debate_id: str) -> DebateState:
    return _runner.recorded_settings(debate_id) if _runner else {}
