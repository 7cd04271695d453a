"""Cleans model text and separates it from the model's thinking."""

import json
import math
import re
from typing import Any

# A control character other than tab and newline shows nothing and can drive a terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_WIDEST_INTEGER = 63
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_OPEN, _CLOSE = "<think>", "</think>"
# A reply's first tag; a closing one without an opening ends a line unless it is only mentioned.
_TAG = re.compile(r"<think>|</think>(?P<ending>[ \t\r]*(?=\n|\Z))?")
_OBJECT = re.compile(r"\{\s*(?:[\"}]|\Z)")
_PROSE = re.compile(r"\n[^\s\"\[\]{},]")  # no line of an object begins so


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


def split_thinking(text: str) -> tuple[str, str]:
    """Split a reply into text and thinking, for closed, unclosed and close-only think tags."""
    thoughts: list[str] = []
    first = _TAG.search(text)
    if first and first.group("ending") is not None and text.count("`", 0, first.start()) % 2 == 0:
        thoughts, text = [text[: first.start()]], text[first.end() :]
    sieve = _Thinking()
    speech = sieve.feed(text, last=True)
    thoughts += sieve.thoughts
    return speech, "\n".join(part.strip() for part in thoughts if part.strip())


class SpeechFilter:
    """Lets a reply's visible text through as it streams, without thinking and the control block."""

    # A fence or JSON object is held until it closes: only then it is known as the control block.
    def __init__(self, hidden_mark: str) -> None:
        self._sieves = (_Thinking(), _Fences(hidden_mark), _Objects(hidden_mark))

    def feed(self, piece: str, *, last: bool = False) -> str:
        for sieve in self._sieves:
            piece = sieve.feed(piece, last=last)
        return piece

    def finish(self) -> str:
        return self.feed("", last=True)


class _Sieve:
    """Passes text on up to a sign, where it waits until it can decide."""

    sign = ""

    def __init__(self, mark: str = "") -> None:
        self._mark = mark
        self._shown = ""
        self._pending = ""

    def feed(self, piece: str, *, last: bool) -> str:
        self._pending += piece
        seen = len(self._shown)
        while self._pending and self._step(last=last):
            pass
        return self._shown[seen:]

    def _step(self, *, last: bool) -> bool:
        at = self._pending.find(self.sign)
        if at:
            self._show(at if at > 0 else len(self._pending))
            return at > 0
        return self._decide(last=last)

    def _decide(self, *, last: bool) -> bool:
        raise NotImplementedError

    def _show(self, count: int) -> bool:
        self._shown += self._pending[:count]
        return self._drop(count)

    def _drop(self, count: int) -> bool:
        self._pending = self._pending[count:]
        return True

    def _begins_line(self) -> bool:
        return not self._shown[self._shown.rfind("\n") + 1 :].strip()


class _Thinking(_Sieve):
    """Holds thinking back. A tag inside a line or in code is only mentioned."""

    sign = "<"

    def __init__(self) -> None:
        super().__init__()
        self.thoughts: list[str] = []

    def _decide(self, *, last: bool) -> bool:
        opens = self._begins_line() and self._opens(last=last)
        if not opens:
            return opens is not None and self._show(1)
        thought, closed, _ = self._pending[len(_OPEN) :].partition(_CLOSE)
        if not (closed or last):
            return False
        self.thoughts.append(thought)
        return self._drop(len(_OPEN + thought + closed))

    def _opens(self, *, last: bool) -> bool | None:
        """Whether a tag opens thinking, first or alone on its line; None if unknown yet."""
        if not self._pending.startswith(_OPEN):
            return None if _OPEN.startswith(self._pending) and not last else False
        if not self._shown.strip():
            return True
        if self._shown.count("```") % 2:
            return False
        rest = self._pending[len(_OPEN) :].lstrip(" \t\r")
        return rest.startswith("\n") if rest else (last or None)


class _Fences(_Sieve):
    sign = "`"

    def _decide(self, *, last: bool) -> bool:
        if not self._pending.startswith("```"):
            return (last or not "```".startswith(self._pending)) and self._show(1)
        close = self._pending.find("```", 3)
        if close < 0 and not last:
            return False
        end = close + 3 if close >= 0 else len(self._pending)
        return self._drop(end) if self._mark in self._pending[:end] else self._show(end)


class _Objects(_Sieve):
    sign = "{"

    def _decide(self, *, last: bool) -> bool:
        if not self._begins_line() or not _OBJECT.match(self._pending):
            return self._show(1)
        try:
            data, end = json.JSONDecoder().raw_decode(self._pending)
        except ValueError:
            broken = last or _PROSE.search(self._pending)
            return bool(broken) and self._show(1)
        except RecursionError:
            return self._show(1)
        return self._drop(end) if data.get("nonce") == self._mark else self._show(end)
