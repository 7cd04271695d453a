import hashlib
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}( ?\n*)")


@cache
def load(name: str) -> str:
    return _file(name).read_text(encoding="utf-8").strip()


@cache
def exists(name: str) -> bool:
    return _file(name).is_file()


def digest(*folders: str) -> str:
    found = hashlib.sha256()
    for place in __path__:
        for folder in folders:
            for file in sorted(Path(place, folder).rglob("*.md")):
                found.update(file.relative_to(place).as_posix().encode() + file.read_bytes())
    return found.hexdigest()[:16]


def _file(name: str) -> Path:
    # Tests may add folders.
    *others, first = (Path(folder, f"{name}.md") for folder in reversed(__path__))
    return next((file for file in others if file.is_file()), first)


def placeholders(text: str) -> set[str]:
    return {name for name, _ in _PLACEHOLDER.findall(text)}


def render(name: str, values: Mapping[str, Callable[[], str]]) -> str:
    return fill(load(name), values)


def fill(text: str, values: Mapping[str, Callable[[], str]]) -> str:
    """Fill in the placeholders. Build only the values needed; ignore placeholders inside values."""

    def filled(found: re.Match[str]) -> str:
        # An empty value is dropped together with the white space after it.
        value = values[found.group(1)]()
        return value + found.group(2) if value else ""

    return _PLACEHOLDER.sub(filled, text).strip()


def fence(label: str, text: str, mark: str) -> str:
    """Mark text as data with tags, and change anything in the text that could close the tags."""
    inert = text.replace(mark, mark[:-1] + "…")
    return f"<{label} {mark}>\n{inert}\n</{label} {mark}>"
