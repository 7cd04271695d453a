"""Renders Markdown for the terminal, either whole or block by block as it arrives."""

from functools import cache, lru_cache
from io import StringIO

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.texmath import texmath_plugin
from rich import markdown
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from contend.cli.view.format import plain
from contend.cli.view.live import Frame
from contend.cli.view.page import INDENT, Page
from contend.cli.view.theme import THEME

# The colors of the terminal's own palette, on its own background.
_CODE_THEME = "ansi_dark"
# A blank line ends these blocks; a list may continue after a blank line.
_ENDED_BY_BLANK_LINE = ("paragraph_open", "table_open", "heading_open", "hr", "fence")


@lru_cache(maxsize=64)
def markdown_lines(text: str, width: int) -> list[Text]:
    console = _console()
    options = console.options.update(width=max(1, width))
    lines = [
        Text.assemble(*((part.text, part.style or "") for part in line if not part.control))
        for line in console.render_lines(_Rendered(plain(text)), options, pad=False)
    ]
    for line in lines:
        line.rstrip()
    while lines and not lines[-1].plain:
        lines.pop()
    first = next((at for at, line in enumerate(lines) if line.plain), 0)
    return lines[first:]


@cache
def _console() -> Console:
    return Console(
        file=StringIO(),
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        theme=THEME,
        highlight=False,
        markup=False,
        emoji=False,
    )


class _Heading(markdown.Heading):
    LEVEL_ALIGN = dict.fromkeys(markdown.Heading.LEVEL_ALIGN, "left")


class _CodeBlock(markdown.CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        code = str(self.text).rstrip()
        shown = Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True)
        yield Padding(shown, (0, 0, 0, 2))


class _Table(markdown.TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in super().__rich_console__(console, options):
            if isinstance(part, Table):
                part.show_edge = False
                for column in part.columns:
                    column.overflow = "fold"
            yield part


class _Rendered(markdown.Markdown):
    elements = markdown.Markdown.elements | {
        "heading_open": _Heading,
        "fence": _CodeBlock,
        "code_block": _CodeBlock,
        "table_open": _Table,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme=_CODE_THEME, hyperlinks=False)
        self.parsed = [_as_shown(token) for token in _parser().parse(text)]


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable("image")
    # A single dollar sign is often an amount of money.
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.use(texmath_plugin, delimiters="brackets")
    return parser


def _as_shown(token: Token) -> Token:
    """Return the token with formulas as source text, and with hard instead of soft line breaks."""
    if token.type.startswith("math_block"):
        ends = ("\\[", "\\]") if token.markup.startswith("\\") else ("$$", "$$")
        content = f"{ends[0]}\n{token.content.strip()}\n{ends[1]}"
        return Token("fence", "code", 0, content=content)
    for child in token.children or ():
        if child.type == "softbreak":
            child.type = "hardbreak"
        elif child.type.startswith("math_"):
            child.type, child.content = "text", _formula(child)
    return token


def _formula(token: Token) -> str:
    if token.type == "math_inline_double":
        return f"$${token.content}$$"
    if "\\" in token.markup:
        return f"\\({token.content}\\)"
    return f"${token.content}$"


class MarkdownBlocks:
    def __init__(self) -> None:
        self.pending = ""

    def feed(self, text: str) -> str:
        self.pending += text
        if "\n" not in text:
            return ""
        blocks = [
            token
            for token in _parser().parse(self.pending)
            if token.level == 0 and token.nesting >= 0 and token.map
        ]
        lines = self.pending.split("\n")
        if not blocks:
            return ""
        last = blocks[-1]
        end = last.map[0] if last.map else 0
        if last.type in _ENDED_BY_BLANK_LINE and _ends_with_blank_line(last, lines):
            end = len(lines)
        done, self.pending = "\n".join(lines[:end]), "\n".join(lines[end:])
        return done

    def finish(self) -> str:
        rest, self.pending = self.pending, ""
        return rest


def _ends_with_blank_line(last: Token, lines: list[str]) -> bool:
    start, end = last.map or (0, 0)
    closing = lines[end - 1].strip()
    is_closed = closing and not closing.strip(last.markup[:1]) and end - start > 1
    if last.type == "fence" and not is_closed:
        return False
    return not "".join(lines[end:]).strip() and len(lines) > end + (last.type != "fence")


class MarkdownLines:
    def __init__(self, width: int) -> None:
        self._width, self._blocks = width, MarkdownBlocks()
        self._done: list[Text] = []

    def feed(self, text: str) -> None:
        if done := self._blocks.feed(text).strip("\n"):
            self._done = self._joined(done)

    def tail(self, count: int) -> list[Text]:
        return self._joined(self._blocks.pending)[-count:] if count > 0 else []

    def _joined(self, text: str) -> list[Text]:
        more = markdown_lines(text, self._width) if text.strip() else []
        return [*self._done, *[Text()] * bool(self._done and more), *more]


class MarkdownWriter:
    def __init__(self, page: Page) -> None:
        self._page, self._blocks = page, MarkdownBlocks()
        self._has_printed = False
        self.started = False
        self.frame: Frame = self._draw

    def resize(self, width: int) -> None:
        pass

    def feed(self, text: str) -> None:
        self.started = self.started or bool(text.strip())
        self._print(self._blocks.feed(text))
        if self._blocks.pending.strip():
            self._page.live.set(self.frame)

    def write_whole(self, text: str) -> None:
        self.started = True
        self._print(text)

    def cut(self, *, between_words: bool = False) -> None:
        pass

    def finish(self) -> None:
        self._page.live.remove(self.frame)
        self._print(self._blocks.finish())

    def _print(self, text: str) -> None:
        lines = markdown_lines(text, self._page.width - INDENT) if text.strip() else []
        if not lines:
            return
        self._page.print(*[Text()] * self._has_printed, *map(_indented, lines))
        self._has_printed = True

    def _draw(self, width: int, height: int) -> list[Text]:
        room = min(width, self._page.width) - INDENT
        lines = [Text()] * self._has_printed + markdown_lines(self._blocks.pending, room)
        return [_indented(line) for line in lines[-height:]]


def _indented(line: Text) -> Text:
    return Text.assemble(" " * INDENT, line) if line.plain else Text()
