"""Runs a debate: LangGraph's stream becomes events, and every step is written to the record."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any, cast

from langgraph.errors import GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from contend.debates.events import Announcer, Watch
from contend.debates.exports.folder import FolderState, FolderWriter
from contend.debates.leases import LEASE, Lease, LeaseLost
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.checkpoints.outages import retry_until_available
from contend.graph.checkpoints.saver import checkpointer, database
from contend.graph.errors import BadInput, DatabaseUnavailable, ModelFailed, Paused
from contend.graph.events import EventName
from contend.graph.protocols.base import strategy_for
from contend.graph.record import Status
from contend.graph.state import DebateState, Remark
from contend.graph.values import Degradation
from contend.models.failures import scrub
from contend.models.providers.registry import open_models
from contend.nodes.judge_continue import human_turn
from contend.nodes.store import build_record

Graph = CompiledStateGraph[Any, Any, Any, Any]

_How = Callable[[Callable[[], Awaitable[None]]], Coroutine[Any, Any, None]]

_RESERVED_EVENTS = 1_000_000


def open_repository() -> Repository:
    """The repository on the user's database."""
    return Repository(database())


async def run_debate(
    records: Repository,
    debate: StoredDebate,
    watch: Watch,
    control: RunControl,
    remark: Remark | None = None,
) -> StoredDebate:
    """Run a debate, new or stopped, until it is done, pauses or fails; the record says which."""
    run: _Run | None = None
    try:
        async with _leased(records, debate.id) as lease, checkpointer() as saver, open_models():
            # Read again: whoever had the lease before may have gone on with the debate.
            current = await asyncio.to_thread(records.find, debate.id)
            if current.status == "done":
                done = f"Debate {debate.id} is done; `contend show {debate.id[:8]}` prints it."
                raise BadInput(done)
            builder = import_module(f"contend.graph.{current.protocol}").builder
            graph: Graph = builder.compile(checkpointer=saver, name=current.protocol)
            run = _Run(records, lease, current, graph, watch, control)
            await run.go(remark or Remark())
        return await asyncio.to_thread(records.find, debate.id)
    except DatabaseUnavailable as away:
        if run is None:
            raise
        return run.left_by(away)


class _Run:
    """One stretch of a debate, from a start or resume to the next stop."""

    def __init__(
        self,
        records: Repository,
        lease: Lease,
        debate: StoredDebate,
        graph: Graph,
        watch: Watch,
        control: RunControl,
    ) -> None:
        self.records, self.lease, self.debate, self.graph = records, lease, debate, graph
        self.announcer, self.control = Announcer(debate.id, watch, debate.last_seq), control
        self.settings = debate.as_settings()
        self.state: DebateState = debate.as_state()
        self.config: Any = {
            "configurable": {"thread_id": debate.id},
            "recursion_limit": strategy_for(self.settings).max_steps,
        }
        self._scribe, self._told_trouble = FolderWriter(debate, self.settings), False
        self._saving: asyncio.Task[None] | None = None
        self._status: Status = "running"
        self._error: str | None = None
        # Written ahead, so that no number is given twice after a crash.
        self._reserved = debate.last_seq + _RESERVED_EVENTS

    async def go(self, remark: Remark) -> None:
        """Run and close with the event and status that fit how it ended."""
        given = await self._input(remark)  # a remark refused here leaves the debate as it was
        await self._save("running")
        try:
            interrupted = await self._stream(given)
        except (LeaseLost, DatabaseUnavailable):
            raise
        except (GraphDrained, Paused, asyncio.CancelledError) as stopped:
            await self._close("paused", "paused", "stopped by the user")
            if isinstance(stopped, asyncio.CancelledError):
                raise
        except ModelFailed as failed:
            self.state["degraded"] = [*self.state.get("degraded", []), *failed.degraded]
            who = {"seat": failed.seat, "model": failed.model, "kind": failed.kind}
            await self._close("failed", "error", scrub(str(failed)), **who)
        except Exception as error:
            await self._close("failed", "error", scrub(f"{type(error).__name__}: {error}"))
            raise
        else:
            if interrupted:
                await self._close("paused", "paused", "waiting for a person", ask=interrupted)
            else:
                await self._close("done", "complete", self.state.get("final_answer", ""))

    async def _input(self, remark: Remark) -> DebateState | Command[Any] | None:
        """What to feed the graph: the question once, an answer at a pause, else what was added."""
        snapshot = await self.graph.aget_state(self.config)
        if not snapshot.interrupts:
            _refuse_unheard(remark, snapshot)
        if not snapshot.created_at:
            self._announce_start()
            return {**self.state}
        recorded, self.state = self.state, cast("DebateState", snapshot.values)
        self.announcer.say("resumed", self.state.get("round"))
        if snapshot.interrupts:
            return Command(resume=remark.model_dump())
        # As the command of a run, not written from outside: what the step in hand has already
        # paid for stays with it.
        update: dict[str, Any] = {}
        if remark.say:
            update["turns"] = [human_turn(self.state, remark.say)]
        unkept = recorded.get("degraded", [])[len(self.state.get("degraded", [])) :]
        if unkept:
            update["degraded"] = unkept
        return Command(update=update) if update else None

    def _announce_start(self) -> None:
        seats = [seat.model_dump() for seat in self.state["seats"]]
        self.announcer.say(
            "debate_start",
            None,
            self.debate.question,
            protocol=self.debate.protocol,
            seats=seats,
            settings=self.debate.settings,
            demonstration=self.debate.demonstration,
            documents=[each.model_dump() for each in self.state.get("documents", [])],
            images=[each.name for each in self.state.get("images", [])],
        )

    async def _stream(self, given: DebateState | Command[Any] | None) -> Any:
        """Pass events on and save every step; gives what a pause asks, if it ends in one."""
        interrupted: Any = None
        async for part in self.graph.astream(
            given,
            self.config,
            context=self.settings,
            stream_mode=["custom", "values"],
            durability="sync",
            control=self.control,
            version="v2",
        ):
            if part["type"] == "custom":
                self.announcer.pass_on(part["data"])
            elif part["type"] == "values":
                self.state = cast("DebateState", part["data"])
                interrupted = part["interrupts"][0].value if part["interrupts"] else None
                await self._save("running")
        return interrupted

    def left_by(self, away: DatabaseUnavailable) -> StoredDebate:
        """The debate as it stands in memory, when the database cannot be asked for it any more."""
        if self._status == "running":
            self._status, self._error = "paused", str(away)
            self.announcer.say("paused", self.state.get("round"), str(away))
        return self.debate.with_state(self._status, self.state, self._error)

    async def _close(self, status: Status, event: EventName, content: str, **metadata: Any) -> None:
        await self._saved()
        error = content if status == "failed" else None
        # Before the record, so that what befell the folder stands in it.
        await asyncio.to_thread(self._scribe.write, self._standing(status, error, self.state))
        self._tell_trouble()
        self._reserved = self.announcer.seq + 1
        self._start_saving(retry_until_available, status, error)
        await self._saved()
        self._status, self._error = status, error
        self.announcer.say(event, self.state.get("round"), content, **metadata)

    async def _save(self, status: Status) -> None:
        """Write the record beside the next step: the checkpoint is what a crash resumes from."""
        await self._saved()
        self._start_saving(_if_possible, status)

    def _start_saving(self, how: _How, status: Status, error: str | None = None) -> None:
        write = partial(asyncio.to_thread, self._write, status, self.state, self._reserved, error)
        self._saving = asyncio.create_task(how(write))

    def _write(self, status: Status, state: DebateState, last_seq: int, error: str | None) -> None:
        self.records.save(self.lease, status, state, last_seq, error)
        self._scribe.write(self._standing(status, error, state))

    def _standing(self, status: Status, error: str | None, state: DebateState) -> FolderState:
        return FolderState(status, error, state, self.debate.user_rating)

    def _tell_trouble(self) -> None:
        """Say once that the folder cannot be written; the debate goes on without."""
        if self._scribe.trouble and not self._told_trouble:
            self._told_trouble = True
            what = {"what": "folder_incomplete", "seat": None, "restart": False}
            self.announcer.say("degraded", None, self._scribe.trouble, **what)
            told = Degradation(what="folder_incomplete", why=self._scribe.trouble)
            self.state["degraded"] = [*self.state.get("degraded", []), told]
            if "trace" in self.state:
                self.state["trace"] = build_record(self.state, self.debate.id).as_json()

    async def _saved(self) -> None:
        """Wait for the last write, which a cancelled run must not take along."""
        if self._saving:
            await asyncio.shield(self._saving)
            self._saving = None


async def _if_possible(write: Callable[[], Awaitable[None]]) -> None:
    """Write, or leave it to the next write: that brings the record up to date all the same."""
    with suppress(DatabaseUnavailable):
        await write()


def _refuse_unheard(remark: Remark, snapshot: StateSnapshot) -> None:
    """Refuse what nobody would hear: no speaker is left, none has begun, or none is asking."""
    if remark.finish:
        raise BadInput(
            "The debate is not waiting for you, so it cannot be told to finish; resume it "
            "without --finish, or start debates with --pause each_round."
        )
    if remark.say and not (snapshot.created_at and snapshot.next):
        raise BadInput("No speaker would hear your words now; resume the debate without --say.")


@asynccontextmanager
async def _leased(records: Repository, debate_id: str) -> AsyncIterator[Lease]:
    """Hold the lease, renewed in the background; losing it ends the run: another has taken over."""
    lease = await asyncio.to_thread(records.acquire, debate_id)
    runner, ended = asyncio.current_task(), asyncio.Event()

    async def renew() -> None:
        while not await wait_for_event(LEASE.total_seconds() / 4, ended):
            if not await asyncio.to_thread(lease.renew) and not ended.is_set() and runner:
                runner.cancel("another process took this debate over")
                return

    renewing = asyncio.create_task(renew())
    try:
        yield lease
    finally:
        # Not cancelled: a renewal under way would be left behind with its connection.
        ended.set()
        try:
            await renewing
        finally:
            with suppress(DatabaseUnavailable):  # it will run out
                await asyncio.to_thread(lease.release)


async def wait_for_event(seconds: float, event: asyncio.Event) -> bool:
    """Wait for an event, but not for long."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()
