"""Renders the Markdown of models as HTML that is safe to show: no scripts, no images, no styles."""

from collections.abc import Sequence
from functools import cache, lru_cache
from html import escape
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.texmath import texmath_plugin

# The page's own headings go down to level 3.
_DEMOTED_BY = 3
_LOWEST_HEADING = 6
# Longer ones are shown as they are: highlighting and formulas take time.
_LONGEST_CODE = 40_000
_LONGEST_FORMULA = 2_000
_LONGEST_OPEN_BLOCK = 20_000
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
    """Return safe HTML; headings are demoted below those of the page."""
    parser = _parser()
    return _render(parser, parser.parse(markdown))


class StreamedHtml:
    """Renders a text that is still being written: only its last block can change."""

    def __init__(self) -> None:
        self._open = ""
        self._done = 0

    def add(self, text: str) -> tuple[int, str]:
        """Add text; return the number of finished blocks, and the HTML of all others."""
        self._open += text
        finished = self._done
        if len(self._open) > _LONGEST_OPEN_BLOCK:
            return finished, f"<pre>{escape(self._open, quote=False)}</pre>"
        html = to_html(self._open)
        self._finish_blocks()
        return finished, html

    def _finish_blocks(self) -> None:
        starts = [
            token.map[0]
            for token in _parser().parse(self._open)
            if token.level == 0 and token.nesting >= 0 and token.map
        ]
        if len(starts) > 1:
            lines = self._open.splitlines(keepends=True)
            self._done += len(starts) - 1
            self._open = "".join(lines[starts[-1] :])


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("js-default", {"html": False, "linkify": False, "highlight": _highlight})
    parser.disable("image")
    # Single dollars are often amounts of money.
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True)
    parser.use(texmath_plugin, delimiters="brackets")
    for kind in ("math_inline", "math_single"):
        parser.add_render_rule(kind, _inline_formula)
    for kind in ("math_block", "math_block_label", "math_inline_double", "math_block_eqno"):
        parser.add_render_rule(kind, _display_formula)
    return parser


def _render(parser: MarkdownIt, tokens: Sequence[Token]) -> str:
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
