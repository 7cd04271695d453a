"""Rendering model text as formatted, safe HTML."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.token import Token

from contend.debates.exports import safe_html
from contend.debates.exports.safe_html import StreamedHtml, to_html

TEXT = """\
# Keep the *monolith*

Costs are $5 now and $6 later; $n^2$ grows, and \\(a_1 \\le b\\).

- one
- two

  still two

1. first
   ```python
   def split(team: int) -> bool:
       return team > 4
   ```

> quoted

| Option | Cost |
|---|---:|
| keep | 1 |

$$\\frac{1}{2}$$

```
plain
```
The end.
"""
ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "![x](https://evil.example/p.png)",
    "![x](x 'onerror=alert(1)')",
    "<svg onload=alert(1)>",
    "<math><mtext><script>alert(1)</script></mtext></math>",
    "$\\text{<script>alert(1)</script>}$",
    "$\\href{javascript:alert(1)}{x}$",
    '$$\\class{x" onclick="alert(1)}{y}$$',
    "$\\mathrm{<img src=x onerror=alert(1)>}$",
    "```<script>\nalert(1)\n```",
    '```"onclick=alert(1)\nx\n```',
    "```html\n<script>alert(1)</script>\n```",
    "`<b onmouseover=alert(1)>`",
    "<a href='javascript:alert(1)'>x</a>",
    "<style>body{display:none}</style>",
    "<iframe src=//evil.example></iframe>",
    "[a]: javascript:alert(1)\n\n[a]",
    '[x](https://a.example "onclick=alert(1)")',
    '<https://a.example/"onclick=alert(1)>',
    "<javascript:alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#x6A;avascript:alert(1)",
    "[x](&#x6A;avascript:alert(1))",
    "# <script>alert(1)</script>",
    "| <img src=x onerror=alert(1)> |\n|---|\n| x |",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><svg/onload=alert(1)>",
    "</style><img src=x onerror=alert(1)>",
    "<!--><script>alert(1)</script-->",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>x</details>",
    "<video><source onerror=alert(1)></video>",
    "<object data=javascript:alert(1)></object>",
    "<form action=javascript:alert(1)><button>x</button></form>",
    "<base href=https://evil.example/>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<template><img src=x onerror=alert(1)></template>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s></svg>",
    "[x](java\tscript:alert(1))",
    '<img src="https://evil.example/p.png">',
]


class Elements(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


def assert_harmless(html: str) -> None:
    found = Elements(html)
    assert set(found.tags) <= safe_html._TAGS
    assert {name for name, _ in found.attributes} <= {
        *("href", "title", "class", "start", "display", "rel", "stretchy", "fence", "separator"),
        *("lspace", "rspace", "width", "columnalign", "linethickness", "mathvariant"),
        *("minsize", "maxsize"),
    }
    for name, value in found.attributes:
        assert (
            name != "href" or value.startswith(("http:", "https:", "mailto:")) or ":" not in value
        )


def test_formats_common_markdown() -> None:
    html = to_html(TEXT)
    assert "<h4>Keep the <em>monolith</em></h4>" in html
    assert "$5 now and $6 later" in html
    assert html.count("<math") == 3
    assert '<span class="k">def</span>' in html
    assert "<td>keep</td>" in html
    assert "<blockquote>" in html


@pytest.mark.parametrize("attack", ATTACKS)
def test_known_attacks_produce_no_active_content(attack: str) -> None:
    assert_harmless(to_html(attack))
    stream = StreamedHtml()
    stream.add(attack)
    assert_harmless(stream.render()[1])


@given(st.text(alphabet="<>&\"'`$\\[]()!#*_-|:/= \n\tscriptonxjava", max_size=80))
def test_random_text_produces_no_active_content(text: str) -> None:
    assert_harmless(to_html(text))


def test_links_have_noopener_noreferrer_and_nofollow() -> None:
    html = to_html("[x](https://a.example/)")
    assert html == '<p><a href="https://a.example/" rel="noopener noreferrer nofollow">x</a></p>\n'


@pytest.mark.parametrize("step", [1, 7, 40])
def test_streamed_html_ends_equal_to_html_of_the_whole_text(step: int) -> None:
    stream, blocks = StreamedHtml(), [""]
    for start in range(0, len(TEXT), step):
        stream.add(TEXT[start : start + step])
        done, html = stream.render()
        assert done <= len(blocks)
        blocks[done:] = split_blocks(html)
        assert split_blocks(stream.whole()) == blocks
    assert blocks == split_blocks(to_html(TEXT))


def split_blocks(html: str) -> list[str]:
    """Split HTML at its top-level elements."""
    blocks, depth, start = [], 0, 0
    for at, char in enumerate(html):
        if char == "<" and html[at + 1] == "/":
            depth -= 1
            if depth == 0:
                end = html.index(">", at) + 1
                blocks.append(html[start:end])
                start = end + 1
        elif char == "<" and not html.startswith("<br", at):
            depth += 1
    return blocks


def test_a_long_unclosed_block_is_shown_as_plain_text() -> None:
    stream = StreamedHtml()
    stream.add("One.\n\n```\n" + "<b>\n" * 10_000)
    assert stream.render()[1].startswith("<p>One.</p>\n<pre>```\n&lt;b&gt;")
    stream.add("more")
    assert stream.render() == (2, "<p>more</p>\n")  # the long block is not sent again


def test_an_overlong_text_is_shown_as_plain_text() -> None:
    text = "*a* <b>\n\n" * 20_000
    stream = StreamedHtml()
    stream.add(text)
    assert to_html(text) == stream.whole()
    assert to_html(text).startswith("<pre>*a* &lt;b&gt;")


def test_an_overlong_paragraph_is_shown_as_plain_text() -> None:
    html = to_html("# A *b*\n\n" + r"\(" * 5_000 + "<b>\n\nAn *end*.")
    assert html.startswith("<h4>A <em>b</em></h4>\n<p>\n\\(\\(")
    assert html.endswith("&lt;b&gt;</p>\n<p>An <em>end</em>.</p>\n")


def test_streaming_parses_only_the_unfinished_block_and_new_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[str] = []
    parse = safe_html._parser().parse

    def note(text: str) -> list[Token]:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(safe_html._parser(), "parse", note)
    stream = StreamedHtml()
    for piece in ("One.\n\n", "Two", " three.\n\n", "Four"):
        stream.add(piece)
        for _ in range(2):
            stream.render()
            stream.whole()
    assert parsed == ["One.\n\n", "One.\n\nTwo", "Two three.\n\n", "Two three.\n\nFour"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_only_markdown_line_endings_end_a_block(end: str) -> None:
    text = f"a\u2028b\x0cc{end}{end}d\x85e{end}{end}f"
    stream = StreamedHtml()
    for char in text:
        stream.add(char)
        stream.render()
    assert split_blocks(stream.whole()) == split_blocks(to_html(text))


def test_an_invalid_or_overlong_formula_is_shown_as_source() -> None:
    assert to_html("$x^$") == '<p><code class="formula">x^</code></p>\n'
    assert to_html("$" + "x" * 3_000 + "$").startswith('<p><code class="formula">xxx')
