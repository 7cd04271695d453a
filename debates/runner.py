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
from debates.records import LEASE, Debate, Lease, Records
from graph.checkpoints import checkpointer, database_path
from graph.errors import BadInput, ModelFailed, Paused
from graph.settings import SETTINGS, DebateSettings
from graph.state import DebateState, Remark
from models.failures import scrub
from models.providers import close_models
from models.seating import Seating, is_demonstration, preflight
from models.text import clean
from nodes.judge_continue import human_turn

Graph = CompiledStateGraph[Any, Any, Any, Any]


def open_records() -> Records:
    """The repository on the user's database."""
    return Records(database_path())


async def open_debate(
    records: Records, question: str, settings: DebateSettings, seating: Seating
) -> Debate:
    """Check everything, then write the record of a new debate. Nothing is kept of a refused one."""
    await preflight(seating.seats, settings, question)
    return write_debate(records, question, settings, seating)


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
    if debate.status == "done":
        raise BadInput(f"Debate {debate.id} is done; `contend show {debate.id[:8]}` prints it.")
    with records.lease(debate.id) as lease:
        async with checkpointer() as saver, _kept_alive(lease):
            builder = import_module(f"graph.{debate.protocol}").builder
            graph: Graph = builder.compile(checkpointer=saver, name=debate.protocol)
            run = _Run(
                records, debate, graph, Announcer(debate.id, watch, debate.last_seq), control
            )
            try:
                await run.go(remark or Remark())
            finally:
                await close_models()
    return records.find(debate.id)


class _Run:
    """One stretch of a debate, from a start or resume to the next stop."""

    def __init__(
        self,
        records: Records,
        debate: Debate,
        graph: Graph,
        announcer: Announcer,
        control: RunControl,
    ) -> None:
        self.records, self.debate, self.graph = records, debate, graph
        self.announcer, self.control = announcer, control
        self._saving: asyncio.Task[None] | None = None
        self.settings = SETTINGS[debate.protocol].model_validate(debate.settings)
        self.state: DebateState = debate.as_state()
        self.config: Any = {
            "configurable": {"thread_id": debate.id},
            "recursion_limit": self.settings.max_steps,
        }

    async def go(self, remark: Remark) -> None:
        """Run and close with the event and status that fit how it ended."""
        given = await self._input(remark)  # a remark refused here leaves the debate as it was
        try:
            interrupted = await self._stream(given)
        except (GraphDrained, Paused, asyncio.CancelledError) as stopped:
            await self._close("paused", "paused", "stopped by the user")
            if isinstance(stopped, asyncio.CancelledError):
                raise
        except ModelFailed as failed:
            why = scrub(str(failed))
            await self._close(
                "failed", "error", why, seat=failed.seat, model=failed.model, kind=failed.kind
            )
        except Exception as error:
            why = scrub(f"{type(error).__name__}: {error}")
            await self._close("failed", "error", why)
            raise
        else:
            if interrupted:
                await self._close("paused", "paused", "waiting for a person", ask=interrupted)
            else:
                await self._close("done", "complete", self.state.get("final_answer", ""))

    async def _input(self, remark: Remark) -> DebateState | Command[Any] | None:
        """What to feed the graph: the question once, an answer at a pause, otherwise nothing."""
        snapshot = await self.graph.aget_state(self.config)
        if not snapshot.created_at:
            self._start()
            return {"question": self.debate.question, "seats": self.state["seats"]}
        self.state = cast("DebateState", snapshot.values)
        self.announcer.say("resumed", self.state.get("round"))
        if snapshot.interrupts:
            return Command(resume=remark.model_dump() | {"say": clean(remark.say)})
        await self._add(remark, snapshot)
        return None

    def _start(self) -> None:
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

    async def _add(self, remark: Remark, snapshot: StateSnapshot) -> None:
        """Put a person's words into a debate that stopped between two steps."""
        if remark.finish:
            raise BadInput(
                "The debate is not waiting for you, so it cannot be told to finish; resume it "
                "without --finish, or start debates with --pause each_round."
            )
        if remark.say and snapshot.next:
            turn = human_turn(self.state, clean(remark.say))
            last = await self._last_node()
            await self.graph.aupdate_state(self.config, {"turns": [turn]}, as_node=last)

    async def _last_node(self) -> str:
        """The node whose outgoing edge is pending; writing as it takes that same edge again."""
        history = [step async for step in self.graph.aget_state_history(self.config, limit=2)]
        return history[1].next[0] if len(history) > 1 and history[1].next else "__start__"

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

    async def _close(self, status: Any, event: Any, content: str, **metadata: Any) -> None:
        self.announcer.say(event, self.state.get("round"), content, **metadata)
        await self._save(status, content if status == "failed" else None)
        await self._saved()

    async def _save(self, status: Any, error: str | None = None) -> None:
        """Write the record beside the next step: the checkpoint is what a crash resumes from."""
        await self._saved()
        seq, state = self.announcer.seq, self.state
        writing = asyncio.to_thread(self.records.save, self.debate.id, status, state, seq, error)
        self._saving = asyncio.create_task(writing)

    async def _saved(self) -> None:
        if self._saving:
            await self._saving


@asynccontextmanager
async def _kept_alive(lease: Lease) -> AsyncIterator[None]:
    """Renew the lease in the background; losing it ends the run, for another has taken over."""
    runner = asyncio.current_task()

    async def renew() -> None:
        while True:
            await asyncio.sleep(LEASE.total_seconds() / 4)
            if not await asyncio.to_thread(lease.renew) and runner:
                runner.cancel("another process took this debate over")

    renewing = asyncio.create_task(renew())
    try:
        yield
    finally:
        renewing.cancel()
        with suppress(asyncio.CancelledError):
            await renewing
