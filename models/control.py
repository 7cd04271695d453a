"""The control block: a fenced JSON object that decides something, tagged with the call's nonce."""

import hashlib
import json
import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

Block = TypeVar("Block", bound=BaseModel)

_FENCED = re.compile(r"```[^\n`]*\n(.*?)(?:```|\Z)", re.DOTALL)


def nonce(debate_id: str, turn_id: str) -> str:
    """A tag no speaker can guess: debate ids are random and never shown to a model.

    It is derived, not drawn, so that a resumed debate sends the very prompt that was interrupted.
    """
    return hashlib.sha256(f"{debate_id}/{turn_id}".encode()).hexdigest()[:10]


def read_block(reply: str, tag: str, schema: type[Block]) -> Block | None:
    """The last block of this reply that carries this call's tag, if it is well-formed."""
    tagged = [body for body in _candidates(reply) if _tag_of(body) == tag]
    if not tagged:
        return None
    data = {key: value for key, value in json.loads(tagged[-1]).items() if key != "nonce"}
    try:
        return schema.model_validate(data)
    except ValidationError:
        return None


def without_block(reply: str, tag: str) -> str:
    """The speech without its control block; a block of any other tag is speech."""
    speech = _FENCED.sub(lambda found: "" if tag in found.group(0) else found.group(0), reply)
    start = _bare_start(speech, tag)
    return (speech if start is None else speech[:start]).strip()


def _candidates(reply: str) -> list[str]:
    fenced = [found.group(1).strip() for found in _FENCED.finditer(reply)]
    return fenced or [part for part in [_trailing_object(reply)] if part]


def _trailing_object(reply: str) -> str | None:
    """A JSON object that ends the reply: the block of a model that forgot the fence."""
    text = reply.rstrip()
    if not text.endswith("}"):
        return None
    for found in re.finditer(r"^\s*\{", text, re.MULTILINE):
        candidate = text[found.start() :].strip()
        if _tag_of(candidate) is not None:
            return candidate
    return None


def _bare_start(speech: str, tag: str) -> int | None:
    bare = _trailing_object(speech)
    if bare is None or _tag_of(bare) != tag:
        return None
    return speech.rstrip().rfind(bare)


def _tag_of(body: str) -> str | None:
    try:
        data = json.loads(body)
    except ValueError:
        return None
    found = data.get("nonce") if isinstance(data, dict) else None
    return found if isinstance(found, str) else None
