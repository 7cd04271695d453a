import asyncio
from dataclasses import dataclass, field

from langgraph.runtime import RunControl

from contend.debates.events import Event
from contend.debates.leases import LeaseLost
from contend.debates.record import StoredDebate
from contend.debates.remarks import join_remarks
from contend.debates.server_graph import DETACHED, is_detached
from contend.graph.errors import BadInput, DamagedDebate, DatabaseUnavailable
from contend.graph.settings import DebateSettings
from contend.graph.state import Remark
from contend.service.errors import (
    Refused,
    damaged_debate,
    database_unavailable,
    unexpected_error,
    without_options,
)

PAUSED = "paused by a user"


@dataclass(eq=False)
class Run:
    debate: StoredDebate
    client: str = ""
    """The client that started or resumed the run; empty if the service did."""
    control: RunControl = field(default_factory=RunControl)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[StoredDebate | None]" = field(init=False)
    remark: Remark | None = None
    """A comment made during the current turn, to be used when the debate continues."""
    is_paused: bool = False
    """Whether a user paused the run, which then stops after the current turn."""
    last_seq: int | None = None
    """The number of the newest event; None until the debate starts or continues."""
    failure: Exception | None = None
    settings: DebateSettings | None = None
    """Settings that replace the debate's own."""
    listeners: "set[asyncio.Queue[Event | None]]" = field(default_factory=set)
    """Queues that receive each event, and None when the run ends."""

    async def wait_for_start(self) -> None:
        begun = asyncio.create_task(self.begun.wait())
        await asyncio.wait({self.task, begun}, return_when=asyncio.FIRST_COMPLETED)
        begun.cancel()
        if not self.begun.is_set():
            raise self._refusal()

    def _refusal(self) -> Refused:
        about = {"debate_id": self.debate.id}
        match self.failure:
            case BadInput() | LeaseLost():
                return Refused(409, "not_possible", without_options(str(self.failure)), **about)
            case DamagedDebate():
                return damaged_debate(self.debate.id)
            case None | DatabaseUnavailable():  # without an exception, an outage paused it
                return database_unavailable(self.debate.id)
            case _:
                return unexpected_error(self.debate.id)

    def observe(self, event: Event) -> None:
        self.last_seq = event["seq"]
        if event["event"] != "paused":  # an outage can pause it before it starts
            self.begun.set()
        for listener in self.listeners:
            listener.put_nowait(event)

    @property
    def is_detached(self) -> bool:
        return is_detached(self.control)

    def stop(self, reason: str) -> None:
        """Stop after the current turn. A debate on a server goes on unless it is being paused."""
        if self.debate.server and not self.control.drain_requested:
            self.control.request_drain(DETACHED)
            self.task.cancel()
        else:
            self.control.request_drain(reason)

    def pause(self) -> None:
        """Stop after the current turn. Earlier comments are kept until the debate is resumed."""
        self.is_paused = True
        self.control.request_drain(PAUSED)

    def add_remark(self, remark: Remark) -> None:
        self.remark = join_remarks(self.remark or Remark(), remark)
        self.is_paused = False
        self.control.request_drain("a user has something to say")
