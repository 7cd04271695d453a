import struct
from dataclasses import dataclass
from functools import cache
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import Any

MAGIC = b"GGUF"
# The struct codes of the format's numeric types, by type id.
_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_MOST_BYTES = 64 * 1024 * 1024
_MOST_DIMENSIONS = 8


@dataclass(frozen=True)
class Header:
    parameters: int | None = None
    context_tokens: int | None = None


def read_header(path: Path) -> Header:
    changed = path.stat()
    return _read(path, changed.st_mtime_ns, changed.st_size)


@cache
def _read(path: Path, _changed: int, _size: int) -> Header:
    try:
        with path.open("rb") as file:
            return _parse(file)
    except (struct.error, ValueError, OverflowError, RecursionError):
        return Header()


def _parse(file: BufferedReader) -> Header:
    if file.read(len(MAGIC)) != MAGIC:
        return Header()
    _version, tensors, values = _take(file, "I"), _take(file, "Q"), _take(file, "Q")
    context = None
    for _ in range(values):
        key, value = _text(file), _value(file, _take(file, "I"))
        if key.endswith(b".context_length"):
            context = int(value)
    return Header(sum(_parameters(file) for _ in range(tensors)), context)


def _parameters(file: BufferedReader) -> int:
    _text(file)
    dimensions = _take(file, "I")
    if dimensions > _MOST_DIMENSIONS:
        raise ValueError("too many dimensions")
    size: int = prod(_take(file, "Q") for _ in range(dimensions))
    _type, _offset = _take(file, "I"), _take(file, "Q")
    return size


def _value(file: BufferedReader, kind: int) -> Any:
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _take(file, _NUMBERS.get(kind, "x"))
    inner, count = _take(file, "I"), _take(file, "Q")
    if inner in _NUMBERS:
        _skip(file, count * struct.calcsize(_NUMBERS[inner]))
    else:
        for _ in range(count):
            _value(file, inner)
    return None


def _take(file: BufferedReader, form: str) -> Any:
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))[0]


def _text(file: BufferedReader) -> bytes:
    length = _take(file, "Q")
    if length > _MOST_BYTES:
        raise ValueError("too long")
    return file.read(length)


def _skip(file: BufferedReader, length: int) -> None:
    if length > _MOST_BYTES:
        raise ValueError("too long")
    file.seek(length, 1)
