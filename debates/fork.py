import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast
from uuid import uuid4

from langgraph.graph import START

from contend.debates.events import Event, number_event, start_event
from contend.debates.family import Origin, SharedPart
from contend.debates.history import HistoryStep, opened_graph, read_history, write_state
from contend.debates.prepare import Reporter, check_seats
from contend.debates.record import RAN_ON, REUSED_TURNS, SERVER, StoredDebate, dump_state
from contend.debates.replay import restore_step, run_step
from contend.debates.repository import Repository
from contend.debates.server_debates import thread_of_fork
from contend.debates.stored_events import EventSource, StoredEvent, encode_event, share_event
from contend.graph.errors import BadInput, NotRecorded
from contend.graph.events import NodeEvent, turn_event
from contend.graph.phases import AFTER_THE_ROUNDS
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateInput, DebateState, Turn
from contend.graph.values import Seat
from contend.models.recording import CallKey, Received, RecordedCall, Recording, with_marks
from contend.models.replies.control import nonce, without_block
from contend.models.seats import choose_seats, is_demonstration
from contend.models.text import clean
from contend.nodes.budget import paid_by
from contend.nodes.calls.stream import call_name
from contend.nodes.prompting.values import fence_mark
from contend.nodes.rounds import describe_round

_INPUT = DebateInput.__annotations__
_AFTER = {*AFTER_THE_ROUNDS, "store"}
# These events are about one run, not about the debate; the fork sends its own.
_RUN_EVENTS = {"debate_start", "paused", "resumed", "error", "complete"}


class ForkPoint(NamedTuple):
    round: int
    phase: str = ""

    @classmethod
    def parse(cls, text: str) -> "ForkPoint":
        number, _, phase = text.partition(":")
        if not number.strip().isdecimal():
            raise BadInput(f"'{text}' is not in the form ROUND or ROUND:PHASE, such as 2:critique.")
        return cls(int(number), phase.strip())


@dataclass(frozen=True)
class AfterTurn:
    turn: str


@dataclass(frozen=True)
class Edit:
    turn: str
    text: str


@dataclass(frozen=True)
class FollowUp:
    """Marks a fork that starts after the last round and adds another round."""


ForkLocation = ForkPoint | AfterTurn | Edit | FollowUp


@dataclass(frozen=True)
class _ForkStart:
    step: HistoryStep
    state: DebateState
    shared_until: datetime
    said: Sequence[NodeEvent] = ()
    edited: str | None = None
    reopens: bool = False  # True if a finished debate continues, so that its end must not be copied


async def fork_debate(
    records: Repository,
    parent: StoredDebate,
    where: ForkLocation,
    changes: Mapping[str, Any],
    say: str = "",
    reporter: Reporter | None = None,
    *,
    fetch: bool = True,
) -> StoredDebate:
    if parent.status == "running":
        raise BadInput(f"Debate {parent.id[:8]} is running. Pause it first, or wait for its end.")
    if isinstance(where, FollowUp):
        changes = {**_another_round(parent), **changes}
    settings = changed_settings(parent, changes)
    async with opened_graph(parent) as graph:
        born = await asyncio.to_thread(records.origin, parent.id)
        steps = await read_history(graph, parent.id, born)
        start = await _start(records, parent, steps, where, settings)
        if say and (not start.step.next or "final_answer" in start.state):
            raise BadInput("No speaker would see your comment after this point. Leave out --say.")
        seats = await _seats(start.state, settings, changes)
        given: DebateState = {**start.state, "seats": seats}
        if parent.server is None:  # a server has models and keys of its own
            await check_seats(given, settings, reporter or Reporter(), fetch=fetch)
        paid = paid_by(start.state, settings)
        state: DebateState = {**given, "paid_before": paid, **_settings_for_state(given, settings)}
        *_, node = await restore_step(parent, start.step)
        fork_id = str(uuid4())
        config: Any = {"configurable": {"thread_id": fork_id}}
        # Written before the record, because without a checkpoint the fork would start from the
        # beginning and pay for everything again.
        origin = Origin(parent.id, start.step.round, node, start.edited)
        about = records, parent, fork_id, state, settings, origin, start
        async with thread_of_fork(parent, fork_id):
            await write_state(graph, config, state, node)
            await asyncio.to_thread(_write, *about)
    return await asyncio.to_thread(records.find, fork_id)


async def _start(
    records: Repository,
    parent: StoredDebate,
    steps: Sequence[HistoryStep],
    where: ForkLocation,
    settings: DebateSettings,
) -> _ForkStart:
    if isinstance(where, FollowUp):
        return _follow_up(steps, settings)
    if isinstance(where, ForkPoint):
        step = find_step(steps, where)
        return _ForkStart(step, step.state, step.at)
    turn = _find_turn(parent.turns, where.turn)
    before, step = _steps_around(steps, turn)
    if isinstance(where, AfterTurn):
        return _ForkStart(step, step.state, step.at)
    state, said = await _edited(records, parent, before, turn, where.text)
    return _ForkStart(step, state, before.at, said, turn.id)


def _another_round(parent: StoredDebate) -> dict[str, Any]:
    if parent.status != "done":
        raise BadInput(
            f"Debate {parent.id[:8]} is not finished. Continue it with: contend resume "
            f"{parent.id[:8]}"
        )
    changes = strategy_for(parent.as_settings()).settings_for_another_round(parent.as_state())
    if changes is None:
        raise BadInput(
            f"A {parent.protocol} debate cannot be continued: its result depends on its fixed "
            "rounds. Ask a new question instead."
        )
    return changes


def _follow_up(steps: Sequence[HistoryStep], settings: DebateSettings) -> _ForkStart:
    """Return the start of a fork that opens a new round after the last one."""
    ended = next((step for step in steps if "stop" in step.state), None)
    if ended is None:
        raise BadInput("The checkpoints of this debate do not say where its rounds ended.")
    state = cast("DebateState", {key: ended.state[key] for key in ended.state if key != "stop"})  # type: ignore[literal-required]
    opened, event = describe_round(state, settings, state["round"] + 1)
    return _ForkStart(ended, state | opened, ended.at, [event], reopens=True)


def _settings_for_state(state: DebateState, settings: DebateSettings) -> DebateState:
    return {"settings": settings.model_dump(mode="json")} if state.get("settings") else {}


def _write(
    records: Repository,
    parent: StoredDebate,
    fork_id: str,
    state: DebateState,
    settings: DebateSettings,
    origin: Origin,
    start: _ForkStart,
) -> None:
    given = cast("DebateState", {key: state[key] for key in state if key in _INPUT})  # type: ignore[literal-required]
    place = {name: parent.settings[name] for name in (RAN_ON, SERVER) if parent.server}
    about = settings.model_dump(mode="json") | place
    is_demo = is_demonstration(state["seats"])
    draft = parent.model_copy(
        update={"id": fork_id, "settings": about, "state": dump_state(state), "turns": []}
    )
    stored = records.journal.read_without_chunks(parent.id, 0, parent.last_seq)
    events = _shared_events(parent.id, stored, start, start_event(draft), fork_id)
    shared = SharedPart(origin, events)
    records.start(fork_id, parent.protocol, given, about, demonstration=is_demo, shared=shared)


def _shared_events(
    parent_id: str, stored: Sequence[StoredEvent], start: _ForkStart, first: NodeEvent, fork_id: str
) -> list[StoredEvent]:
    """Return the fork's first events; shift the times of those shared with the parent up to now."""
    events = [(each.source or EventSource(parent_id, each.seq), each.as_event()) for each in stored]
    shared = [
        (source, event)
        for source, event in events
        if event["event"] not in _RUN_EVENTS
        and not (start.reopens and _ends_rounds(event))
        and datetime.fromisoformat(event["ts"]) <= start.shared_until
    ]
    now = datetime.now(UTC)
    last = datetime.fromisoformat(shared[-1][1]["ts"]) if shared else now
    moved = [
        (source, {**event, "ts": (datetime.fromisoformat(event["ts"]) - last + now).isoformat()})
        for source, event in shared
    ]
    begun = number_event(fork_id, 0, first)
    added = [
        (None, number_event(fork_id, 0, event))
        for event in start.said
        if not event["event"].endswith("_chunk")
    ]
    begin = {**begun, "ts": moved[0][1]["ts"] if moved else begun["ts"]}
    numbered = [
        (source, cast("Event", {**event, "debate_id": fork_id, "seq": number}))
        for number, (source, event) in enumerate([(None, begin), *moved, *added], 1)
    ]
    return [
        share_event(event, source) if source else encode_event(event) for source, event in numbered
    ]


def _ends_rounds(event: Event) -> bool:
    return event["event"] == "early_stop" or event["metadata"].get("decision") == "stop"


async def run_again(
    records: Repository, parent: StoredDebate, point: ForkPoint, reporter: Reporter | None = None
) -> StoredDebate:
    """Store a new debate that has the parent's input and reuses its calls up to the fork point."""
    if not await asyncio.to_thread(records.recordings.read, parent.id):
        raise BadInput(f"Debate {parent.id[:8]} has no recording that could be reused.")
    if await asyncio.to_thread(records.origin, parent.id):
        raise BadInput(f"Debate {parent.id[:8]} is a fork; run its parent again instead.")
    settings = parent.settings_to_run()
    async with opened_graph(parent) as graph:
        step = find_step(await read_history(graph, parent.id), point)
    state = step.state
    await check_seats(state, settings, reporter or Reporter(), fetch=True)
    spoken = [turn.id for turn in state.get("turns", []) if turn.phase != "remark"]
    about = settings.model_dump(mode="json") | {REUSED_TURNS: spoken}
    kept = {*_INPUT, "retrieval"}
    given = cast("DebateState", {key: state[key] for key in state if key in kept})  # type: ignore[literal-required]
    shared, is_demo = SharedPart(Origin(parent.id, step.round, START), []), parent.demonstration
    new = str(uuid4())
    start = partial(records.start, demonstration=is_demo, shared=shared)
    await asyncio.to_thread(start, new, parent.protocol, given, about)
    return await asyncio.to_thread(records.find, new)


async def reply_of(records: Repository, debate: StoredDebate, turn_id: str) -> str:
    """Return a turn's complete model reply, for a person to edit."""
    turn = _find_turn(debate.turns, turn_id)
    _, call, _ = await asyncio.to_thread(_find_call, records, debate.id, turn)
    return str((call.answer or {})["result"]["text"])


def find_step(steps: Sequence[HistoryStep], point: ForkPoint) -> HistoryStep:
    for at in range(len(steps) - 1, 0, -1):
        step = steps[at]
        if step.round == point.round and _is_at(step, point.phase):
            # A decision made without a call is made again, because the settings may have changed.
            is_free = "stop" in step.state and "stop" not in steps[at - 1].state and not step.turns
            return steps[at - 1] if is_free and not point.phase else step
    raise BadInput(f"There is no such place in the debate. It has: {_places(steps)}.")


def _is_at(step: HistoryStep, phase: str) -> bool:
    if not phase:
        return not _AFTER.intersection(step.nodes)
    return phase in step.nodes or any(turn.phase == phase for turn in step.turns)


def _places(steps: Sequence[HistoryStep]) -> str:
    names = (f"{step.round}:{node}" for step in steps for node in step.nodes if step.is_of_node)
    return ", ".join(dict.fromkeys(names))


def changed_settings(parent: StoredDebate, changes: Mapping[str, Any]) -> DebateSettings:
    return parent.settings_to_run(changes)


async def _seats(
    state: DebateState, settings: DebateSettings, changes: Mapping[str, Any]
) -> list[Seat]:
    seats = state["seats"]
    if not changes:
        return seats
    chosen = (await choose_seats(settings)).seats
    if {seat.id for seat in chosen} != {seat.id for seat in seats}:
        raise BadInput("A fork cannot add or remove seats; it can only change their models.")
    # Positions that a moderator proposed are not in the settings.
    position = {seat.id: seat.position for seat in seats}
    return [each.model_copy(update={"position": position[each.id]}) for each in chosen]


def _steps_around(steps: Sequence[HistoryStep], turn: Turn) -> tuple[HistoryStep, HistoryStep]:
    for before, step in pairwise(steps):
        if turn.id in (each.id for each in step.turns):
            return before, step
    raise BadInput(f"No checkpoint of this debate comes before turn {turn.id}.")


async def _edited(
    records: Repository, parent: StoredDebate, before: HistoryStep, turn: Turn, given: str
) -> tuple[DebateState, list[NodeEvent]]:
    text = clean(given).strip()
    if not text:
        raise BadInput(f"The new text of turn {turn.id} is empty.")
    key, call, calls = await asyncio.to_thread(_find_call, records, parent.id, turn)
    try:
        recording = Recording({**calls, key: _with_text(call, text)}, is_complete=True)
        state, said = await run_step(parent, before, recording)
    except NotRecorded as unknown:
        raise BadInput(
            f"Your text does not say what the {turn.role} decides in turn {turn.id}. Keep the "
            "block at the end of the text, and change its values."
        ) from unknown
    turns = [_as_human(each) if each.id == turn.id else each for each in state["turns"]]
    (edited,) = (each for each in turns if each.id == turn.id)
    shown = [
        turn_event(edited) if event["metadata"].get("turn") == turn.id else event for event in said
    ]
    return {**state, "turns": turns}, shown


def _as_human(turn: Turn) -> Turn:
    return turn.model_copy(update={"status": "human", "model": ""})


def _with_text(call: RecordedCall, text: str) -> RecordedCall:
    result = {**(call.answer or {})["result"], "text": text, "thinking": "", "usage": {}}
    answer = {**(call.answer or {}), "result": result}
    received = [Received(at=0, text=text, model=call.model)]
    return call.model_copy(update={"received": received, "answer": answer})


def _find_call(
    records: Repository, debate_id: str, turn: Turn
) -> tuple[CallKey, RecordedCall, Mapping[CallKey, RecordedCall]]:
    """Return the key and recorded call that produced a turn, and all recorded calls by key."""
    calls = records.recordings.read(debate_id)
    asked = call_name(turn.round, turn.phase, turn.seat)
    marks = nonce(debate_id, turn.id), fence_mark(debate_id)
    found = [
        (key, with_marks(recorded, marks))
        for key, recorded in calls.items()
        if key.asked == asked and recorded.answer and "form" not in recorded.parameters
    ]
    if len(found) > 1:  # several turns with the same name, or a turn with tools
        found = [each for each in found if _produced(each[1], turn, marks[0])]
    if not found and (born := records.origin(debate_id)):
        raise BadInput(f"Turn {turn.id} is shared with debate {born.parent_id[:8]}; fork that one.")
    if len(found) != 1:
        raise BadInput(f"Turn {turn.id} cannot be edited: its model call is not recorded.")
    return *found[0], calls


def _produced(call: RecordedCall, turn: Turn, tag: str) -> bool:
    text = str((call.answer or {})["result"]["text"])
    return turn.text in (text, without_block(text, tag))


def _find_turn(turns: Sequence[Turn], turn_id: str) -> Turn:
    found = next((turn for turn in turns if turn.id == turn_id), None)
    if found is None:
        ids = ", ".join(turn.id for turn in turns if turn.phase != "remark")
        raise BadInput(f"There is no turn '{turn_id}' in this debate. It has: {ids}.")
    return found
