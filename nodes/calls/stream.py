import time
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from langgraph.runtime import Runtime

from contend.graph.events import chunk_event, node_event
from contend.graph.phases import PHASES, PhaseName
from contend.graph.state import DebateState, Turn
from contend.graph.values import NO_USAGE, Degradation, Seat, Usage
from contend.models.budget import NO_BUDGET, CallBudget
from contend.models.replies.visible import SpeechFilter
from contend.models.retries import FailedAttempt, Listener
from contend.models.text import clean_piece
from contend.models.tokens import count_tokens
from contend.nodes.budget import call_budget
from contend.nodes.calls.messages import push_words
from contend.nodes.prompting.values import fence_mark

# Nobody reads faster than this, and each event has a cost for each viewer.
_SECONDS_BETWEEN_CHUNKS = 0.033
_PARAGRAPH = "\n\n"


def debate_id(runtime: Runtime[Any]) -> str:
    info = runtime.execution_info
    return (info.thread_id if info else None) or "local"


def call_name(round_number: int, phase: str, seat: str) -> str:
    return ".".join(filter(None, (f"r{round_number}", phase, seat)))


# The clock for time limits, which tests replace.
def seconds_now() -> float:
    return time.monotonic()


def report_problem(
    runtime: Runtime[Any],
    seat: Seat | None,
    number: int | None,
    what: str,
    why: str,
    *,
    restart: bool = False,
    phase: PhaseName | Literal[""] = "",
) -> Degradation:
    """Report a problem to viewers. `restart` makes them discard the call's text so far."""
    whom = seat.id if seat else None
    runtime.stream_writer(
        node_event("degraded", number, why, what=what, seat=whom, restart=restart, phase=phase)
    )
    return Degradation(seat=whom, round=number, what=what, why=why)


def announce_reading(runtime: Runtime[Any], seat: Seat, turn: Turn) -> None:
    """Tell viewers that the turn's decision is being parsed."""
    length = count_tokens(turn.text)
    said = TurnStream(runtime, seat, turn.round, "", turn.phase, tokens_before=length)
    said.announce_block("\n")


@dataclass
class TurnStream:
    runtime: Runtime[Any]
    seat: Seat
    round_number: int
    hidden_mark: str
    phase: PhaseName | Literal[""] = ""
    before: str = ""  # the turn's text from earlier calls, sent again if this call restarts
    tokens_before: int = 0
    time_limit: float | None = None  # seconds from the first words
    state: DebateState | None = None  # for the budget; None for no limit
    turn: str = ""  # the id of the turn that the call is for
    degraded: list[Degradation] = field(default_factory=list)
    spent: Usage = NO_USAGE  # the cost of attempts whose answers could not be used
    began: float = field(default_factory=time.monotonic)
    _waiting: str = ""
    _model: str = ""
    _tokens: int = 0
    _unread: str = ""
    _read_at: float = 0.0
    _filter: SpeechFilter | None = None
    _has_text: bool = False
    _spoke_at: float | None = None
    _announced_block: bool = False
    _message: str = field(default_factory=lambda: str(uuid4()))

    def listener(self) -> Listener:
        debate = debate_id(self.runtime)
        return Listener(
            self.text,
            self.on_failed_attempt,
            lambda: self.pause_requested,
            debate,
            asked=call_name(self.round_number, self.phase, self.seat.id),
            turn=self.turn,
            marks=(self.hidden_mark, fence_mark(debate)),
            time_is_up=self._time_is_up,
            budget=self._budget(),
        )

    def _budget(self) -> CallBudget:
        if self.state is None:
            return NO_BUDGET
        return call_budget(self.state, self.runtime, self.phase, lambda: self.pause_requested)

    @property
    def tokens(self) -> int:
        return self.tokens_before + self._tokens

    @property
    def pause_requested(self) -> bool:
        control = self.runtime.control
        return bool(control and control.drain_requested)

    def _time_is_up(self) -> bool:
        if self.time_limit is None or not self._has_text:
            return False
        now = seconds_now()
        self._spoke_at = now if self._spoke_at is None else self._spoke_at
        return now - self._spoke_at > self.time_limit

    def begin(self) -> None:
        self._model = self.seat.model
        self._send_chunk("")

    def text(self, piece: str, model: str) -> None:
        """Add text. It is sent in batches, because many models stream single tokens."""
        self._model = model
        self._unread += piece
        if time.monotonic() - self._read_at >= _SECONDS_BETWEEN_CHUNKS:
            self._read()
            self._send()

    def flush(self) -> None:
        self._read()
        if self._filter:
            self._add(self._filter.finish())
        self._send()

    def _read(self) -> None:
        text, self._unread, self._read_at = clean_piece(self._unread), "", time.monotonic()
        if not text:
            return
        self._filter = self._filter or SpeechFilter(self.hidden_mark)
        self._tokens += count_tokens(text)
        self._add(self._filter.feed(text))
        if self._filter.is_hiding and not self._announced_block:
            # Send the waiting words now, because nothing visible follows for a while.
            self._announced_block = True
            self.announce_block(self._waiting or "\n")
            self._waiting = ""

    def announce_block(self, words: str) -> None:
        self._model = self._model or self.seat.model
        self._send_chunk(words, deciding=True)

    def send_if_silent(self, text: str, model: str) -> None:
        """Send a reply unless some of it was already streamed."""
        if text and not self._has_text:
            self.text(text, model)
            self.flush()

    def on_failed_attempt(self, attempt: FailedAttempt) -> None:
        self._waiting, self._tokens, self._filter = self.before, 0, None
        self._unread, self._read_at = "", 0.0
        self._has_text, self._spoke_at, self._announced_block = False, None, False
        self._message = str(uuid4())
        failure = attempt.failure
        self.spent += attempt.usage
        reported = report_problem(
            self.runtime,
            self.seat,
            self.round_number,
            attempt.what,
            f"{attempt.model}: {failure.kind}: {failure.why}",
            restart=True,
            phase=self.phase,
        )
        self.degraded.append(reported)

    def _add(self, shown: str) -> None:
        if shown and not self._has_text:
            self._has_text = True
            shown = f"{_PARAGRAPH if self.before else ''}{shown}"
        self._waiting += shown

    def _send(self) -> None:
        if not self._waiting:
            return
        self._send_chunk(self._waiting)
        self._waiting = ""

    def _send_chunk(self, piece: str, **more: Any) -> None:
        if self.phase and PHASES[self.phase].is_streamed:
            push_words(piece, self._message, self.seat.name)
        self.runtime.stream_writer(
            node_event(
                chunk_event(self.seat.role, self.phase),
                self.round_number,
                piece,
                model=self._model,
                role=self.seat.role,
                seat=self.seat.id,
                phase=self.phase,
                tokens_so_far=self.tokens,
                **more,
            )
        )
