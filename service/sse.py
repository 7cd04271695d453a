"""Streams the events of a debate as server-sent events."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from contend.debates.events import Event
from contend.debates.exports.safe_html import StreamedHtml, to_html
from contend.debates.journal import StoredEvent

# A viewer that reads nothing for so long is dropped; it can return and miss nothing.
_SECONDS_TO_SEND = 30.0
_HEARTBEAT = b": heartbeat\n\n"
# The content of these is Markdown of a model.
_TEXTS = frozenset({"seat_complete", "final_complete", "complete", "fact_check", "scores"})

Groups = AsyncGenerator[list[StoredEvent]]


@dataclass(frozen=True)
class Viewing:
    """How a viewer wants the events."""

    after: int = 0
    html: bool = False
    open_chunks_only: bool = False


class EventStream(StreamingResponse):
    def __init__(self, groups: Groups, viewing: Viewing) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(_encoded(groups, viewing), 200, headers, "text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Any) -> None:
            async with asyncio.timeout(_SECONDS_TO_SEND):
                await send(message)

        with suppress(TimeoutError, ClientDisconnect):
            await super().__call__(scope, receive, send_in_time)


async def _encoded(groups: Groups, viewing: Viewing) -> AsyncIterator[bytes]:
    renderer = _Renderer() if viewing.html else None
    yield _HEARTBEAT  # so that a viewer of a quiet debate knows that it is connected
    async with aclosing(groups):
        async for group in groups:
            sent = [_message(each, renderer) for each in group]
            new = [
                message
                for each, message in zip(group, sent, strict=True)
                if each.seq > viewing.after
            ]
            if new or not group:
                yield b"".join(new) or _HEARTBEAT


def _message(stored: StoredEvent, renderer: "_Renderer | None") -> bytes:
    data = renderer.render(stored) if renderer else stored.text
    return f"id: {stored.seq}\nevent: {stored.name}\ndata: {data}\n\n".encode()


@dataclass
class _Renderer:
    """Adds HTML to events; of an unfinished turn, only what changed."""

    _open: dict[Any, StreamedHtml] = field(default_factory=dict)

    def render(self, stored: StoredEvent) -> str:
        event = stored.as_event()
        about = event["metadata"]
        if stored.is_chunk:
            text = self._open.setdefault(_turn(event), StreamedHtml())
            about["block"], about["html"] = text.add(event["content"])
        elif stored.name in _TEXTS:
            about["html"] = to_html(event["content"])
        if stored.name == "seat_complete":
            self._open.pop(_turn(event), None)
        elif about.get("restart"):
            seat = about.get("seat")
            self._open = {turn: text for turn, text in self._open.items() if turn[0] != seat}
        return json.dumps(event, separators=(",", ":"))


def _turn(event: Event) -> tuple[Any, ...]:
    about = event["metadata"]
    return about.get("seat"), about.get("phase"), event["round"]


def without_finished_chunks(stored: list[StoredEvent]) -> list[StoredEvent]:
    """Leave out the chunks of turns that are complete."""
    finished: set[tuple[Any, ...]] = set()
    kept: list[StoredEvent] = []
    for each in reversed(stored):
        if each.name == "seat_complete":
            finished.add(_turn(each.as_event()))
        if not each.is_chunk or _turn(each.as_event()) not in finished:
            kept.append(each)
    return kept[::-1]
