"""Compares our stream reader with the openai package's reader."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import add_ai_message_chunks
from pydantic import SecretStr

from contend.models.providers.openai import _ThinkingChatOpenAI
from contend.models.providers.openai_stream import Completions

BASE = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
DONE = b"data: [DONE]\n\n"


def event(delta: Any, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, **more}
    return b"data: " + json.dumps({**BASE, "choices": [choice]}).encode() + b"\n\n"


def bare(**fields: Any) -> bytes:
    return b"data: " + json.dumps({**BASE, **fields}).encode() + b"\n\n"


def tool(index: int | None = 0, **fields: Any) -> bytes:
    number = {} if index is None else {"index": index}
    return event({"tool_calls": [{**number, **fields}]})


OPENING = event({"role": "assistant", "content": ""})
WORDS = event({"content": "Hello"}) + event({"content": " wörld"}) + event({"content": " 🎲"})
STOP = event({}, "stop")
USAGE = bare(
    choices=[],
    usage={
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    },
)
SUM = {"name": "calculate", "arguments": ""}
CALL = (
    tool(id="call_1", type="function", function=SUM)
    + tool(function={"arguments": '{"expression": '})
    + tool(function={"arguments": '"6 * 7"}'})
)
STREAMS = {
    "plain": OPENING + WORDS + STOP + USAGE + DONE,
    "no usage": OPENING + WORDS + STOP + DONE,
    "cut by length": OPENING + WORDS + event({}, "length") + DONE,
    "filtered": OPENING + event({}, "content_filter") + DONE,
    "refused": OPENING + event({"refusal": "I cannot."}) + STOP + DONE,
    "ends early": OPENING + WORDS,
    "no events": b"",
    "only the end": DONE,
    "keep-alives": b": WAITING\n\n" + OPENING + b": WAITING\n\n\n\n" + WORDS + STOP + DONE,
    "named events": b"event: message\nid: 7\nretry: 10\n" + WORDS + STOP + DONE,
    "windows": (OPENING + WORDS + STOP + DONE).replace(b"\n", b"\r\n"),
    "no space": (OPENING + WORDS + STOP + DONE).replace(b"data: ", b"data:"),
    "in two lines": b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "x"}}]}\n\n'
    + DONE,
    "last event unfinished": OPENING + WORDS + STOP[:-1],
    "after the end": OPENING + WORDS + STOP + DONE + WORDS,
    "tool call": OPENING + WORDS + CALL + event({}, "tool_calls") + USAGE + DONE,
    "tool call without index": tool(None, id="c", function={"name": "f", "arguments": "{}"}) + DONE,
    "thoughts": event({"reasoning_content": "Hm, "}) + event({"reasoning": "so."}) + WORDS + DONE,
    "two names": event({"reasoning": "Hm.", "reasoning_content": "Hm."}) + WORDS + STOP + DONE,
    "details": event({"reasoning": "Hm.", "reasoning_details": [{"text": "Hm."}]}) + WORDS + DONE,
    "thought and said": event({"reasoning": "Hm.", "content": "So"}) + WORDS + STOP + DONE,
    "logprobs": event({"content": "a"}, logprobs={"content": [{"token": "a", "logprob": -1.0}]})
    + STOP
    + DONE,
    "two choices": event({"content": "a"}) + event({"content": "b"}, index=1) + STOP + DONE,
    "no delta": event(None) + WORDS + STOP + DONE,
    "no choices": bare() + bare(choices=None) + WORDS + STOP + DONE,
    "usage each time": event({"content": "a"})[:-3]
    + b', "usage": {"prompt_tokens": 1}}\n\n'
    + DONE,
    "fingerprint": bare(
        choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}],
        system_fingerprint="fp",
        service_tier="flex",
    ),
    "error": OPENING + WORDS + bare(error={"message": "Overloaded", "code": 502}),
    "error among choices": bare(
        error={"message": "Overloaded", "code": 502},
        choices=[{"index": 0, "delta": {"content": ""}, "finish_reason": None}],
    ),
    "error in words": bare(error="Overloaded"),
    "broken": OPENING + WORDS + b'data: {"choi\n\n',
}


class Bytes(httpx2.AsyncBaseTransport, httpx2.AsyncByteStream):
    def __init__(self, blocks: list[bytes]) -> None:
        self.blocks = blocks

    async def handle_async_request(self, _request: object) -> httpx2.Response:
        return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, stream=self)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for block in self.blocks:
            yield block


async def result(blocks: list[bytes], *, in_pieces: bool) -> Any:
    """Return the whole message, or the error and what came before it."""
    chunks = list[AIMessageChunk]()
    async with httpx2.AsyncClient(transport=Bytes(blocks)) as client:
        model = _ThinkingChatOpenAI(
            model="m1",
            api_key=SecretStr("key"),
            base_url="http://127.0.0.1:1/v1",
            http_async_client=client,
            max_retries=0,
            stream_chunk_timeout=None,
            use_responses_api=False,
        )
        if in_pieces:
            model.async_client = Completions(model.root_async_client)
        try:
            chunks = [chunk async for chunk in model.astream("Why?", {"run_id": None})]
        except Exception as error:  # noqa: BLE001 - any difference counts
            return type(error), getattr(error, "body", None), getattr(error, "message", None)
    whole = add_ai_message_chunks(*chunks) if chunks[1:] else chunks[0]
    return whole.model_dump(exclude={"id"})


@pytest.mark.parametrize("name", STREAMS)
async def test_reads_a_stream_like_the_openai_package(name: str) -> None:
    blocks = [STREAMS[name]]
    assert await result(blocks, in_pieces=True) == await result(blocks, in_pieces=False)


@given(st.sampled_from(sorted(STREAMS)), st.lists(st.integers(1, 1500), max_size=6))
async def test_the_result_does_not_depend_on_how_the_bytes_arrive(
    name: str, cuts: list[int]
) -> None:
    whole, ends = STREAMS[name], sorted(cuts)
    blocks = [whole[a:b] for a, b in zip([0, *ends], [*ends, None], strict=True)]
    expected = await result([whole], in_pieces=True)
    assert await result([each for each in blocks if each], in_pieces=True) == expected


async def test_text_that_arrives_together_is_one_chunk() -> None:
    transport = Bytes([OPENING, WORDS, STOP + USAGE + DONE])
    async with httpx2.AsyncClient(transport=transport) as client:
        model = _ThinkingChatOpenAI(
            model="m1", api_key=SecretStr("key"), http_async_client=client, max_retries=0
        )
        model.async_client = Completions(model.root_async_client)
        texts = [chunk.text async for chunk in model.astream("Why?")]
    assert [text for text in texts if text] == ["Hello wörld 🎲"]
