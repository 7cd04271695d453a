"""Model text made safe to keep: cleaned, and parted from the model's private thinking."""

import re

# A control character other than tab and newline shows nothing and can drive a terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_OPEN, _CLOSE = "<think>", "</think>"


def clean(text: str) -> str:
    """Drop what no database takes (NUL, lone surrogates); a user's text is otherwise as written."""
    return _SURROGATE.sub("", text.replace("\x00", ""))


def clean_reply(text: str) -> str:
    """Clean a model's text for the transcript, terminals included."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", clean(unified)).strip()


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
        self._hidden_mark = hidden_mark
        self._pending = ""

    def feed(self, piece: str) -> str:
        """Take the next piece; give back what a reader may see now."""
        self._pending += piece
        return "".join(iter(self._next_visible, ""))

    def finish(self) -> str:
        """Give back what was held although it turned out to be plain text."""
        pending, self._pending = self._pending, ""
        hide = pending.startswith(_OPEN) or (
            pending.startswith("```") and self._hidden_mark in pending
        )
        return "" if hide else pending

    def _next_visible(self) -> str:
        for start, end in ((_OPEN, _CLOSE), ("```", "```")):
            if self._pending.startswith(start):
                return self._past_hidden(start, end)
        cut = _next_special(self._pending)
        visible, self._pending = self._pending[:cut], self._pending[cut:]
        return visible

    def _past_hidden(self, start: str, end: str) -> str:
        close = self._pending.find(end, len(start))
        if close < 0:
            return ""
        block = self._pending[: close + len(end)]
        self._pending = self._pending[close + len(end) :]
        hide = start == _OPEN or self._hidden_mark in block
        return self._next_visible() if hide else block


def _next_special(text: str) -> int:
    """Index of the first think tag or fence, or of a tail that may become one."""
    found = [at for at in (text.find(_OPEN), text.find("```")) if at >= 0]
    if found:
        return min(found)
    for size in range(min(len(_OPEN) - 1, len(text)), 0, -1):
        tail = text[-size:]
        if _OPEN.startswith(tail) or "```".startswith(tail):
            return len(text) - size
    return len(text)
