"""Serializes our value objects for checkpoints, and loads those of earlier releases."""

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
    _create_msgpack_ext_hook,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot

import contend.graph.record  # noqa: F401 - its values are stored too, so the list must have them
from contend.graph.readings import (
    DebateScores,
    SideScore,
    StageScores,
    StatedProbabilities,
    StatementScores,
)
from contend.graph.state import CallSubject
from contend.graph.values import TurnLength, Value, WorkSpan, storable_types

# Modules that earlier releases' checkpoints name for our value types.
_OLD_MODULES = ("graph.state", "contend.graph.state")
_OLD_NAMES: dict[str, type[Value]] = {
    **{value.__name__: value for value in Value.__subclasses__()},
    "Cue": CallSubject,
    "Length": TurnLength,
    "Marking": StageScores,
    "Marks": StatementScores,
    "Span": WorkSpan,
    "Standing": SideScore,
    "Stated": StatedProbabilities,
    "Verdict": DebateScores,
}


# The formats whose names are stored with the values.
_MSGPACK, _COMPRESSED = "msgpack", "msgpack-zlib"
_WORTH_COMPRESSING = 512
# From this length on, such as for all turns of a fork, less compression is several times as fast.
_LONG, _QUICKLY = 50_000, 2


class CompactSerializer(JsonPlusSerializer):
    """Compresses long values, which are mostly prose."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        if kind != _MSGPACK or len(data) < _WORTH_COMPRESSING:
            return kind, data
        level = _QUICKLY if len(data) >= _LONG else zlib.Z_DEFAULT_COMPRESSION
        return _COMPRESSED, zlib.compress(data, level)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, content = data
        if kind == _COMPRESSED:
            try:
                return super().loads_typed((_MSGPACK, zlib.decompress(content)))
            except zlib.error as error:
                raise ValueError("a stored value is damaged") from error
        return super().loads_typed(data)


def serializer(*, compresses: bool = True) -> JsonPlusSerializer:
    """Return a serializer that loads only our own types, so that no checkpoint can run code."""
    # langgraph builds this list only for graphs compiled with a saver, and a server's are not.
    ours = storable_types()
    load = _create_msgpack_ext_hook(set(ours))
    kind = CompactSerializer if compresses else JsonPlusSerializer
    return kind(
        pickle_fallback=False,
        allowed_msgpack_modules=ours,
        __unpack_ext_hook__=partial(_unpack, load),
    )


def _unpack(load: Callable[[int, bytes], Any], code: int, data: bytes) -> Any:
    """Load a stored object, translating module and class names from earlier releases."""
    if code not in (EXT_PYDANTIC_V2, EXT_DELTA_SNAPSHOT):
        return load(code, data)
    inner = ormsgpack.unpackb(
        data, ext_hook=partial(_unpack, load), option=ormsgpack.OPT_NON_STR_KEYS
    )
    if code == EXT_DELTA_SNAPSHOT:
        return _DeltaSnapshot(inner)
    module, name, values, *_ = inner
    if module not in _OLD_MODULES or name not in _OLD_NAMES:
        return load(code, data)
    return _OLD_NAMES[name].model_validate(values)
