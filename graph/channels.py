"""Typed channels of the debate state, kept out of state.py because langgraph is slow to import."""

import operator
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Self, get_args, get_origin, get_type_hints

from langgraph.channels.base import BaseChannel
from langgraph.channels.binop import BinaryOperatorAggregate, _get_overwrite
from langgraph.channels.delta import DeltaChannel
from langgraph.channels.last_value import LastValue
from langgraph.types import Overwrite
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from contend.graph.errors import BadInput
from contend.graph.state import ADDED, DebateState, Turn


def checked(typ: Any, name: str, value: Any) -> Any:
    """Convert a value, such as a client's JSON, to `typ`. Raise BadInput if that fails."""
    try:
        return _adapter(typ).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, (name, *first["loc"])))
        raise BadInput(f"{place} is not well-formed: {first['msg']}.") from error


def _checked_or_overwriting(typ: Any, name: str, value: Any) -> Any:
    is_overwrite, inner = _get_overwrite(value)
    if not is_overwrite:
        return checked(typ, name, value)
    return Overwrite(checked(typ, name, inner or get_origin(typ)()))  # an empty list or dict


@cache
def _adapter(typ: Any) -> TypeAdapter[Any]:
    return TypeAdapter(typ)


class CheckedValue(LastValue[Any]):
    """Keeps the last value. Parallel nodes may write only equal values."""

    def check(self, value: Any) -> Any:
        return checked(self.typ, self.key, value)

    def update(self, values: Sequence[Any]) -> bool:
        found = [self.check(value) for value in values]
        agree = bool(found) and all(each == found[0] for each in found)
        return super().update(found[:1] if agree else found)

    def from_checkpoint(self, checkpoint: Any) -> Self:
        channel = super().from_checkpoint(checkpoint)
        if channel.is_available():  # a server without our types stores them as plain data
            channel.value = self.check(channel.value)
        return channel


class CheckedList(BinaryOperatorAggregate[Any]):
    def check(self, value: Any) -> Any:
        return _checked_or_overwriting(self.typ, self.key, value)

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([self.check(value) for value in values])

    def from_checkpoint(self, checkpoint: Any) -> Self:
        channel = super().from_checkpoint(checkpoint)
        channel.value = self.check(channel.value)
        return channel


class CheckedDelta(DeltaChannel[Any]):
    # Stores each write once: with the whole value in every checkpoint, storage would grow with the
    # square of the number of turns. The base class is beta in langgraph 1.2, so it is used only
    # here.

    def check(self, value: Any) -> Any:
        return _checked_or_overwriting(_DELTAS[self.key], self.key, value)

    def update(self, values: Sequence[Any]) -> bool:
        return super().update([self.check(value) for value in values])

    def replay_writes(self, writes: Sequence[tuple[str, str, Any]]) -> None:
        super().replay_writes([(task, name, self.check(value)) for task, name, value in writes])

    def from_checkpoint(self, checkpoint: Any) -> Self:
        channel = super().from_checkpoint(checkpoint)
        channel.value = self.check(channel.value)
        return channel


def merge_turns(current: Sequence[Turn] | None, writes: Sequence[Sequence[Turn]]) -> list[Turn]:
    """Add the written turns, replacing current turns with the same id."""
    # The result must not depend on how langgraph batches the writes.
    merged = {turn.id: turn for turn in current or ()}
    for write in writes:
        merged |= {turn.id: turn for turn in write}
    return list(merged.values())


def keep_last(_: object, writes: Sequence[Any]) -> Any:
    return writes[-1]


_DELTAS: dict[str, Any] = {"turns": list[Turn], "settings": dict[str, Any]}
_REDUCERS = {"turns": merge_turns, "settings": keep_last}


def _channel(name: str, hint: Any) -> BaseChannel[Any, Any, Any]:
    if name in _DELTAS:
        return CheckedDelta(_REDUCERS[name], snapshot_frequency=1000)
    if get_origin(hint) is Annotated and ADDED in hint.__metadata__:
        return CheckedList(get_args(hint)[0], operator.add)
    return CheckedValue(hint)


def _typed_fields() -> dict[str, Any]:
    hints = get_type_hints(DebateState, include_extras=True)
    return {name: Annotated[hint, _channel(name, hint)] for name, hint in hints.items()}


# The state schema of the graphs: DebateState with a channel for each field.
GraphState: type[DebateState] = TypedDict("GraphState", _typed_fields(), total=False)  # type: ignore[misc]
