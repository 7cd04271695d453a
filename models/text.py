"""Cleans text that comes from models or users."""

import math
import re
from typing import Any

# A control character other than tab and newline shows nothing and can drive a terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WIDEST_INTEGER = 63
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """Remove what databases refuse (NUL, lone surrogates)."""
    return _SURROGATE.sub("", text.replace("\x00", ""))


def clean_data(data: Any) -> Any:
    if isinstance(data, str):
        return clean(data)
    if isinstance(data, dict):
        return {clean(str(key)): clean_data(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [clean_data(each) for each in data]
    odd = isinstance(data, float) and not math.isfinite(data)
    large = isinstance(data, int) and data.bit_length() > _WIDEST_INTEGER
    return str(data) if odd or large else data


def clean_piece(text: str) -> str:
    return _CONTROL.sub("", clean(text))


def clean_reply(text: str) -> str:
    return clean_piece(text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def shorten(text: str, limit: int) -> str:
    """Put text on one line and cut it between words, with an ellipsis, where it is too long."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    whole_words = head.rpartition(" ")[0]
    return f"{whole_words if len(whole_words) > limit // 2 else head}…"
