"""Runs a debate: LangGraph's stream becomes events, and every step is written to the record."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import Any, cast
from uuid import uuid4

from langgraph.errors import GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl
from langgraph.types import Command, StateSnapshot

from debates.events import Announcer, Watch
from debates.records import LEASE, Debate, Lease, LeaseLost, Records, Status
from graph.checkpoints import checkpointer, database_path
from graph.errors import BadInput, ModelFailed, Paused
from graph.events import EventName
from graph.settings import SETTINGS, DebateSettings
from graph.state import DebateState, Remark
from models.failures import scrub
from models.providers import open_models
from models.seating import Seating, is_demonstration
from nodes.judge_continue import human_turn

Graph = CompiledStateGraph[Any, Any, Any, Any]

_RESERVED_EVENTS = 1_000_000


def open_records() -> Records:
    """The repository on the user's database."""
    return Records(database_path())


def write_debate(
    records: Records, question: str, settings: DebateSettings, seating: Seating
) -> Debate:
    """Write the record of a new debate whose models and question were checked before."""
    debate_id = str(uuid4())
    # The chosen models become named ones: a resumed debate must not choose again.
    chosen = {f"{seat.id}_model": seat.model for seat in seating.seats}
    records.start(
        debate_id,
        settings.protocol,
        {"question": question, "seats": seating.seats},
        settings.model_copy(update=chosen).model_dump(mode="json"),
        demonstration=is_demonstration(seating.seats),
    )
    return records.find(debate_id)


async def run_debate(
    records: Records,
    debate: Debate,
    watch: Watch,
    control: RunControl,
    remark: Remark | None = None,
) -> Debate:
    """Run a debate, new or stopped, until it is done, pauses or fails; the record says which."""
    async with _leased(records, debate.id) as lease, checkpointer() as saver, open_models():
        # Read again: whoever had the lease before may have gone on with the debate.
        current = await asyncio.to_thread(records.find, debate.id)
        if current.status == "done":
            raise BadInput(f"Debate {debate.id} is done; `contend show {debate.id[:8]}` prints it.")
        builder = import_module(f"graph.{current.protocol}").builder
        graph: Graph = builder.compile(checkpointer=saver, name=current.protocol)
        await _Run(records, lease, current, graph, watch, control).go(remark or Remark())
    return await asyncio.to_thread(records.find, debate.id)


class _Run:
    """One stretch of a debate, from a start or resume to the next stop."""

    def __init__(
        self,
        records: Records,
        lease: Lease,
        debate: Debate,
        graph: Graph,
        watch: Watch,
        control: RunControl,
    ) -> None:
        self.records, self.lease, self.debate, self.graph = records, lease, debate, graph
        self.announcer, self.control = Announcer(debate.id, watch, debate.last_seq), control
        self.settings = _stored_settings(debate)
        self.state: DebateState = debate.as_state()
        self.config: Any = {
            "configurable": {"thread_id": debate.id},
            "recursion_limit": self.settings.max_steps,
        }
        self._saving: asyncio.Task[None] | None = None
        # Written ahead, so that no number is given twice after a crash.
        self._reserved = debate.last_seq + _RESERVED_EVENTS

    async def go(self, remark: Remark) -> None:
        """Run and close with the event and status that fit how it ended."""
        given = await self._input(remark)  # a remark refused here leaves the debate as it was
        await self._save("running")
        try:
            interrupted = await self._stream(given)
        except LeaseLost:
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
            return {"question": self.debate.question, "seats": self.state["seats"]}
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

    async def _close(self, status: Status, event: EventName, content: str, **metadata: Any) -> None:
        self._reserved = self.announcer.seq + 1
        await self._save(status, content if status == "failed" else None)
        await self._saved()
        self.announcer.say(event, self.state.get("round"), content, **metadata)

    async def _save(self, status: Status, error: str | None = None) -> None:
        """Write the record beside the next step: the checkpoint is what a crash resumes from."""
        await self._saved()
        writing = asyncio.to_thread(
            self.records.save, self.lease, status, self.state, self._reserved, error
        )
        self._saving = asyncio.create_task(writing)

    async def _saved(self) -> None:
        """Wait for the last write, which a cancelled run must not take along."""
        if self._saving:
            await asyncio.shield(self._saving)
            self._saving = None


def _refuse_unheard(remark: Remark, snapshot: StateSnapshot) -> None:
    """Refuse what nobody would hear: no speaker is left, none has begun, or none is asking."""
    if remark.finish:
        raise BadInput(
            "The debate is not waiting for you, so it cannot be told to finish; resume it "
            "without --finish, or start debates with --pause each_round."
        )
    if remark.say and not (snapshot.created_at and snapshot.next):
        raise BadInput("No speaker would hear your words now; resume the debate without --say.")


def _stored_settings(debate: Debate) -> DebateSettings:
    """The settings a debate was begun with; what a later release no longer knows is left out."""
    model = SETTINGS[debate.protocol]
    known = {name: debate.settings[name] for name in model.model_fields if name in debate.settings}
    return model.model_validate(known)


@asynccontextmanager
async def _leased(records: Records, debate_id: str) -> AsyncIterator[Lease]:
    """Hold the lease, renewed in the background; losing it ends the run: another has taken over."""
    lease = await asyncio.to_thread(records.acquire, debate_id)
    runner = asyncio.current_task()

    async def renew() -> None:
        kept = True
        while kept:
            await asyncio.sleep(LEASE.total_seconds() / 4)
            kept = await asyncio.to_thread(lease.renew)
        if runner:
            runner.cancel("another process took this debate over")

    renewing = asyncio.create_task(renew())
    try:
        yield lease
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
        await asyncio.to_thread(lease.release)
