"""Lets a server that runs the graphs itself hold the leases and keep the records of its debates."""

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

from contend.graph.state import DebateState

# In a run's metadata: who keeps its record, unless the server does. It is the owner of a lease.
RECORDED_BY = "recorded_by"


class Runner(Protocol):
    def holding(self, graph: Any, config: Any) -> AbstractAsyncContextManager[None]:
        """Hold the debate of a thread while it runs, or raise BadInput if another process does."""

    async def keep(self, protocol: str, debate_id: str, state: DebateState) -> None:
        """Keep the state with which a node begins."""

    def recorded(self, debate_id: str) -> DebateState:
        """Return the protocol and settings in the record of a running debate, if it has one."""


_runner: Runner | None = None


def run_by(runner: Runner | None) -> None:
    """Let this runner hold every debate that this process runs from now on."""
    global _runner  # noqa: PLW0603 - a server loads its graphs and its app separately
    _runner = runner


def is_same_run(snapshot: Any, config: Any) -> bool:
    """Return whether this run wrote the checkpoint, before the worker that ran it crashed."""
    given = {**config.get("configurable", {}), **config.get("metadata", {})}
    run = given.get("run_id")
    return run is not None and str(run) == str((snapshot.metadata or {}).get("run_id"))


def holding(graph: Any, config: Any) -> AbstractAsyncContextManager[None]:
    return _runner.holding(graph, config) if _runner else nullcontext()


async def keep(protocol: str, debate_id: str, state: DebateState) -> None:
    if _runner:
        await _runner.keep(protocol, debate_id, state)


def recorded(debate_id: str) -> DebateState:
    return _runner.recorded(debate_id) if _runner else {}
