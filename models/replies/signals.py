"""Finding the line on which a speaker gives a signal: a word of the protocol that opens it."""

import re
from collections.abc import Callable, Iterator
from typing import Annotated, TypeVar

from pydantic import BeforeValidator

Signal = TypeVar("Signal")
# Models write null for what they leave empty; the rest of their block is none the worse for it.
Remarked = Annotated[str, BeforeValidator(lambda given: "" if given is None else given)]

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_MARKUP = re.compile(r"^[\s#*_`\-•]+")
# A colon ends no statement: what follows it may be somebody else's words. A label's does.
_ENDS = re.compile(
    r"[.!?;…][\s*_`\"'”’)]*$|^[\s#*_`\-•]*(?:my )?(?:decision|verdict)[*_`]*:\W*$", re.I
)


def first_signal(
    speech: str, read: Callable[[str], tuple[Signal, int] | None]
) -> tuple[Signal, str] | None:
    """What the first line signals, else what all signals say together; and what is said behind it.

    `read` tells a signal, and where it ends in its line. None if signals disagree.
    """
    lines = list(statements(speech))
    found = [(line, signal) for line in lines if (signal := read(line)) is not None]
    if not found:
        return None
    line, (first, end) = found[0]
    if line is not lines[0] and any(signal != first for _, (signal, _) in found):
        return None
    behind = speech[speech.index(line) + end :].lstrip(" \t\n*_`-–—:.,;!")
    return first, behind or speech


def statements(speech: str) -> Iterator[str]:
    """The lines that begin a statement, without the markup before their first word.

    A line that goes on from the one above is none, nor is a quotation or code.
    """
    fenced, goes_on = False, False
    for line in speech.splitlines():
        if _FENCE.match(line):
            fenced, goes_on = not fenced, False
            continue
        text = _MARKUP.sub("", line)
        if text and not fenced and not goes_on and not line.lstrip().startswith(">"):
            yield text
        marked = line.lstrip()[:1] in "#*-•" if text else False
        quotes = line.lstrip().startswith(">")
        goes_on = bool(text) and not marked and not quotes and not _ENDS.search(line)
