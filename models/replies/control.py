"""The control block: a fenced JSON object that decides something, tagged with the call's nonce."""

import hashlib
import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from contend.models.text import clean_data

Block = TypeVar("Block", bound=BaseModel)

_DECODER = json.JSONDecoder()
# A line that begins with an object, or with a fence and an object. Inside a line it is a quotation.
_BEGINS = re.compile(r"^[ \t]*(?:```\w*[ \t]*)?(?=\{)", re.MULTILINE)
_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)


def nonce(debate_id: str, turn_id: str) -> str:
    """A tag no speaker can guess: debate ids are random and never shown to a model.

    It is derived, not drawn, so that a resumed debate sends the very prompt that was interrupted.
    """
    return hashlib.sha256(f"{debate_id}/{turn_id}".encode()).hexdigest()[:10]


def read_block(reply: str, tag: str, schema: type[Block]) -> Block | None:
    """The last block of this reply that carries this call's tag, if it is well-formed."""
    tagged = _tagged(reply, tag)
    if not tagged:
        return None
    _, _, data = tagged[-1]
    try:
        # JSON can spell out what was cleaned from the text around it.
        return schema.model_validate(clean_data({k: data[k] for k in data if k != "nonce"}))
    except ValidationError:
        return None


def without_block(reply: str, tag: str) -> str:
    """The speech without its control block; a block of any other tag is speech."""
    for start, end, _ in reversed(_tagged(reply, tag)):
        before = re.sub(r"```[^\n`]*\s*\Z", "", reply[:start])
        after = re.sub(r"\A\s*```", "", reply[end:]) if before != reply[:start] else reply[end:]
        reply = before + after
    # What is left of the tag stands in a block that is not well-formed.
    return _FENCED.sub(lambda found: _without_broken(found.group(), tag), reply).strip()


def _without_broken(fenced: str, tag: str) -> str:
    """Nothing of a fence with the tag, except the prose behind one that was never closed."""
    if tag not in fenced:
        return fenced
    behind = "" if fenced.endswith("```") else fenced[fenced.rindex(tag) :]
    prose = re.search(r"\n(?=[^\s\"\[\]{},])", behind)
    return behind[prose.start() :] if prose else ""


def _tagged(reply: str, tag: str) -> list[tuple[int, int, dict[str, Any]]]:
    """The JSON objects with this tag, fenced or bare, that begin a line; and where they stand."""
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
