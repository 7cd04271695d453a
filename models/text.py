import math
import re
from collections.abc import Callable
from typing import Any

# Characters that can control a terminal (except tab and newline) or reorder its text.
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_WIDEST_INTEGER = 63
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """Remove characters that databases refuse: NUL and lone surrogates."""
    return _SURROGATE.sub("", text.replace("\x00", ""))


def clean_data(data: Any, clean_text: Callable[[str], str] | None = None) -> Any:
    """Clean all text in plain data, and convert unstorable numbers to text."""
    clean_text = clean_text or clean_piece
    if isinstance(data, str):
        return clean_text(data)
    if isinstance(data, dict):
        return {clean_text(str(k)): clean_data(value, clean_text) for k, value in data.items()}
    if isinstance(data, list | tuple):
        return [clean_data(each, clean_text) for each in data]
    odd = isinstance(data, float) and not math.isfinite(data)
    large = isinstance(data, int) and data.bit_length() > _WIDEST_INTEGER
    return str(data) if odd or large else data


def clean_piece(text: str) -> str:
    """Clean text, and remove characters that can control a terminal or reorder text."""
    return UNSAFE.sub("", clean(text))


def clean_reply(text: str) -> str:
    return clean_piece(text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def shorten(text: str, limit: int) -> str:
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    whole_words = head.rpartition(" ")[0]
    return f"{whole_words if len(whole_words) > limit // 2 else head}…"
