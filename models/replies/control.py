"""Parses control blocks, which are fenced JSON objects with a decision and the call's nonce."""

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from contend.models.text import clean_data

Block = TypeVar("Block", bound=BaseModel)

_DECODER = json.JSONDecoder()
_FENCE_OPENS = re.compile(r"[ \t]*(?:```\w*[ \t]*)?")
# Bounds that no real block reaches; they keep the search time proportional to the reply's length.
_LONGEST, _MOST_TAGS, _MOST_STARTS = 2**16, 64, 64
# What a fence may hold after the block, up to its closing line.
_REST_OF_FENCE = re.compile(r"\A(?:\s*```|[^`]*\n[ \t]*```(?=[ \t]*(?:\n|\Z)))")
_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)


def nonce(debate_id: str, turn_id: str) -> str:
    """Return a tag that speakers cannot guess. It is the same in a resumed debate."""
    return hashlib.sha256(f"{debate_id}/{turn_id}".encode()).hexdigest()[:10]


def read_block(reply: str, tag: str, schema: type[Block]) -> Block | None:
    blocks = [block for block in _find_tagged(reply, tag) if block.begins_line]
    if not blocks:
        return None
    data = blocks[-1].data
    try:
        # Clean it again, because JSON escapes may contain characters that are removed from texts.
        return schema.model_validate(clean_data({k: data[k] for k in data if k != "nonce"}))
    except ValidationError:
        return None


def without_block(reply: str, tag: str) -> str:
    for block in reversed(_find_tagged(reply, tag)):
        before, after = reply[: block.start], reply[block.end :]
        text, fence, label = before.rstrip().rpartition("```")
        if fence and not re.search(r"[\n`]", label):
            before, after = text, _REST_OF_FENCE.sub("", after)
        reply = before + after
    # Any tag that is left is in an invalid block.
    return _FENCED.sub(lambda found: _drop_broken(found.group(), tag), reply).strip()


def _drop_broken(fenced: str, tag: str) -> str:
    """Remove a fenced block with the tag, but keep the text after an unclosed fence."""
    if tag not in fenced:
        return fenced
    after = "" if fenced.endswith("```") else fenced[fenced.rindex(tag) :]
    prose = re.search(r"\n(?=[^\s\"\[\]{},])", after)
    return after[prose.start() :] if prose else ""


@dataclass(frozen=True)
class _Tagged:
    start: int
    end: int
    data: dict[str, Any]
    begins_line: bool  # if False, it may be a quote, which is hidden but not parsed


def _find_tagged(reply: str, tag: str) -> list[_Tagged]:
    found: list[_Tagged] = []
    reached = 0
    for place in [tagged.start() for tagged in re.finditer(re.escape(tag), reply)][-_MOST_TAGS:]:
        nearest = max(reached, place - _LONGEST)
        starts = [nearest + brace.start() for brace in re.finditer(r"\{", reply[nearest:place])]
        for start in starts[-_MOST_STARTS:] if place >= reached else ():
            data, end = _decode(reply, start)
            if end > place:  # the outermost object with the tag inside
                reached = end
                if data.get("nonce") == tag:
                    line = reply[reply.rfind("\n", 0, start) + 1 : start]
                    begins_line = _FENCE_OPENS.fullmatch(line) is not None
                    found.append(_Tagged(start, end, data, begins_line))
                break
    return found


def _decode(reply: str, start: int) -> tuple[dict[str, Any], int]:
    try:
        data, length = _DECODER.raw_decode(reply[start : start + _LONGEST])
    except (ValueError, RecursionError):
        return {}, 0
    return data, start + length
