"""Makes untrusted Markdown safe to embed in an export."""

import re
from typing import Any

from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark")
_MARKDOWN.core.ruler.enableOnly(["normalize", "block"])
# The headings of our own pages go down to level 3.
_HEADING = re.compile(r"^(\s*(?:>\s*|[-*+]\s+|\d+[.)]\s+)*)#{1,3}(?=\s|$)")
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_SIGNS = re.compile(r"[\\`*_<>~|$]")
_LINE_START = re.compile(r"^[-+#=]|(?<=^\d)[.)]|(?<=^\d\d)[.)]")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def embed(text: str) -> str:
    """Demote headings, show HTML and images as text, and close an open code fence."""
    lines = text.split("\n")
    code: set[int] = set()
    open_fence = ""
    for token in _MARKDOWN.parse(text):
        if token.map is None:
            continue
        if token.type in ("fence", "code_block"):
            code.update(range(*token.map))
            last = lines[min(token.map[1], len(lines)) - 1].strip()
            closed = token.map[1] - token.map[0] > 1 and last and not last.strip(token.markup[:1])
            # A fence in a list or a quote ends with the list or quote.
            open_fence = token.markup if token.level == 0 and not closed else ""
        elif token.type == "heading_open" and token.markup in "=-":
            at = token.map[1] - 1
            lines[at] = f"\\{lines[at].lstrip()}"
    shown = [line if at in code else _embed_line(line) for at, line in enumerate(lines)]
    return "\n".join([*shown, open_fence] if open_fence else shown)


def escape_markdown(text: str) -> str:
    """Escape plain text so that Markdown renders it literally, on one line."""
    escaped = _SIGNS.sub(r"\\\g<0>", " ".join(text.split()))
    # Not escaped with a backslash, because that would begin a formula.
    escaped = escaped.replace("[", "&#91;").replace("]", "&#93;")
    return _LINE_START.sub(r"\\\g<0>", escaped)


def embed_data(data: Any) -> Any:
    if isinstance(data, str):
        return embed(data)
    if isinstance(data, dict):
        return {key: embed_data(value) for key, value in data.items()}
    return [embed_data(each) for each in data] if isinstance(data, list) else data


def _embed_line(line: str) -> str:
    line = _HEADING.sub(r"\1####", line)
    parts, reached = [], 0
    for span in _CODE_SPAN.finditer(line):
        parts += [_as_text(line[reached : span.start()]), span.group()]
        reached = span.end()
    return "".join([*parts, _as_text(line[reached:])])


def _as_text(text: str) -> str:
    return _TAG.sub("&lt;", text).replace("![", "!\\[")
