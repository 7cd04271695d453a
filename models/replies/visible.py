import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["text", "thinking", "fence", "object", "code"]
Part = tuple[Kind, str]

_OPEN, _CLOSE, _FENCE = "<think>", "</think>", "```"
# A reply's first tag. A closing tag without an opening one counts only at the end of a line.
_TAG = re.compile(r"<think>|</think>(?P<ending>[ \t\r]*(?=\n|\Z))?")
_SIGNS: dict[str, Kind] = {"<": "thinking", "`": "fence", "{": "object"}
_SIGN = re.compile("[<`{]")
_OUTSIDE_STRING = re.compile(r"[{}\[\]\"\n]")
_INSIDE_STRING = re.compile(r"[\"\\\n]")
# A fence that does not start with a brace contains code, not a control block.
_CODE = re.compile(r"```[^\n`]*\n\s*[^\s{`]")
_NOT_JSON = re.compile(r"[^\s\"\[\]{},]")  # no line in a JSON object begins like this
# No part begins after more white space than this.
_MOST_SPACE = 100


def split_thinking(text: str) -> tuple[str, str]:
    """Split a reply into text and thinking, even if one think tag is missing."""
    thoughts: list[str] = []
    first = _TAG.search(text)
    if first and first.group("ending") is not None and text.count("`", 0, first.start()) % 2 == 0:
        thoughts, text = [text[: first.start()]], text[first.end() :]
    splitter = _Splitter()
    parts = [*splitter.feed(text), *splitter.finish()]
    thoughts += [
        part.removeprefix(_OPEN).removesuffix(_CLOSE) for kind, part in parts if kind == "thinking"
    ]
    speech = "".join(part for kind, part in parts if kind != "thinking")
    return speech, "\n".join(part.strip() for part in thoughts if part.strip())


class SpeechFilter:
    """Removes thinking and control blocks from a stream. Holds JSON back until it is complete."""

    def __init__(self, hidden_mark: str) -> None:
        self._mark = hidden_mark
        self._splitter = _Splitter()
        self._held = ""
        self.is_hiding = False
        """Whether a control block is being streamed now."""

    def feed(self, piece: str) -> str:
        shown = self._visible(self._splitter.feed(piece))
        if not self._splitter.is_holding:
            self._held, self.is_hiding = "", False
        elif self._mark and not self.is_hiding:
            self._held = (self._held + piece)[-len(piece) - len(self._mark) :]
            self.is_hiding = self._mark in self._held
        return shown

    def finish(self) -> str:
        return self._visible(self._splitter.finish())

    def _visible(self, parts: Iterator[Part]) -> str:
        return "".join(part for kind, part in parts if not self._is_hidden(kind, part))

    def _is_hidden(self, kind: Kind, part: str) -> bool:
        if kind == "object" and self._mark in part:
            return _nonce_of(part) == self._mark
        return kind == "thinking" or (kind == "fence" and self._mark in part)


def _nonce_of(text: str) -> object:
    try:
        return json.loads(text).get("nonce")
    except (ValueError, RecursionError):
        return None


@dataclass
class _Splitter:
    """Splits a stream into visible text, thinking and control blocks, in linear time."""

    _kind: Kind = "text"
    _held: list[str] = field(default_factory=list)
    _undecided: str = ""  # characters that may begin a part
    _tail: str = ""  # characters that may begin a closing mark
    _depth: int = 0
    _in_string: bool = False
    _escaped: bool = False
    _after_newline: bool = False
    _may_be_code: bool = False
    _line_is_blank: bool = True
    _has_text: bool = False

    @property
    def is_holding(self) -> bool:
        return self._kind in ("fence", "object")

    def feed(self, piece: str) -> Iterator[Part]:
        text, self._undecided = self._undecided + piece, ""
        at = 0
        while at < len(text):
            if self._kind != "text":
                end, ended = self._find_end(text, at)
                if self._kind == "code":
                    yield self._part("text", text[at:end])
                    self._kind = "text" if ended else "code"
                    at = end
                    continue
                self._held.append(text[at:end])
                if self._may_be_code and not ended:
                    yield from self._release_code()
                if ended:
                    whole, self._held, self._kind = "".join(self._held), [], "text"
                    yield self._part(ended, whole)
                at = end
                continue
            sign = _SIGN.search(text, at)
            end = sign.start() if sign else len(text)
            if end > at:
                yield self._part("text", text[at:end])
            at = end
            if sign:
                begins = self._begins(text, at)
                if begins is None:
                    self._undecided = text[at:]
                    return
                if begins:
                    at = self._begin(text, at)
                else:
                    yield self._part("text", sign.group())
                    at += 1

    def _release_code(self) -> Iterator[Part]:
        """Stream a code block as soon as it cannot be a control block."""
        whole = "".join(self._held)
        self._may_be_code = len(whole) < _MOST_SPACE
        if _CODE.match(whole):
            self._held, self._kind = [], "code"
            yield self._part("text", whole)

    def finish(self) -> Iterator[Part]:
        text, self._undecided = self._undecided, ""
        if text:
            yield self._part("thinking" if text.startswith(_OPEN) else "text", text)
        if self._held:
            yield self._part("text" if self._kind == "object" else self._kind, "".join(self._held))

    def _part(self, kind: Kind, text: str) -> Part:
        if kind != "thinking":
            _, newline, line = text.rpartition("\n")
            self._line_is_blank = (bool(newline) or self._line_is_blank) and not line.strip()
            self._has_text = self._has_text or bool(text.strip())
        return kind, text

    def _begins(self, text: str, at: int) -> bool | None:
        """Return whether a part begins at this character, or None if more text is needed."""
        if text[at] == "`":
            return _starts_with(text, at, _FENCE)
        if text[at] == "{":
            rest = text[at + 1 : at + _MOST_SPACE].lstrip()
            return rest[0] in '"}' if rest else _is_open_end(text, at)
        opens = self._line_is_blank and _starts_with(text, at, _OPEN)
        if not opens or not self._has_text:
            return opens
        rest = text[at + len(_OPEN) : at + _MOST_SPACE].lstrip(" \t\r")
        return rest[0] == "\n" if rest else _is_open_end(text, at)

    def _begin(self, text: str, at: int) -> int:
        self._kind = _SIGNS[text[at]]
        opening = {"thinking": _OPEN, "fence": _FENCE, "object": ""}[self._kind]
        self._held, self._tail, self._depth = [opening], "", 0
        self._may_be_code = self._kind == "fence"
        self._in_string = self._escaped = self._after_newline = False
        return at + len(opening)

    def _find_end(self, text: str, at: int) -> tuple[int, Kind | None]:
        """Return the end and kind of the part. The kind is None if the part does not end here."""
        if self._kind == "object":
            return self._find_end_of_object(text, at)
        close = _CLOSE if self._kind == "thinking" else _FENCE
        across = (self._tail + text[at : at + len(close)]).find(close)
        if across >= 0:
            return at + across + len(close) - len(self._tail), self._kind
        found = text.find(close, at)
        if found >= 0:
            return found + len(close), self._kind
        self._tail = (self._tail + text[max(at, len(text) - len(close)) :])[1 - len(close) :]
        return len(text), None

    def _find_end_of_object(self, text: str, at: int) -> tuple[int, Kind | None]:
        while at < len(text):
            if self._escaped:
                self._escaped, at = False, at + 1
                continue
            if self._after_newline and _NOT_JSON.match(text, at):
                return at, "text"
            self._after_newline = False
            found = (_INSIDE_STRING if self._in_string else _OUTSIDE_STRING).search(text, at)
            if found is None:
                break
            at, sign = found.end(), found.group()
            if sign == '"':
                self._in_string = not self._in_string
            elif sign == "\\":
                self._escaped = True
            elif sign == "\n":
                if self._in_string:  # a JSON string contains no line break
                    return found.start(), "text"
                self._after_newline = True
            else:
                self._depth += 1 if sign in "{[" else -1
                if self._depth <= 0:
                    return at, "object"
        return len(text), None


def _starts_with(text: str, at: int, mark: str) -> bool | None:
    given = text[at : at + len(mark)]
    return given == mark or (None if mark.startswith(given) else False)


def _is_open_end(text: str, at: int) -> bool | None:
    return None if len(text) - at < _MOST_SPACE else False
