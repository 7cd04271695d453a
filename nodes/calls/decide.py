"""Takes a turn and parses a decision from the control block, the text, or a second call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langgraph.runtime import Runtime
from pydantic import BaseModel, ValidationError
from typing_extensions import TypedDict

from contend.graph.errors import ModelFailed
from contend.graph.phases import PhaseName
from contend.graph.readings import Point
from contend.graph.state import DebateState, Turn
from contend.graph.values import Degradation, Seat
from contend.models.replies.control import nonce, read_block, without_block
from contend.models.seats import is_small
from contend.nodes.calls.person import WrittenForm
from contend.nodes.calls.stream import debate_id
from contend.nodes.calls.tasks import stored_task
from contend.nodes.calls.turn import (
    Extraction,
    TurnResult,
    add_extraction_cost,
    extract_once,
    gather_results,
    pause_if_asked,
    take_turn,
    take_turn_once,
)

Block = TypeVar("Block", bound=BaseModel)
Read = TypeVar("Read")
_NO_WORDS = "(No words, only what is for the record.)"
Call = tuple[DebateState, Seat]  # the seat to ask, and the state to show it


@dataclass(frozen=True)
class Reader(Generic[Block, Read]):
    form: type[Block]  # the schema of the control block and of the extraction call
    short_form: type[Block]  # with length limits, for models that might never stop writing
    from_block: Callable[[Block, str], Read]
    from_words: Callable[[str], Read | None]
    from_report: Callable[[Block, str], Read | None]
    for_people: str = ""  # tells a person how to write a decision that `from_words` can read
    add_signs: Callable[[str], str] = lambda text: text

    @property
    def written(self) -> WrittenForm:
        return WrittenForm(self.for_people, self._is_readable, self.add_signs)

    def _is_readable(self, text: str) -> bool:
        return self.from_words(text) is not None


def block_reader(form: type[Block], short_form: type[Block]) -> Reader[Block, Block]:
    return Reader(form, short_form, lambda block, _: block, lambda _: None, lambda block, _: block)


@dataclass(frozen=True)
class Decided(Generic[Read]):
    turn: Turn
    read: Read | None  # None if it could not be parsed
    degraded: list[Degradation]


async def decide(
    state: DebateState,
    runtime: Runtime[Any],
    seat: Seat,
    phase: PhaseName,
    part: str,
    reader: Reader[Block, Read],
    known: Sequence[Point] = (),
) -> Decided[Read]:
    """Take a turn and parse its decision. A failure is raised, so a resume retries the turn."""
    spoken = await take_turn_once(state, runtime, seat, phase, part, reader.written)
    read = _read(spoken, runtime, reader)
    (decided,) = await _extract_unread([(state, seat)], runtime, [read], reader, known)
    if isinstance(decided, ModelFailed):
        raise decided
    return decided


async def decide_calls(
    calls: Sequence[Call],
    runtime: Runtime[Any],
    phase: PhaseName,
    part: str,
    reader: Reader[Block, Read],
    known: Sequence[Point] = (),
) -> list[Decided[Read] | ModelFailed]:
    """Make calls in parallel and parse their decisions. Failures are returned, not raised."""
    asked = await gather_results(
        [_ask_once(state, runtime, seat, phase, part, reader.written) for state, seat in calls]
    )
    results = [each if isinstance(each, ModelFailed) else turn_or_failure(each) for each in asked]
    decided = [
        each if isinstance(each, ModelFailed) else _read(each, runtime, reader) for each in results
    ]
    return await _extract_unread(calls, runtime, decided, reader, known)


class StoredTurn(TypedDict):
    """A turn or a failure, as plain data for checkpoints."""

    spoken: TurnResult | None
    failed: dict[str, Any]


async def _ask(
    state: DebateState,
    node_runtime: Runtime[Any],
    seat: Seat,
    phase: PhaseName,
    part: str,
    form: WrittenForm,
) -> StoredTurn:
    pause_if_asked(node_runtime)
    try:
        spoken = await take_turn(state, node_runtime, seat, phase, part, form)
    except ModelFailed as failure:
        return store_failure(failure)
    return {"spoken": spoken, "failed": {}}


_ask_once = stored_task("_ask", _ask)


def store_failure(failure: ModelFailed) -> StoredTurn:
    """Convert a failure to a task result. Raising it would renumber later tasks on resume."""
    return {"spoken": None, "failed": dict(vars(failure))}


def turn_or_failure(stored: StoredTurn) -> TurnResult | ModelFailed:
    if stored["spoken"]:
        return stored["spoken"]
    fields = dict(stored["failed"])
    failure = ModelFailed(*(fields.pop(name) for name in ("seat", "model", "kind", "why")))
    vars(failure).update(fields)
    return failure


async def _extract_unread(
    calls: Sequence[Call],
    runtime: Runtime[Any],
    decided: Sequence[Decided[Read] | ModelFailed],
    reader: Reader[Block, Read],
    known: Sequence[Point],
) -> list[Decided[Read] | ModelFailed]:
    # Called only after all seats have spoken, because langgraph identifies a task by its position
    # in the order of calls, which must be the same in a resumed step.
    unread = {
        at: each
        for at, each in enumerate(decided)
        if isinstance(each, Decided) and each.read is None
    }
    requests = []
    for at, each in unread.items():
        state, seat = calls[at]
        about = each.turn, _form(seat, reader), list(known)
        requests.append(extract_once(state, runtime, seat, *about))
    read = list(decided)
    for at, reported in zip(unread, await gather_results(requests), strict=True):
        if not isinstance(reported, ModelFailed):
            read[at] = _read_report(unread[at], reported, _form(calls[at][1], reader), reader)
    return read


def block_of(runtime: Runtime[Any], spoken: TurnResult, form: type[Block]) -> Block | None:
    return read_block(spoken["raw"], nonce(debate_id(runtime), spoken["turn"].id), form)


def in_words(runtime: Runtime[Any], turn: Turn) -> Turn:
    """If a turn's text is only a control block, replace the text with a placeholder."""
    if without_block(turn.text, nonce(debate_id(runtime), turn.id)):
        return turn
    length = turn.length and turn.length.model_copy(update={"tokens": 0})
    return turn.model_copy(update={"text": _NO_WORDS, "quotes": (), "length": length})


def _form(seat: Seat, reader: Reader[Block, Read]) -> type[Block]:
    return reader.short_form if is_small([seat]) else reader.form


def read_decision(
    runtime: Runtime[Any],
    spoken: TurnResult,
    form: type[Block],
    from_block: Callable[[Block, str], Read | None],
    from_words: Callable[[str], Read | None],
) -> Read | None:
    """Parse the decision from a turn's control block or, if that is invalid, from the text."""
    text, block = spoken["turn"].text, block_of(runtime, spoken, form)
    read = from_block(block, text) if block else None
    return from_words(text) if read is None else read


def _read(spoken: TurnResult, runtime: Runtime[Any], reader: Reader[Block, Read]) -> Decided[Read]:
    read = read_decision(runtime, spoken, reader.form, reader.from_block, reader.from_words)
    return Decided(spoken["turn"], read, list(spoken["degraded"]))


def _read_report(
    decided: Decided[Read], reported: Extraction, form: type[Block], reader: Reader[Block, Read]
) -> Decided[Read]:
    turn = add_extraction_cost(decided.turn, reported)
    degraded = decided.degraded + reported["degraded"]
    try:
        block = form.model_validate(reported["block"])
    except ValidationError:  # nothing was extracted, or it is invalid after cleaning
        return Decided(turn, None, degraded)
    return Decided(turn, reader.from_report(block, turn.text), degraded)
