from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from typing_extensions import TypedDict

from contend.graph.events import EventName, NodeEvent, node_event, turn_event
from contend.graph.state import Turn

if TYPE_CHECKING:
    from contend.debates.record import StoredDebate


class Event(TypedDict):
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

# The last event of a debate that is over, by the debate's status.
END_EVENTS: Mapping[str, EventName] = {"done": "complete", "failed": "error"}


def number_event(debate_id: str, seq: int, said: NodeEvent) -> Event:
    now = datetime.now(UTC).isoformat()
    return {"type": "debate_event", "v": 1, "debate_id": debate_id, "seq": seq, "ts": now, **said}


class Announcer:
    def __init__(self, debate_id: str, watch: Watch, last_seq: int = 0) -> None:
        self.debate_id, self.watch, self.seq = debate_id, watch, last_seq

    def number(self, said: NodeEvent) -> Event:
        self.seq += 1
        return number_event(self.debate_id, self.seq, said)

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


def end_event(debate: "StoredDebate") -> NodeEvent:
    name = END_EVENTS.get(debate.status, "paused")
    content = {"done": debate.state.get("final_answer", ""), "failed": debate.error or ""}
    about = answer_writer(debate.turns) if debate.status == "done" else {}
    return node_event(name, debate.state.get("round"), content.get(debate.status, ""), **about)


def answer_writer(turns: Sequence[Turn]) -> dict[str, str]:
    written = [turn for turn in turns if turn.phase == "synthesize"]
    return {"model": written[-1].model, "role": written[-1].role} if written else {}


def events_of_record(debate: "StoredDebate") -> list[Event]:
    """Rebuild the main events of a debate that an old release stored without events."""
    events: list[Event] = []
    announcer = Announcer(debate.id, events.append)
    for said in (start_event(debate), *map(turn_event, debate.turns), end_event(debate)):
        announcer.pass_on(said)
    return events
