import json
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from contend.debates.exports.embed import embed

_TEXT_WIDTH = 100
_PIPE = re.compile(r"(\\*)\|")


@dataclass(frozen=True)
class Title:
    text: str
    level: int = 1


@dataclass(frozen=True)
class Facts:
    rows: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Rows:
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Words:
    text: str


Part = Title | Facts | Rows | Words


@dataclass(frozen=True)
class ExportPage:
    parts: Sequence[Part]
    data: dict[str, Any]

    def as_markdown(self) -> str:
        return "\n\n".join(filter(None, map(_markdown, self.parts))) + "\n"

    def as_text(self) -> str:
        return "\n\n".join(filter(None, map(_text, self.parts))) + "\n"

    def as_json(self) -> str:
        return json.dumps(self.data, ensure_ascii=False, indent=2) + "\n"


def on_one_line(text: str) -> str:
    return " ".join(text.split())


def _markdown(part: Part) -> str:
    match part:
        case Title(text, level):
            return f"{'#' * level} {embed(on_one_line(text))}"
        case Facts(rows):
            return "\n".join(f"- **{name}:** {embed(on_one_line(value))}" for name, value in rows)
        case Rows(head, rows):
            lines = [table_row(tuple(head)), "|" + "---|" * len(head)]
            return "\n".join([*lines, *(table_row(tuple(row)) for row in rows)]) if rows else ""
        case Words(text):
            return embed(text)


# Cached, because each new row rewrites the whole index.
@lru_cache(maxsize=4096)
def table_row(cells: tuple[str, ...]) -> str:
    # Double the backslashes before a pipe, so that they do not cancel the one we add.
    shown = (_PIPE.sub(r"\1\1\\|", embed(on_one_line(cell))) for cell in cells)
    return f"| {' | '.join(shown)} |"


def _text(part: Part) -> str:
    match part:
        case Title(text, level):
            line = on_one_line(text)
            return f"{line}\n{('=' if level == 1 else '-') * min(len(line), _TEXT_WIDTH)}"
        case Facts(rows):
            return "\n".join(hanging(f"{name}: {on_one_line(value)}") for name, value in rows)
        case Rows(head, rows):
            lines = []
            for row in rows:
                cells = zip(head, map(on_one_line, row), strict=True)
                lines.append("; ".join(f"{name} {cell}" for name, cell in cells if cell))
            return "\n".join(map(hanging, lines))
        case Words(text):
            return text


def hanging(text: str, width: int = _TEXT_WIDTH, hang: int = 4) -> str:
    return textwrap.fill(
        text,
        width,
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
