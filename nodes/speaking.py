"""One seat takes one turn: the call, its live events, and the turn that enters the transcript."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from langgraph.func import task
from langgraph.runtime import Runtime
from pydantic import BaseModel
from typing_extensions import TypedDict

from graph.errors import ModelFailed, Paused
from graph.events import chunk_event, node_event
from graph.settings import DebateSettings
from graph.state import NO_USAGE, DebateState, Degradation, Point, Seat, Turn, Usage
from models.calls import Listener, Trouble, ask, extract
from models.control import nonce, without_block
from models.text import SpeechFilter, clean_piece
from nodes.briefing import brief, extraction_brief

# Viewers cannot read faster, and every event costs each of them something.
_SECONDS_BETWEEN_CHUNKS = 0.033


class Spoken(TypedDict):
    """A finished speech; `raw` still has its control block. Plain, so checkpoints can keep it."""

    turn: Turn
    raw: str
    degraded: list[Degradation]


class Reported(TypedDict):
    """What an extraction call gave: the block as plain data, or None."""

    block: dict[str, Any] | None
    usage: Usage
    seconds: float
    degraded: list[Degradation]


def debate_id(runtime: Runtime[Any]) -> str:
    """The debate's id, which is the thread's."""
    info = runtime.execution_info
    return (info.thread_id if info else None) or "local"


def next_turn_id(state: DebateState, phase: str, seat: str) -> str:
    """The same for the same turn of a resumed debate, so nothing is ever stored twice."""
    first = f"r{state['round']}.{phase}.{seat}"
    same = [turn for turn in state.get("turns", []) if turn.id.startswith(first)]
    return f"{first}.{len(same) + 1}" if same else first


async def say(state: DebateState, room: Runtime[Any], seat: Seat, phase: str, part: str) -> Spoken:
    """Ask the seat for its speech, streaming it to whoever watches."""
    settings: DebateSettings = room.context
    this = next_turn_id(state, phase, seat.id)
    tag = nonce(debate_id(room), this)
    told = brief(state, settings, seat, part, debate_id(room), tag)
    voice = Voice(room, seat, state["round"], tag)
    if told.left_out:
        voice.degrade("history_shortened", f"{len(told.left_out)} oldest turns did not fit")
    if told.too_long:
        why = f"the prompt may not fit the window of {seat.model}, which may cut it unsaid"
        voice.degrade("prompt_too_long", why)
    started = datetime.now(UTC)
    try:
        answered = await ask(seat, told.messages, settings, voice.listener())
    except ModelFailed as failed:
        failed.degraded = voice.degraded
        raise
    voice.flush()
    reply = answered.result
    turn = Turn(
        id=this,
        round=state["round"],
        phase=phase,
        seat=seat.id,
        role=seat.role,
        model=answered.model,
        text=without_block(reply.text, tag) or reply.text,
        thinking=reply.thinking or None,
        usage=reply.usage + voice.spent,
        started_at=started,
        ended_at=datetime.now(UTC),
        status="fallback_model" if answered.fell_back else "ok",
    )
    return {"turn": turn, "raw": reply.text, "degraded": voice.degraded}


async def report(
    state: DebateState,
    room: Runtime[Any],
    seat: Seat,
    speech: str,
    schema: type[BaseModel],
    known: list[Point],
) -> Reported:
    """Ask once, schema-bound, what a speech decided; a failure leaves it honestly unread."""
    if room.control and room.control.drain_requested:
        raise Paused
    voice = Voice(room, seat, state["round"], "")
    messages = extraction_brief(seat, speech, known, debate_id(room))
    try:
        answered = await extract(seat, messages, schema, room.context, voice.listener())
    except ModelFailed:
        return _reported(None, NO_USAGE, voice)
    return _reported(answered.result.block, answered.result.usage, voice)


def _reported(block: BaseModel | None, usage: Usage, voice: "Voice") -> Reported:
    return {
        "block": block.model_dump() if block else None,
        "usage": usage + voice.spent,
        "seconds": time.monotonic() - voice.began,
        "degraded": voice.degraded,
    }


def with_report(turn: Turn, reported: Reported) -> Turn:
    """The turn with the time and tokens that reading it took."""
    # Added, not read off the clock: there may lie a pause between the speech and its reading.
    ended = turn.ended_at + timedelta(seconds=reported["seconds"])
    return turn.model_copy(update={"usage": turn.usage + reported["usage"], "ended_at": ended})


# As tasks, a node with two calls keeps the first one's result when the second is interrupted.
# `room` is the node's runtime: langgraph would fill a task's argument called `runtime` itself.
say_once = task(say)
report_once = task(report)


def announce(runtime: Runtime[Any], turn: Turn) -> None:
    """Tell viewers the whole speech; it replaces what they gathered from chunks."""
    assessment = turn.assessment.model_dump() if turn.assessment else None
    runtime.stream_writer(
        node_event(
            "seat_complete",
            turn.round,
            turn.text,
            seat=turn.seat,
            role=turn.role,
            model=turn.model,
            phase=turn.phase,
            turn=turn.id,
            status=turn.status,
            thinking=turn.thinking,
            assessment=assessment,
            usage=turn.usage.model_dump(),
            elapsed_ms=round((turn.ended_at - turn.started_at).total_seconds() * 1000),
        )
    )


def degrade(
    runtime: Runtime[Any], seat: Seat, number: int, what: str, why: str, *, restart: bool = False
) -> Degradation:
    """Announce something that did not go as planned; `restart` voids what was streamed of it."""
    event = node_event("degraded", number, why, what=what, seat=seat.id, restart=restart)
    runtime.stream_writer(event)
    return Degradation(seat=seat.id, round=number, what=what, why=why)


@dataclass
class Voice:
    """Turns a call's progress into events, a few a second, without thinking or control blocks."""

    runtime: Runtime[Any]
    seat: Seat
    round_number: int
    hidden_mark: str
    degraded: list[Degradation] = field(default_factory=list)
    spent: Usage = NO_USAGE
    """What attempts cost whose answers could not be used."""
    began: float = field(default_factory=time.monotonic)
    _waiting: str = ""
    _model: str = ""
    _tokens: int = 0
    _last_sent: float = 0.0
    _filter: SpeechFilter | None = None

    def listener(self) -> Listener:
        """What the call layer reports to."""
        control = self.runtime.control
        return Listener(
            text=self.text,
            trouble=self.trouble,
            pause_requested=lambda: bool(control and control.drain_requested),
        )

    def text(self, piece: str, model: str) -> None:
        """Take the next piece of the reply."""
        self._filter = self._filter or SpeechFilter(self.hidden_mark)
        self._model = model
        self._tokens += 1
        self._waiting += self._filter.feed(clean_piece(piece))
        if time.monotonic() - self._last_sent >= _SECONDS_BETWEEN_CHUNKS:
            self._send()

    def flush(self) -> None:
        """Send what is still held back, at the end of the reply."""
        if self._filter:
            self._waiting += self._filter.finish()
        self._send()

    def trouble(self, trouble: Trouble) -> None:
        """An attempt failed: whatever was streamed of it is void."""
        self._waiting, self._tokens, self._filter = "", 0, None
        failure = trouble.failure
        self.spent += trouble.usage
        self.degrade(trouble.what, f"{trouble.model}: {failure.kind}: {failure.why}", restart=True)

    def degrade(self, what: str, why: str, *, restart: bool = False) -> None:
        """Keep a degradation for the state, and announce it."""
        self.degraded.append(
            degrade(self.runtime, self.seat, self.round_number, what, why, restart=restart)
        )

    def _send(self) -> None:
        if not self._waiting:
            return
        event = node_event(
            chunk_event(self.seat.role),
            self.round_number,
            self._waiting,
            model=self._model,
            role=self.seat.role,
            seat=self.seat.id,
            tokens_so_far=self._tokens,
        )
        self.runtime.stream_writer(event)
        self._waiting, self._last_sent = "", time.monotonic()
