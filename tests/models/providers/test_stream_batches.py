"""Streamed answers read in pieces, with a simulated clock."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from json import JSONDecodeError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.models.providers.connections import ON_END, REST
from contend.models.providers.ollama_stream import _JsonLines
from contend.models.providers.stream_batches import (
    SECONDS_OF_A_PIECE,
    LineReader,
    parse,
    read_pieces,
)

Step = float | bytes  # seconds of silence, or bytes


class Rest:
    """Records how long a socket is paused."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.is_resting = False
        self.has_begun = asyncio.Event()

    def begin(self, seconds: float) -> None:
        self.times.append(seconds)
        self.is_resting = True
        self.has_begun.set()

    def end(self) -> None:
        self.is_resting = False


class Response:
    """Buffers incoming bytes until they are read, as a connection does."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps, self._arrived = steps, asyncio.Queue[bytes]()
        self._on_end: Callable[[], None] | None = None
        self.rest = Rest()
        self.extensions = {ON_END: self._set_on_end, REST: self.rest}
        self._sending = asyncio.create_task(self._send())

    def _set_on_end(self, callback: Callable[[], None]) -> None:
        self._on_end = callback

    async def _send(self) -> None:
        for step in self._steps:
            if isinstance(step, bytes):
                self._arrived.put_nowait(step)
            else:
                await asyncio.sleep(step)
        self._arrived.put_nowait(b"")
        if self._on_end:
            self._on_end()

    async def aiter_bytes(self) -> AsyncIterator[bytes]:
        while block := await self._arrived.get():
            while not self._arrived.empty() and block:
                more = self._arrived.get_nowait()
                if not more:
                    yield block
                    return
                block += more
            yield block


def line(text: str, **more: Any) -> bytes:
    said = f'{{"role": "assistant", "content": "{text}"}}'
    return f'{{"message": {said}, "done": {str(bool(more)).lower()}}}\n'.encode()


async def read(steps: Sequence[Step]) -> list[tuple[float, str]]:
    """Return the time and text of each event."""
    loop, found = asyncio.get_running_loop(), list[tuple[float, str]]()
    began = loop.time()
    async for event, _ in read_pieces(Response(steps), _JsonLines()):
        found.append((round(loop.time() - began, 3), event["message"]["content"]))
    return found


@pytest.mark.looptime
async def test_passes_on_the_first_text_immediately_and_later_text_in_pieces() -> None:
    words = [step for n in range(8) for step in (0.01, line(f"{n} "))]
    times = [round(1.01 + n * SECONDS_OF_A_PIECE, 3) for n in range(4)]
    pieces = ["0 ", "1 2 3 ", "4 5 6 ", "7 "]
    assert await read([1.0, *words, 5.0]) == list(zip(times, pieces, strict=True))


@pytest.mark.looptime
async def test_the_end_of_a_response_ends_a_pause() -> None:
    assert await read([line("one "), 0.01, line("two"), 0.002]) == [(0.0, "one "), (0.012, "two")]


@pytest.mark.looptime
async def test_a_fast_answer_pauses_its_socket_in_proportion_to_elapsed_time() -> None:
    steps = [step for n in range(1000) for step in (0.001, line(f"{n} "))]
    response = Response(steps)
    found = [event async for event, _ in read_pieces(response, _JsonLines())]
    assert "".join(e["message"]["content"] for e in found) == "".join(f"{n} " for n in range(1000))
    assert response.rest.times == sorted(response.rest.times)
    assert 0.002 < response.rest.times[0] < 0.006
    assert 0.015 < response.rest.times[-1] < 0.02
    assert not response.rest.is_resting


@pytest.mark.looptime
async def test_a_slow_answer_never_pauses_its_socket() -> None:
    response = Response([step for n in range(80) for step in (0.0125, line(f"{n} "))])
    assert [event async for event, _ in read_pieces(response, _JsonLines())]
    assert response.rest.times == []


@pytest.mark.looptime
async def test_cancelling_an_answer_resumes_its_socket() -> None:
    response = Response([*(step for n in range(500) for step in (0.001, line("a"))), 60.0])

    async def read_all() -> None:
        async for _ in read_pieces(response, _JsonLines()):
            pass

    reading = asyncio.create_task(read_all())
    await response.rest.has_begun.wait()
    reading.cancel()
    await asyncio.wait([reading])
    assert not response.rest.is_resting


@pytest.mark.looptime
async def test_the_first_text_is_never_delayed() -> None:
    steps: list[Step] = [line(""), 0.01, b"\n", 0.01, line("one"), 9.0]
    assert (await read(steps))[1] == (0.02, "one")


async def test_events_with_tool_calls_keep_their_place_in_the_stream() -> None:
    call = b'{"message": {"content": "", "tool_calls": [{"function": {}}]}}\n'
    reader = read_pieces(Response([line("a") + line("b") + call + line("c")]), _JsonLines())
    found = [(event["message"]["content"], piece) async for event, piece in reader]
    assert found == [("ab", True), ("", False), ("c", True)]


@given(st.lists(st.sampled_from([b"a", b"b", b"\n", b"\r", b"\r\n", b"\xc3", b"\x0b"])), st.data())
def test_lines_do_not_depend_on_how_the_bytes_arrive(parts: list[bytes], data: Any) -> None:
    whole = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    blocks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True) if a < b]

    class Blocks:
        def __init__(self) -> None:
            self.extensions = dict[str, Any]()

        async def aiter_bytes(self) -> AsyncIterator[bytes]:
            for block in blocks:
                yield block

    async def lines() -> list[bytes]:
        return [each async for some in LineReader(Blocks()) for each in some]

    assert asyncio.run(lines()) == whole.splitlines()


@pytest.mark.parametrize("broken", [b'{"choi', b"[1]", b"5", b""])
def test_refuses_events_that_are_not_json_objects(broken: bytes) -> None:
    with pytest.raises(JSONDecodeError):
        parse(broken)


def test_accepts_infinity_in_json() -> None:
    assert parse(b'{"logprob": -Infinity}') == {"logprob": float("-inf")}
