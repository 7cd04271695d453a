"""Prompts are Markdown files; this loads them and fills them in, in one pass."""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}(\n*)")


@cache
def load(name: str) -> str:
    """Return the text of prompts/<name>.md."""
    return _file(name).read_text(encoding="utf-8").strip()


def exists(name: str) -> bool:
    """Return whether there is a prompts/<name>.md."""
    return _file(name).is_file()


def _file(name: str) -> Path:
    """Find a prompt in the folders of this package; a test may add one for its own protocol."""
    *others, first = (Path(folder, f"{name}.md") for folder in reversed(__path__))
    return next((file for file in others if file.is_file()), first)


def placeholders(text: str) -> set[str]:
    """The values a prompt's text asks for."""
    return {name for name, _ in _PLACEHOLDER.findall(text)}


def render(name: str, values: Mapping[str, Callable[[], str]]) -> str:
    """The prompt of this name, filled."""
    return fill(load(name), values)


def fill(text: str, values: Mapping[str, Callable[[], str]]) -> str:
    """Fill a text; values are asked for only where used, and never scanned for placeholders.

    An empty value takes the line breaks behind it along, so that no hole is left in the page.
    """

    def filled(found: re.Match[str]) -> str:
        value = values[found.group(1)]()
        return value + found.group(2) if value else ""

    return _PLACEHOLDER.sub(filled, text).strip()


def fence(label: str, text: str, mark: str) -> str:
    """Mark text as material. A speaker that learnt the mark cannot close the fence with it."""
    inert = text.replace(mark, mark[:-1] + "…")
    return f"<{label} {mark}>\n{inert}\n</{label} {mark}>"
