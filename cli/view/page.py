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
    text: str
    style: str = ""
    hang: int = 0
    indent: int = INDENT


class Page:
    def __init__(self, console: Console, *, is_raw: bool = False) -> None:
        self.console = console
        self.live = LiveArea(console)
        self.renders_markdown = console.is_terminal and not is_raw

    @property
    def width(self) -> int:
        return min(self.console.width, WIDEST_TEXT)

    def line(self, text: str = "", style: str = "") -> None:
        self.print(Text(plain(text), style=style))

    def print(self, *lines: Text) -> None:
        self.live.hide()
        for line in lines:
            self.console.print(line, soft_wrap=True)

    def paragraph(self, text: str, style: str = "", indent: int = INDENT, hang: int = 0) -> None:
        self.live.hide()
        # Long words are not broken, so that users can copy paths and commands.
        wrapper = WordWrapper(self.width, lambda piece, _: self.write(piece, style), indent, hang)
        wrapper.feed(text)
        wrapper.finish()

    def paragraphs(self, paragraphs: Iterable[Paragraph]) -> None:
        for each in paragraphs:
            if each.text:
                self.paragraph(each.text, each.style, each.indent, each.hang)
            else:
                self.line()

    def write(self, text: str, style: str = "") -> None:
        """Print part of a line; must not be called while a live display is active."""
        self.console.print(Text(text, style=style), end="", soft_wrap=True)

    def rule(self, title: str) -> None:
        self.line()
        head = Rule(Text(title, style="heading"), style="muted", characters="─")
        self.console.print(head, width=self.width)

    def facts(self, facts: list[tuple[str, str]]) -> None:
        widest = max(len(label) for label, _ in facts) + 2
        for label, value in facts:
            padded = label.ljust(widest).replace(" ", "\u00a0")  # the wrapper keeps these spaces
            self.paragraph(f"{padded}{value}", indent=0, hang=widest)
