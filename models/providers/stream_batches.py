"""Reads streamed answers in pieces of several tokens, which saves CPU time."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import orjson

from contend.models.providers.connections import ON_END, REST, SocketRest

# Nobody can read faster. Viewers get the first words at once, and then a piece this often.
SECONDS_OF_A_PIECE = 0.033
# A socket rests for this share of the time that its response has taken, so that the end is
# noticed hardly later, and only if it then receives this many lines at once.
_SHARE_OF_REST, _LEAST_LINES = 0.02, 3

# Time to read the rest of a response after its last event, so that its connection is reused.
_SECONDS_TO_DRAIN = 0.1

StreamedEvent = dict[str, Any]


class StreamedWords(NamedTuple):
    said: str
    thought: str


class LineReader:
    def __init__(self, response: Any) -> None:
        self._blocks = response.aiter_bytes()
        self._incomplete = b""
        self._has_ended = False
        self._pause: asyncio.Future[None] | None = None
        self._rest: SocketRest | None = response.extensions.get(REST)
        self._began = self._read_at = _now()
        self._lines_per_second = 0.0
        self._can_pause = ON_END in response.extensions
        if self._can_pause:
            response.extensions[ON_END](self._end)

    async def __aiter__(self) -> AsyncIterator[list[bytes]]:
        async for block in self._blocks:
            if lines := self._complete_lines(block):
                self._measure(lines)
                yield lines
        if self._incomplete:
            yield self._incomplete.splitlines()

    async def pause(self) -> None:
        if self._has_ended or not self._can_pause:
            return
        loop = asyncio.get_running_loop()
        self._pause = loop.create_future()
        timer = loop.call_later(SECONDS_OF_A_PIECE, self._resume)
        self._let_socket_rest()
        try:
            await self._pause
        finally:
            timer.cancel()
            if self._rest:
                self._rest.end()

    async def drain(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_DRAIN):
                async for _ in self._blocks:
                    pass

    def _complete_lines(self, block: bytes) -> list[bytes]:
        text = self._incomplete + block
        # A carriage return at the end may be the first half of a line break.
        end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1
        self._incomplete = text[end:]
        return text[:end].splitlines()

    def _measure(self, lines: list[bytes]) -> None:
        now = _now()
        self._lines_per_second = sum(map(bool, lines)) / max(now - self._read_at, 0.001)
        self._read_at = now

    def _let_socket_rest(self) -> None:
        seconds = _SHARE_OF_REST * (_now() - self._began)
        if self._rest and seconds * self._lines_per_second >= _LEAST_LINES:
            self._rest.begin(seconds)

    def _end(self) -> None:
        self._has_ended = True
        self._resume()

    def _resume(self) -> None:
        if self._pause and not self._pause.done():
            self._pause.set_result(None)


class StreamFormat(Protocol):
    is_done: bool  # whether the last event has come, though the response may go on

    def events(self, lines: list[bytes]) -> Iterator[StreamedEvent]:
        """Yield the events that are complete after these lines."""

    def words(self, event: StreamedEvent) -> StreamedWords | None:
        """Return an event's text and thinking, or None if it contains anything else."""

    def piece(self, last: StreamedEvent, words: StreamedWords) -> StreamedEvent:
        """Return a copy of the last event with this text and thinking."""


async def read_pieces(
    response: Any, form: StreamFormat
) -> AsyncIterator[tuple[StreamedEvent, bool]]:
    """Yield a response's events. The flag is true if an event contains only text and thinking."""
    lines_read = LineReader(response)
    async for lines in lines_read:
        has_words = False
        for event, words in _merge(form, form.events(lines)):
            has_words = has_words or any(words or ())
            yield event, words is not None
        if form.is_done:
            await lines_read.drain()
            return
        if has_words:
            await lines_read.pause()


def _merge(
    form: StreamFormat, events: Iterable[StreamedEvent]
) -> Iterator[tuple[StreamedEvent, StreamedWords | None]]:
    last: StreamedEvent | None = None
    said: list[str] = []
    thought: list[str] = []
    for event in events:
        words = form.words(event)
        if words:
            last = event
            said.append(words.said)
            thought.append(words.thought)
            continue
        if last:
            piece = StreamedWords("".join(said), "".join(thought))
            yield form.piece(last, piece), piece
            last, said, thought = None, [], []
        yield event, None
    if last:
        piece = StreamedWords("".join(said), "".join(thought))
        yield form.piece(last, piece), piece


def parse(text: bytes) -> StreamedEvent:
    try:
        event = orjson.loads(text)
    except orjson.JSONDecodeError:
        event = json.loads(text)  # accepts more, such as NaN
    if not isinstance(event, dict):
        raise json.JSONDecodeError("An event must be an object", text.decode(), 0)
    return event


def words_of(
    message: Any, thoughts: tuple[str, ...], ignored: frozenset[str] = frozenset()
) -> StreamedWords | None:
    if not isinstance(message, dict):
        return None
    said, thought = message.get("content") or "", ""
    for key, value in message.items():
        if key == "content" or not value or key in ignored:
            continue
        if key in thoughts:
            thought = thought or value
        elif key != "role" or value != "assistant":
            return None
    return (
        StreamedWords(said, thought) if isinstance(said, str) and isinstance(thought, str) else None
    )


def _now() -> float:
    return asyncio.get_running_loop().time()
