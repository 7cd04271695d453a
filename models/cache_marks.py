"""Marks which parts of a prompt to cache, for providers that cache only on request."""

import re
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

# The key in `additional_kwargs` for how many characters of a message another prompt of the seat
# repeats. Without it, a mark is not worth its price.
STABLE = "stable_characters"

# The end of a speech. Providers reuse a cached prefix only up to the end of an earlier block.
_SPEECH_END = re.compile(r"</\w+ [0-9a-f]{6}>\n+")
_MARK = {"cache_control": {"type": "ephemeral"}}


def with_cache_marks(messages: list[BaseMessage]) -> list[BaseMessage]:
    if not any(STABLE in message.additional_kwargs for message in messages):
        return messages
    return [_marked(message) for message in messages]


def _marked(message: BaseMessage) -> BaseMessage:
    text, stable = message.content, message.additional_kwargs.get(STABLE, 0)
    if not isinstance(text, str):
        return message
    if isinstance(message, SystemMessage):
        return message.model_copy(update={"content": [_block(text) | _MARK]})
    if not stable:
        return message
    # A speech is repeated with the line breaks after it, which the last one may not have yet.
    rest = text[stable:].lstrip("\n")
    repeated = _speeches(text.removesuffix(rest))
    rest = rest or repeated.pop()
    if not repeated:
        return message
    *before, last = map(_block, repeated)
    return message.model_copy(update={"content": [*before, last | _MARK, _block(rest)]})


def _speeches(text: str) -> list[str]:
    ends = [found.end() for found in _SPEECH_END.finditer(text)]
    starts = [0, *ends]
    parts = zip(starts, [*ends, len(text)], strict=True)
    return [text[start:end] for start, end in parts if start < end]


def _block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
