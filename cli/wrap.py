"""Wraps text at words while it is still arriving."""

import re
from collections.abc import Callable

from rich.cells import cell_len

from cli.words import plain

_MARKER = re.compile(r"^(?:[-*+•>]|\d{1,3}[.)])$")
# Scripts without spaces may be broken at any character.
_SPACELESS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_PIECES = re.compile(rf"\n|[ \t]+|[{_SPACELESS}]|[^ \t\n{_SPACELESS}]+")
_BREAKABLE = re.compile(f"[{_SPACELESS}]")
_FENCE = "```"

Write = Callable[[str, str], None]
"""Takes text and a style."""


class WordWrapper:
    """Writes words as soon as they are whole; list items hang, code and tables stay as they are."""

    def __init__(self, width: int, write: Write, indent: int = 2, hang: int = 0) -> None:
        self._width, self._write, self._indent = max(20, width), write, indent
        self._word = ""
        self._gap = 0
        self._column = 0
        self._hang = self._least_hang = hang
        self._style = ""
        self._in_code = False
        self._verbatim = False
        self._blank_due = False
        self._cut = False
        self.started = False

    def feed(self, text: str) -> None:
        """Take the next piece of text."""
        for piece in _PIECES.findall(plain(text)):
            if piece == "\n":
                self._end_line()
            elif piece.isspace():
                self._end_word()
                self._gap += len(piece.expandtabs(4))
            elif _BREAKABLE.match(piece):
                self._end_word()
                self._word = piece
                self._end_word()
            else:
                self._word += piece

    def cut(self) -> None:
        """Leave the line for a message; the text goes on below it as if wrapped there."""
        if self._column:
            self._new_line()
            self._cut = True

    def finish(self) -> None:
        """Write what is left and end the line."""
        self._end_word()
        self._gap = 0
        if self._column:
            self._new_line()

    def _end_line(self) -> None:
        self._end_word()
        if self._column:
            self._new_line()
        elif self._cut:
            self._cut = False
        elif self._in_code:
            self._write("\n", "")
        else:
            self._blank_due = self.started
        self._gap = 0
        self._style, self._verbatim = "", False

    def _end_word(self) -> None:
        word, self._word = self._word, ""
        if not word:
            return
        self.started = True
        if self._cut:
            self._cut = False
            self._hang_word(word)
        elif self._column == 0:
            self._begin_line(word)
        else:
            self._continue_line(word)
        self._gap = 0

    def _begin_line(self, word: str) -> None:
        if self._blank_due:  # held back until now: none is wanted at the end of a text
            self._write("\n", "")
            self._blank_due = False
        lead = self._gap if self._in_code else min(self._gap, self._width // 3)
        if word.startswith(_FENCE):
            self._in_code = not self._in_code
        self._verbatim = self._in_code or word.startswith((_FENCE, "|"))
        self._style = "bold" if word.strip("#") == "" and not self._in_code else ""
        marker = cell_len(word) + 1 if _MARKER.match(word) else 0
        self._hang = max(self._least_hang, lead + marker)
        self._put(" " * (self._indent + lead))
        self._put(word)

    def _continue_line(self, word: str) -> None:
        gap = " " * (self._gap if self._verbatim else min(self._gap, 1))
        fits = self._column + len(gap) + cell_len(word) <= self._width
        if fits or self._verbatim:
            self._put(gap + word)
            return
        self._new_line()
        self._hang_word(word)

    def _hang_word(self, word: str) -> None:
        self._put(" " * (self._indent + self._hang))
        self._put(word)

    def _put(self, text: str) -> None:
        self._write(text, self._style)
        self._column += cell_len(text)

    def _new_line(self) -> None:
        self._write("\n", "")
        self._column = 0
