"""Markdown rendered as terminal lines, whole or block by block while it streams."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from contend.cli.view.markdown import MarkdownBlocks, MarkdownLines, markdown_lines

RICH = """# Plan

Keep **one** deployable, with `modules`:

- a list
  - nested
1. numbered

| Option | Cost |
|---|---:|
| Monolith | 1 |

> A quote.

```python
def total(a: int) -> int:
    return a + 1
```

Last line."""


def _shown(text: str, width: int = 60) -> list[str]:
    return [line.plain for line in markdown_lines(text, width)]


def test_each_element_is_rendered() -> None:
    lines = _shown(RICH)
    assert lines[0] == "Plan"
    assert "Keep one deployable, with modules:" in lines
    assert {" • a list", "    • nested", " 1 numbered", "▌ A quote."} <= set(lines)
    assert any(line.split() == ["Option", "Cost"] for line in lines)
    assert "  def total(a: int) -> int:" in lines
    assert "      return a + 1" in lines
    assert not any(sign in line for line in lines for sign in ("**", "```", "|--", "# "))
    assert lines[-1] == "Last line."


@pytest.mark.parametrize("width", range(20, 40))
def test_a_table_keeps_every_word_beside_an_emoji(width: int) -> None:
    said = "🔴 S1 xx1 xxx2 xx3 xxxx4 xxxxxx5 xxxx6"
    lines = _shown(f"| Option | Cost |\n|---|---|\n| A | {said} |", width)
    words = [word for line in lines[2:] for word in line.split()]
    assert words == ["A", *said.split()]


def test_code_is_highlighted_and_emphasis_is_bold() -> None:
    (line,) = markdown_lines("Keep **one**.", 60)
    assert any(
        "bold" in str(span.style) and line.plain[span.start : span.end] == "one"
        for span in line.spans
    )
    code = markdown_lines("```python\nreturn a  # why\n```", 60)[0]
    assert len({str(span.style) for span in code.spans}) > 1


@pytest.mark.parametrize(
    "text",
    [
        "The cost is $a_1 + b_1 * c$ now.",
        r"The cost is \(a_1 * b_1 * c\) now.",
        "Between $5 and $10.",
        "List<String> and <b>x</b> stay.",
        "a * b * c",
    ],
)
def test_formulas_and_html_stay_as_they_are_written(text: str) -> None:
    assert _shown(text) == [text]


def test_a_block_formula_keeps_its_lines() -> None:
    assert [line.strip() for line in _shown("$$\na_1 = b_1\n$$")] == ["$$", "a_1 = b_1", "$$"]


def test_single_line_breaks_are_kept() -> None:
    assert _shown("S1 resolved.\nS2 open.") == ["S1 resolved.", "S2 open."]


def test_a_block_is_finished_when_nothing_can_be_added_to_it() -> None:
    blocks = MarkdownBlocks()
    fed = ["# Title\n", "Words ", "go on.\n", "\n", "- a\n\n", "- b\n", "\nNew words"]
    done = [blocks.feed(piece).strip("\n") for piece in fed]
    assert done == ["", "", "# Title", "Words go on.", "", "", "- a\n\n- b"]
    assert blocks.pending == "New words"
    assert blocks.finish() == "New words"


def test_code_is_not_finished_before_its_fence_is_closed() -> None:
    blocks = MarkdownBlocks()
    assert blocks.feed("```\na\n\nb\n\n") == ""
    assert blocks.feed("```\n").strip("\n") == "```\na\n\nb\n\n```"


TEXTS = st.text(st.sampled_from("ab 界🧱\n#-*`|>$1.[]()_<"), max_size=120)


@given(TEXTS, st.lists(st.integers(0, 120), max_size=6), st.integers(8, 90))
def test_streamed_text_never_exceeds_the_width(text: str, cuts: list[int], width: int) -> None:
    lines = MarkdownLines(width)
    edges = [0, *sorted(cuts), len(text)]
    for start, end in pairwise(edges):
        lines.feed(text[start:end])
        assert all(cell_len(line.plain) <= width for line in lines.tail(1000))
