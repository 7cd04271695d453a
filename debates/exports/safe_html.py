"""Renders Markdown from models as safe HTML, without scripts, images or styles."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.texmath import texmath_plugin

# The page's own headings go down to level 3.
_DEMOTED_BY = 3
_LOWEST_HEADING = 6
# Longer blocks are shown as plain code: highlighting and formulas take time.
_LONGEST_CODE = 40_000
_LONGEST_FORMULA = 2_000
_LONGEST_OPEN_BLOCK = 20_000
_LONGEST_MARKDOWN = 100_000
# Parsing some paragraphs takes quadratic time: a hundred thousand `[` take seconds.
_LONGEST_PARAGRAPH = 5_000
# Lines as the parser counts them; `splitlines` splits at other characters, too.
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_MATH_TAGS = (
    "math mrow mi mo mn ms mtext mspace msup msub msubsup mfrac msqrt mroot mover munder "
    "munderover mtable mtr mtd mstyle mpadded mphantom menclose"
)
_TAGS = frozenset(
    "p br hr strong em s code pre blockquote ul ol li h4 h5 h6 a table thead tbody tr th td span "
    f"div {_MATH_TAGS}".split()
)
_ATTRIBUTES = {
    "a": {"href", "title"},
    "code": {"class"},
    "pre": {"class"},
    "span": {"class"},
    "div": {"class"},
    "ol": {"start"},
    "math": {"display"},
    "mo": {"stretchy", "fence", "separator", "lspace", "rspace", "minsize", "maxsize"},
    "mspace": {"width"},
    "mtd": {"columnalign"},
    "mfrac": {"linethickness"},
    "mi": {"mathvariant"},
}


@lru_cache(maxsize=512)
def to_html(markdown: str) -> str:
    if len(markdown) > _LONGEST_MARKDOWN:
        return _as_it_is(markdown)
    return _render(_parser().parse(markdown))


class StreamedHtml:
    """Renders growing Markdown; new text can change only the last block."""

    def __init__(self) -> None:
        self._open = ""  # the text from the last block on
        self._done = 0  # the number of blocks before it
        self._done_html = self._open_html = ""
        self._is_rendered = True

    @property
    def has_text(self) -> bool:
        return bool(self._open or self._done)

    def add(self, text: str) -> None:
        self._open += text
        self._is_rendered = self._is_rendered and not text

    def render(self) -> tuple[int, str]:
        """Return the number of blocks finished before this call, and the HTML of later blocks."""
        finished, before = self._done, len(self._done_html)
        if not self._is_rendered:
            self._render_open()
        return finished, self._done_html[before:] + self._open_html

    def whole(self) -> str:
        if not self._is_rendered:
            self._render_open()
        return self._done_html + self._open_html

    def _render_open(self) -> None:
        self._is_rendered = True
        if len(self._open) <= _LONGEST_MARKDOWN:
            self._finish_blocks()
        if len(self._open) > _LONGEST_OPEN_BLOCK:  # do not render it again for every chunk
            self._done_html += _as_it_is(self._open)
            self._done += 1
            self._open = self._open_html = ""

    def _finish_blocks(self) -> None:
        tokens = _parser().parse(self._open)
        first = [
            (at, token.map[0])
            for at, token in enumerate(tokens)
            if token.level == 0 and token.nesting >= 0 and token.map
        ]
        at, line = first[-1] if first else (0, 0)
        self._done_html += _render(tokens[:at])
        self._done += max(len(first) - 1, 0)
        self._open = "".join(_LINE.findall(self._open)[line:])
        self._open_html = _render(tokens[at:])


def _as_it_is(text: str) -> str:
    return f"<pre>{escape(text, quote=False)}</pre>\n"


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": False, "linkify": False, "highlight": _highlight})
    parser.disable("image")
    # Single dollars are often amounts of money.
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.use(texmath_plugin, delimiters="brackets")
    parser.core.ruler.before("inline", "long_paragraphs", _leave_long_paragraphs)
    for kind in ("math_inline", "math_single"):
        parser.add_render_rule(kind, _inline_formula)
    for kind in ("math_block", "math_block_label", "math_inline_double", "math_block_eqno"):
        parser.add_render_rule(kind, _display_formula)
    return parser


def _leave_long_paragraphs(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and len(token.content) > _LONGEST_PARAGRAPH:
            token.type = "text"


def _render(tokens: Sequence[Token]) -> str:
    parser = _parser()
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            level = min(int(token.tag[1]) + _DEMOTED_BY, _LOWEST_HEADING)
            token.tag = f"h{level}"
    html = parser.renderer.render(tokens, parser.options, {})
    return nh3.clean(
        html,
        tags=set(_TAGS),
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )


def _highlight(code: str, language: str, _: str) -> str:
    from pygments import highlight  # slow to import
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    if not language or len(code) > _LONGEST_CODE:
        return ""
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return ""
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def _inline_formula(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return _formula(tokens[at].content, "inline")


def _display_formula(_: Any, tokens: Sequence[Token], at: int, *__: Any) -> str:
    return f'<div class="formula">{_formula(tokens[at].content, "block")}</div>\n'


@lru_cache(maxsize=512)
def _formula(latex: str, display: str) -> str:
    from latex2mathml.converter import convert

    shown = f'<code class="formula">{escape(latex)}</code>'
    if len(latex) > _LONGEST_FORMULA:
        return shown
    try:
        return convert(latex, display=display)
    except Exception:  # noqa: BLE001 - models write invalid formulas in many ways
        return shown
