"""The page a debate is written on: text in a readable width, only ever appended."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from contend.cli.view.console import WIDEST_TEXT
from contend.cli.view.format import plain
from contend.cli.view.live import LiveArea
from contend.cli.view.wrap import WordWrapper

INDENT = 2


@dataclass(frozen=True)
class Paragraph:
    """Text of one style; its further lines hang by so many cells."""

    text: str
    style: str = ""
    hang: int = 0
    indent: int = INDENT


class Page:
    """Writes to one console; what is live below the text gives way to it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.live = LiveArea(console)

    @property
    def width(self) -> int:
        """The width of prose; only lanes may be wider."""
        return min(self.console.width, WIDEST_TEXT)

    def line(self, text: str = "", style: str = "") -> None:
        """One line as it is."""
        self.print(Text(plain(text), style=style))

    def print(self, *lines: Text) -> None:
        """Lines that are laid out already."""
        self.live.hide()
        for line in lines:
            self.console.print(line, soft_wrap=True)

    def paragraph(self, text: str, style: str = "", indent: int = INDENT, hang: int = 0) -> None:
        """Text, wrapped at words."""
        self.live.hide()
        # What is too wide stays whole here: a path or a command is there to be copied.
        wrapper = WordWrapper(self.width, lambda piece, _: self.write(piece, style), indent, hang)
        wrapper.feed(text)
        wrapper.finish()

    def paragraphs(self, paragraphs: Iterable[Paragraph]) -> None:
        """One below the other; an empty one is an empty line."""
        for each in paragraphs:
            if each.text:
                self.paragraph(each.text, each.style, each.indent, each.hang)
            else:
                self.line()

    def write(self, text: str, style: str = "") -> None:
        """A piece of a line, where nothing is live."""
        self.console.print(Text(text, style=style), end="", soft_wrap=True)

    def rule(self, title: str) -> None:
        """The head of a section."""
        self.line()
        head = Rule(Text(title, style="bold"), style="dim", characters="─")
        self.console.print(head, width=self.width)

    def facts(self, facts: list[tuple[str, str]]) -> None:
        """Values beside their labels."""
        widest = max(len(label) for label, _ in facts) + 2
        for label, value in facts:
            padded = label.ljust(widest).replace(" ", "\u00a0")  # a space would be wrapped away
            self.paragraph(f"{padded}{value}", indent=0, hang=widest)
