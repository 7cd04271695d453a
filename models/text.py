"""Model text made safe to keep: cleaned, and parted from the model's private thinking."""

import re
from collections.abc import Callable

# A control character other than tab and newline shows nothing and can drive a terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_OPEN, _CLOSE = "<think>", "</think>"


def clean(text: str) -> str:
    """Drop what no database takes (NUL, lone surrogates); a user's text is otherwise as written."""
    return _SURROGATE.sub("", text.replace("\x00", ""))


def clean_piece(text: str) -> str:
    """Clean a piece of a model's text as it streams, terminals included."""
    return _CONTROL.sub("", clean(text))


def clean_reply(text: str) -> str:
    """Clean a model's whole text for the transcript."""
    return clean_piece(text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def split_thinking(text: str) -> tuple[str, str]:
    """Part a reply into speech and thinking, for closed, unclosed and close-only think tags."""
    thoughts: list[str] = []
    head, closed, rest = text.partition(_CLOSE)
    if closed and _OPEN not in head:
        thoughts.append(head)
        text = rest
    speech: list[str] = []
    while _OPEN in text:
        before, _, after = text.partition(_OPEN)
        thought, _, text = after.partition(_CLOSE)
        speech.append(before)
        thoughts.append(thought)
    speech.append(text)
    return "".join(speech), "\n".join(part.strip() for part in thoughts if part.strip())


class SpeechFilter:
    """Lets a reply's visible text through as it streams, holding back thinking and code fences.

    A fence is held until it closes, because only then is it known whether it is the control
    block, which readers never see.
    """

    def __init__(self, hidden_mark: str) -> None:
        self._thinking = _Sieve(_OPEN, _CLOSE, lambda _: True)
        self._fences = _Sieve("```", "```", lambda block: hidden_mark in block)

    def feed(self, piece: str) -> str:
        """Take the next piece; give back what a reader may see now."""
        return self._fences.feed(self._thinking.feed(piece))

    def finish(self) -> str:
        """Give back what was held although it turned out to be plain text."""
        return self._fences.feed(self._thinking.finish()) + self._fences.finish()


class _Sieve:
    """Passes text on, except what stands between two marks: that waits for its end."""

    def __init__(self, start: str, end: str, hides: Callable[[str], bool]) -> None:
        self._start, self._end, self._hides = start, end, hides
        self._pending = ""

    def feed(self, piece: str) -> str:
        self._pending += piece
        shown = ""
        while (at := self._pending.find(self._start)) >= 0:
            close = self._pending.find(self._end, at + len(self._start))
            if close < 0:
                return shown + self._take(at)
            shown += self._take(at)
            block = self._take(close + len(self._end) - at)
            shown += "" if self._hides(block) else block
        return shown + self._take(len(self._pending) - self._unfinished())

    def finish(self) -> str:
        held = self._take(len(self._pending))
        return "" if held.startswith(self._start) and self._hides(held) else held

    def _take(self, count: int) -> str:
        taken, self._pending = self._pending[:count], self._pending[count:]
        return taken

    def _unfinished(self) -> int:
        """The length of a tail that may become the start."""
        sizes = range(len(self._start) - 1, 0, -1)
        return next((n for n in sizes if self._pending.endswith(self._start[:n])), 0)
