"""Finds lines that begin with a signal, a keyword of the protocol."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, TypeVar

from pydantic import BeforeValidator

from contend.models.replies.own_words import own_text, split_lines

Signal = TypeVar("Signal")
# Models write null for empty values; the rest of the block is still valid.
Remarked = Annotated[str, BeforeValidator(lambda given: "" if given is None else given)]

_MARKUP = re.compile(r"^[\s#*_`\-•]+")
# A colon ends a statement only after a label, because otherwise a quote may follow.
_ENDS = re.compile(
    r"[.!?;…][\s*_`\"'”’)]*$|^[\s#*_`\-•]*(?:my )?(?:decision|verdict)[*_`]*:\W*$", re.I
)


def first_signal(
    speech: str, read: Callable[[str], tuple[Signal, int] | None]
) -> tuple[Signal, str] | None:
    """Return the first line's signal, or one that later signals match, and the text after it."""
    lines = list(opening_lines(speech))
    found = [(line, signal) for line in lines if (signal := read(line)) is not None]
    if not found:
        return None
    line, (first, end) = found[0]
    if line is not lines[0] and any(signal != first for _, (signal, _) in found):
        return None
    after = speech[speech.index(line) + end :].lstrip(" \t\n*_`-–—:.,;!")
    return first, after or speech


def labelled_value(speech: str, label: str) -> str:
    """Return the value in the only `Label: value` line, or an empty string."""
    # No part matches across lines, because that takes seconds for thousands of empty lines.
    pattern = rf"^(?:[^\S\n]|[-*#])*{label}[*_]*[^\S\n]*:[*_]*\s*(.+)"
    found: list[str] = re.findall(pattern, own_text(speech), re.IGNORECASE | re.MULTILINE)
    return found[0].rstrip("*_ \t") if len(found) == 1 else ""


def opening_lines(speech: str) -> Iterator[str]:
    """Yield the first line of each of the speaker's own statements, without markup."""
    goes_on = False
    for line in split_lines(speech):
        text = _MARKUP.sub("", line.text)
        if text and line.own and (line.after_blank or not goes_on):
            yield text
        goes_on = line.own and not line.sign and not _ENDS.search(line.text)
