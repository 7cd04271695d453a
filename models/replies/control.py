"""The control block: a fenced JSON object that decides something, tagged with the call's nonce."""

import hashlib
import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from contend.models.text import clean_data

Block = TypeVar("Block", bound=BaseModel)

_DECODER = json.JSONDecoder()
# An object at the start of a line, with or without a fence. Inside a line it is a quote.
_BEGINS = re.compile(r"^[ \t]*(?:```\w*[ \t]*)?(?=\{)", re.MULTILINE)
_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)


def nonce(debate_id: str, turn_id: str) -> str:
    """Return a tag no speaker can guess; a resumed debate gets the same one."""
    return hashlib.sha256(f"{debate_id}/{turn_id}".encode()).hexdigest()[:10]


def read_block(reply: str, tag: str, schema: type[Block]) -> Block | None:
    """Parse the last block of this reply that carries the tag, if it is valid."""
    tagged = _find_tagged(reply, tag)
    if not tagged:
        return None
    _, _, data = tagged[-1]
    try:
        # JSON escapes may contain characters that were cleaned from the text.
        return schema.model_validate(clean_data({k: data[k] for k in data if k != "nonce"}))
    except ValidationError:
        return None


def without_block(reply: str, tag: str) -> str:
    """Remove the control block; blocks with other tags stay."""
    for start, end, _ in reversed(_find_tagged(reply, tag)):
        before = re.sub(r"```[^\n`]*\s*\Z", "", reply[:start])
        after = re.sub(r"\A\s*```", "", reply[end:]) if before != reply[:start] else reply[end:]
        reply = before + after
    # A remaining tag is in an invalid block.
    return _FENCED.sub(lambda found: _drop_broken(found.group(), tag), reply).strip()


def _drop_broken(fenced: str, tag: str) -> str:
    """Remove a fence with the tag, except the prose after one that was never closed."""
    if tag not in fenced:
        return fenced
    after = "" if fenced.endswith("```") else fenced[fenced.rindex(tag) :]
    prose = re.search(r"\n(?=[^\s\"\[\]{},])", after)
    return after[prose.start() :] if prose else ""


def _find_tagged(reply: str, tag: str) -> list[tuple[int, int, dict[str, Any]]]:
    found: list[tuple[int, int, dict[str, Any]]] = []
    reached = 0
    for begins in _BEGINS.finditer(reply) if tag in reply else ():
        start = begins.end()
        if start < reached:
            continue
        try:
            data, end = _DECODER.raw_decode(reply, start)
        except (ValueError, RecursionError):
            continue
        reached = end
        if isinstance(data, dict) and data.get("nonce") == tag:
            found.append((start, end, data))
    return found
