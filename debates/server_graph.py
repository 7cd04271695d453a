import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any, cast

from httpx import TransportError
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command, Interrupt, StateSnapshot
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError, NotFoundError
from pydantic import TypeAdapter

from contend.debates.history import opened_graph
from contend.debates.leases import Lease
from contend.debates.record import StoredDebate
from contend.debates.servers import (
    ServerAddress,
    ServerConnection,
    ServerLost,
    connected,
    text_of_error,
)
from contend.graph.errors import BUDGET, OUT_OF_BUDGET, BadInput, ModelFailed
from contend.graph.runners import RECORDED_BY
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState

_ACTIVE = ("pending", "running")
_MODES = ["custom", "values"]
_INTERRUPTED = "__interrupt__"
# Why a process stops that leaves its debate to the server.
DETACHED = "the debate continues on its server"
# No event has this id, and both kinds of servers then send all events of the run.
_BEFORE_ALL = "0"
# How long to wait before a stream without events is opened again; doubled each time.
_PAUSE, _LONGEST_PAUSE = 0.5, 8.0


class FailedOnServer(ModelFailed):
    def __init__(self, why: str) -> None:
        before, out_of_budget, after = why.partition(OUT_OF_BUDGET)
        if out_of_budget:  # the message begins with the seat and its model
            seat = before.rpartition(" (")[0]
            super().__init__(seat, "", BUDGET, out_of_budget + after)
        else:
            super().__init__("", "", "server", why)

    def __str__(self) -> str:
        return self.why


class _NoCheckpointer:
    """A checkpointer that finds no checkpoints, because only the server has them."""

    async def aget_tuple(self, _: Any) -> None:
        return None


class ServerGraph:
    """A debate on a server, with the graph methods that our runner needs."""

    checkpointer = _NoCheckpointer()

    def __init__(
        self, server: ServerConnection, protocol: str, debate_id: str, lease: Lease | None = None
    ) -> None:
        self._server, self._protocol = server, protocol
        self._thread, self._lease = debate_id, lease

    async def aget_state(self, _: object = None) -> StateSnapshot:
        try:
            state = await self._server.ask_about_run(
                lambda client: client.threads.get_state(self._thread)
            )
        except NotFoundError:
            state = cast("Any", {})
        interrupts = tuple(
            Interrupt(value=each["value"], id=each["id"])
            for task in state.get("tasks") or ()
            for each in task.get("interrupts") or ()
        )
        return StateSnapshot(
            values=read_state(state.get("values")),
            next=tuple(state.get("next") or ()),
            config={"configurable": {"thread_id": self._thread, **_checkpoint_of(state)}},
            metadata=None,
            created_at=state.get("created_at") if state.get("values") else None,
            parent_config=None,
            tasks=(),
            interrupts=interrupts,
        )

    async def astream(
        self,
        given: DebateState | Command[Any] | None,
        config: Mapping[str, Any],
        *,
        context: DebateSettings,
        control: RunControl,
        **_: Any,
    ) -> AsyncGenerator[dict[str, Any]]:
        snapshot = await self.aget_state()
        running = await self._active_run()
        if running and given is not None:
            await self._stop_after_step(running)
            running = None
        if running is None and given is None and snapshot.created_at and not snapshot.next:
            yield _values_part(snapshot.values, snapshot.interrupts)
            return
        seen = len(snapshot.values.get("turns", ())) if running else 0
        joined_at = _checkpoint_in(snapshot) if running else None
        if running is None:
            asked = context.model_dump(mode="json")
            running = await self.start(_run_payload(given), asked, config.get("recursion_limit"))
        async for part in self.follow(running, control, seen, joined_at):
            yield part

    async def start(
        self,
        what: dict[str, Any],
        context: dict[str, Any],
        recursion_limit: int | None = None,
        until: str | None = None,
    ) -> str:
        about = {RECORDED_BY: self._lease.owner} if self._lease else {}
        limit = {"recursion_limit": recursion_limit} if recursion_limit else {}
        is_repeated = False

        async def create(client: LangGraphClient) -> str:
            nonlocal is_repeated
            if is_repeated and (made := await self._find_our_run(client)):
                return made
            is_repeated = True
            run = await client.runs.create(
                self._thread,
                self._protocol,
                context=context,
                config=cast("Any", {"metadata": about, **limit}),
                stream_mode=cast("Any", _MODES),
                stream_resumable=True,
                durability="sync",
                multitask_strategy="reject",
                interrupt_after=[until] if until else None,
                **what,
            )
            return run["run_id"]

        return await self._server.ask_with_retries(create)

    async def _find_our_run(self, client: LangGraphClient) -> str | None:
        """Return the id of the run created by an earlier request whose response was lost."""
        runs = await client.runs.list(self._thread, limit=5)
        owner = self._lease.owner if self._lease else None
        return next((each["run_id"] for each in runs if _recorded_by(each) == owner), None)

    async def follow(
        self,
        run_id: str,
        control: RunControl | None = None,
        seen: int = 0,
        joined_at: str | None = None,
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield the run's events and states, starting with the first state that has `seen` turns.

        `joined_at` is the newest checkpoint of a run that was already in progress.
        """
        is_caught_up, failure = not seen, ("", "")
        try:
            async for event, data in self._parts(run_id):
                if event == "error":
                    failure = text_of_error(data)
                elif event == "custom" and is_caught_up:
                    yield {"type": "custom", "data": data}
                elif event == "values" and _INTERRUPTED not in data:
                    state = read_state(data)
                    is_caught_up = is_caught_up or len(state.get("turns", ())) >= seen
                    if is_caught_up:
                        yield _values_part(state, ())
                    if is_stopped(control) and await self._has_finished_step(joined_at):
                        await self._cancel(run_id)
        except asyncio.CancelledError:
            if not is_detached(control) and await self._is_ours():
                await self._cancel(run_id)
            raise
        await self._raise_failure(run_id, *failure)
        snapshot = await self.aget_state()
        yield _values_part(snapshot.values, snapshot.interrupts)
        # A run that stopped early without our request was stopped on the server.
        if snapshot.next and not snapshot.interrupts and (self._lease or control):
            raise GraphDrained((control and control.drain_reason) or "stopped on the server")

    async def _has_finished_step(self, since: str | None) -> bool:
        """Return whether `since` is None or no longer the newest checkpoint."""
        return since is None or _checkpoint_in(await self.aget_state()) != since

    async def _is_ours(self) -> bool:
        lease = self._lease
        return lease is not None and await asyncio.to_thread(lease.renew)

    async def _parts(self, run_id: str) -> AsyncIterator[tuple[str, Any]]:
        last, pause = _BEFORE_ALL, 0.0
        seen: set[tuple[str | None, str]] = set()  # a server may repeat what it has just sent
        while True:
            try:
                async for part in self._server.client.runs.join_stream(
                    self._thread, run_id, stream_mode=cast("Any", _MODES), last_event_id=last
                ):
                    last, known = part.id or last, (part.id, part.event)
                    if part.id and known in seen:
                        continue
                    seen.add(known)
                    pause = 0.0
                    yield part.event, part.data
            except (TransportError, APIStatusError) as error:
                self._server.excuse(error)
            if (await self._run(run_id))["status"] not in _ACTIVE:
                return
            self._server.try_next()
            await asyncio.sleep(pause)
            pause = min(2 * pause + _PAUSE, _LONGEST_PAUSE)

    async def _run(self, run_id: str) -> Any:
        try:
            return await self._server.ask_about_run(
                lambda client: client.runs.get(self._thread, run_id)
            )
        except NotFoundError as unknown:
            raise ServerLost("The server does not know this run of the debate.") from unknown

    async def _active_run(self) -> str | None:
        try:
            runs = await self._server.ask_about_run(
                lambda client: client.runs.list(self._thread, limit=5)
            )
        except NotFoundError:
            return None
        return next((each["run_id"] for each in runs if each["status"] in _ACTIVE), None)

    async def is_in_use(self) -> bool:
        """Return whether a run is active or the debate already has turns."""
        return bool(await self._active_run() or (await self.aget_state()).values.get("turns"))

    async def delete(self) -> None:
        if running := await self._active_run():
            await self._cancel(running)
        await self._server.ask(lambda client: client.threads.delete(self._thread))

    async def _stop_after_step(self, run_id: str) -> None:
        control = RunControl()
        control.request_drain("a person has something to say")
        joined_at = _checkpoint_in(await self.aget_state())
        with suppress(GraphDrained):
            async for _ in self.follow(run_id, control, joined_at=joined_at):
                pass

    async def _cancel(self, run_id: str) -> None:
        with suppress(NotFoundError):
            await self._server.ask_about_run(
                lambda client: client.runs.cancel(self._thread, run_id, wait=True)
            )

    async def _raise_failure(self, run_id: str, kind: str, message: str) -> None:
        run = await self._run(run_id)
        if run["status"] not in ("error", "timeout"):
            return
        why = run.get("error_message") or message or "the run failed"
        if kind == BadInput.__name__:
            raise BadInput(why)
        raise FailedOnServer(why)


def is_detached(control: RunControl | None) -> bool:
    return control is not None and control.drain_reason == DETACHED


def is_stopped(control: RunControl | None) -> bool:
    return control is not None and control.drain_requested and not is_detached(control)


def read_state(values: Any) -> DebateState:
    """Parse a state from JSON, ignoring unknown fields."""
    known = {name: values[name] for name in values or () if name in DebateState.__annotations__}
    return _adapter().validate_python(known)


@cache
def _adapter() -> TypeAdapter[DebateState]:
    return TypeAdapter(DebateState)


def _recorded_by(run: Any) -> str | None:
    # Aegra keeps a run's config, and `langgraph dev` its metadata.
    kept = (run.get("config") or {}).get("metadata") or run.get("metadata") or {}
    return kept.get(RECORDED_BY)


def _checkpoint_of(state: Any) -> dict[str, str]:
    found = (state.get("checkpoint") or {}).get("checkpoint_id")
    return {"checkpoint_id": found} if found else {}


def _checkpoint_in(snapshot: StateSnapshot) -> str | None:
    return snapshot.config["configurable"].get("checkpoint_id")


def _values_part(state: Any, interrupts: tuple[Interrupt, ...]) -> dict[str, Any]:
    return {"type": "values", "data": state, "interrupts": interrupts}


def _run_payload(given: DebateState | Command[Any] | None) -> dict[str, Any]:
    if given is None:  # an empty checkpoint means the newest one
        return {"checkpoint": {}}
    if isinstance(given, Command):
        named = {"resume": given.resume, "update": given.update, "goto": given.goto}
        return {"command": _as_json({key: value for key, value in named.items() if value})}
    return {"input": _as_json(given)}


def _as_json(value: Any) -> Any:
    return TypeAdapter(Any).dump_python(value, mode="json")


@asynccontextmanager
async def graph_for(debate: StoredDebate, lease: Lease) -> AsyncIterator[Any]:
    if debate.server is None:
        async with opened_graph(debate) as graph:
            yield graph
        return
    async with connected(ServerAddress(debate.server)) as server:
        yield ServerGraph(server, debate.protocol, debate.id, lease)
