"""Wraps text between words as the text arrives."""

import re
from collections.abc import Callable

from rich.cells import cell_len, chop_cells
from rich.text import Text

from contend.cli.view.format import plain

_MARKER = re.compile(r"^(?:[-*+•>]|\d{1,3}[.)])$")
# Text in scripts without spaces may be broken at any character.
_SPACELESS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
_PIECES = re.compile(rf"\n|[ \t]+|[{_SPACELESS}]|[^ \t\n{_SPACELESS}]+")
_BREAKABLE = re.compile(f"[{_SPACELESS}]")
_FENCE = "```"
# Indents the rest of a broken line of code, so that it is not mistaken for the next line.
_BROKEN_HANG = 2

Write = Callable[[str, str], None]
"""Writes text in a style."""


class WordWrapper:
    def __init__(
        self, width: int, write: Write, indent: int = 2, hang: int = 0, *, on_screen: bool = False
    ) -> None:
        self._print, self._indent, self._on_screen = write, indent, on_screen
        self.resize(width)
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
        self._unwritten, self._unwritten_style = "", ""

    def resize(self, width: int) -> None:
        self._width = max(20, width)

    def feed(self, text: str) -> None:
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
        self._flush()

    def write_whole(self, text: str) -> None:
        self.feed(text)

    def cut(self, *, between_words: bool = False) -> None:
        """End the line so that a message can be printed; the text continues below the message."""
        if between_words:
            self._end_word()
        if self._column:
            self._new_line()
            self._cut = True
        self._flush()

    def finish(self) -> None:
        self._end_word()
        self._gap = 0
        if self._column:
            self._new_line()
        self._flush()

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
        if self._blank_due:  # written only now, so that a text does not end in blank lines
            self._write("\n", "")
            self._blank_due = False
        whole = self._in_code and not self._on_screen
        lead = self._gap if whole else min(self._gap, self._width // 3)
        if word.startswith(_FENCE):
            self._in_code = not self._in_code
        self._verbatim = self._in_code or word.startswith((_FENCE, "|"))
        self._style = "heading" if word.strip("#") == "" and not self._in_code else ""
        marker = cell_len(word) + 1 if _MARKER.match(word) else 0
        more = _BROKEN_HANG if self._verbatim else marker
        self._hang = max(self._least_hang, lead + more)
        self._put(" " * (self._indent + lead))
        self._put_word(word)

    def _continue_line(self, word: str) -> None:
        gap = " " * (self._gap if self._verbatim else min(self._gap, 1))
        fits = self._column + len(gap) + cell_len(word) <= self._width
        if fits or (self._verbatim and not self._on_screen):
            self._put(gap + word)
            return
        self._new_line()
        self._hang_word(word)

    def _hang_word(self, word: str) -> None:
        self._put(" " * (self._indent + self._hang))
        self._put_word(word)

    def _put_word(self, word: str) -> None:
        room = max(2, self._width - self._column)
        first, *others = chop_cells(word, room) if self._on_screen else [word]
        self._put(first)
        if others:
            self._new_line()
            self._hang_word("".join(others))

    def _put(self, text: str) -> None:
        self._write(text, self._style)
        self._column += cell_len(text)

    def _new_line(self) -> None:
        self._write("\n", "")
        self._column = 0

    def _write(self, text: str, style: str) -> None:
        """Buffer the text; if the style has changed, flush the buffer first."""
        if style != self._unwritten_style:
            self._flush()
        self._unwritten, self._unwritten_style = self._unwritten + text, style

    def _flush(self) -> None:
        if self._unwritten:
            self._print(self._unwritten, self._unwritten_style)
        self._unwritten = ""


class Lines:
    """Collects wrapped lines for a column, and breaks words that are wider than the column."""

    def __init__(self, width: int, style: str = "", indent: int = 0, hang: int = 0) -> None:
        self._width, self._usual_style = width, style
        self._ended: list[Text] = []
        self._begun, self._style = "", ""
        self._wrapper = WordWrapper(width, self._write, indent, hang, on_screen=True)

    def feed(self, text: str) -> None:
        self._wrapper.feed(text)

    def finished(self) -> list[Text]:
        self._wrapper.finish()
        return self._ended

    def tail(self, count: int) -> list[Text]:
        return [*self._ended[-count:], *self._broken()][-count:] if count else []

    def _write(self, text: str, style: str) -> None:
        *ended, begun = text.split("\n")
        for line in ended:
            self._add(line, style)
            self._ended += self._broken() or [Text()]
            self._begun = ""
        self._add(begun, style)

    def _add(self, text: str, style: str) -> None:
        if text:
            self._begun, self._style = self._begun + text, style

    def _broken(self) -> list[Text]:
        fits = cell_len(self._begun) <= self._width
        parts = [self._begun] * bool(self._begun) if fits else chop_cells(self._begun, self._width)
        lines = [Text(part, self._usual_style) for part in parts if part]
        for line in lines:
            line.stylize(self._style)
        return lines


def lines_of(text: str, width: int, style: str = "", indent: int = 0, hang: int = 0) -> list[Text]:
    lines = Lines(width, style, indent, hang)
    lines.feed(text)
    return lines.finished()


def cut(line: Text, width: int) -> Text:
    line.truncate(max(1, width), overflow="ellipsis")
    return line
