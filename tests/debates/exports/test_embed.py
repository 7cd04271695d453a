"""Embedding model text in exported Markdown."""

from html import escape

import pytest
from markdown_it import MarkdownIt

from contend.debates.exports.embed import embed, embed_data, escape_markdown
from contend.debates.exports.safe_html import to_html


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain *text*, a < b, `x<y>`", "plain *text*, a < b, `x<y>`"),
        ("# One\n## Two\n#### Four\n#hash", "#### One\n#### Two\n#### Four\n#hash"),
        ("> # Quoted\n- ## Listed", "> #### Quoted\n- #### Listed"),
        ("Score\n=====\nBest\n---", "Score\n\\=====\nBest\n\\---"),
        ("```\n# code <b>\n```\n# Text", "```\n# code <b>\n```\n#### Text"),
        ("<script>x</script> <!-- y -->", "&lt;script>x&lt;/script> &lt;!-- y -->"),
        ("![shot](https://host/pixel.png)", "!\\[shot](https://host/pixel.png)"),
        ("```py\nnever closed", "```py\nnever closed\n```"),
        ("~~~~\nnever closed", "~~~~\nnever closed\n~~~~"),
        ("    # code\n", "    # code\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_embeds_text_and_is_idempotent(text: str, shown: str) -> None:
    assert embed(text) == shown
    assert embed(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "# Scores\n\nAnn wins.",
        "Scores\n===",
        "<h1>Scores</h1>",
        "![x](https://host/x.png)",
        '<img src="https://host/x.png">',
        "a\n\n<div>\n\n# b",
        "[![x](https://host/x.png)](https://host)",
        "```\nopen",
        "- ```\n  open",
        "> ```\n> open",
    ],
)
def test_embedded_text_does_not_change_the_surrounding_document(text: str) -> None:
    html = MarkdownIt("commonmark").render(f"# Ours\n\n{embed(text)}\n\n## Ours too\n\nEnd.")
    assert html.count("<h1>") == 1
    assert "<h2>Ours too</h2>\n<p>End.</p>" in html
    assert "<img" not in html
    assert "<div>" not in html


def test_embeds_every_string_in_nested_data() -> None:
    assert embed_data({"a": ["# x", 1], "b": {"c": "<b>"}}) == {
        "a": ["#### x", 1],
        "b": {"c": "&lt;b>"},
    }


@pytest.mark.parametrize(
    "text", ["# a", "- b", "12. c", "*d* _e_ `f`", "[g](h)", "<i>", "a | b", "$5 ~~x~~", "1) y"]
)
def test_escaped_plain_text_renders_unchanged(text: str) -> None:
    shown = to_html(escape_markdown(text))
    assert shown == f"<p>{escape(text, quote=False)}</p>\n"
