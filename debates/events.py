"""Events as viewers receive them: numbered and dated."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from contend.graph.events import EventName, NodeEvent, node_event

if TYPE_CHECKING:
    from contend.debates.record import StoredDebate


class Event(TypedDict):
    """One event of one debate; `seq` only increases."""

    type: Literal["debate_event"]
    v: Literal[1]
    debate_id: str
    seq: int
    ts: str
    event: EventName
    round: int | None
    content: str
    metadata: dict[str, Any]


Watch = Callable[[Event], None]


class Announcer:
    def __init__(self, debate_id: str, watch: Watch, last_seq: int = 0) -> None:
        self.debate_id, self.watch, self.seq = debate_id, watch, last_seq

    def number(self, said: NodeEvent) -> Event:
        """Return the event with the next sequence number and the current time."""
        self.seq += 1
        return {
            "type": "debate_event",
            "v": 1,
            "debate_id": self.debate_id,
            "seq": self.seq,
            "ts": datetime.now(UTC).isoformat(),
            **said,
        }

    def pass_on(self, said: NodeEvent) -> None:
        self.watch(self.number(said))

    def say(
        self, event: EventName, round_number: int | None = None, content: str = "", **metadata: Any
    ) -> None:
        self.pass_on(node_event(event, round_number, content, **metadata))


def start_event(debate: "StoredDebate") -> NodeEvent:
    state = debate.as_state()
    return node_event(
        "debate_start",
        None,
        debate.question,
        protocol=debate.protocol,
        seats=[seat.model_dump() for seat in state["seats"]],
        settings=debate.settings,
        demonstration=debate.demonstration,
        documents=[each.model_dump() for each in state.get("documents", [])],
        images=[each.name for each in state.get("images", [])],
    )
