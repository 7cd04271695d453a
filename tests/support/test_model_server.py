"""Tests of the model server with the real clients."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import openai
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI
from ollama import AsyncClient, ResponseError
from pydantic import BaseModel, SecretStr

from tests.support.model_server import (
    Call,
    ModelServer,
    Reply,
    Request,
    always,
    ollama_error,
    openai_error,
    sequence,
)

TEXT = "one two three four five"
Connect = Callable[..., Any]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(always(TEXT)) as running:
        yield running


@pytest.fixture
async def closing() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
def chat_openai(server: ModelServer, closing: AsyncExitStack) -> Callable[..., ChatOpenAI]:
    def connect(key: str = "k", url: str | None = None, **options: Any) -> ChatOpenAI:
        # Use a separate HTTP client, because the shared default one outlives its event loop.
        http = openai.DefaultAsyncHttpxClient()
        closing.push_async_callback(http.aclose)
        return ChatOpenAI(
            model="m1",
            base_url=url or server.openai_url,
            api_key=SecretStr(key),
            max_retries=0,
            http_async_client=http,
            **options,
        )

    return connect


@pytest.fixture
def chat_ollama(server: ModelServer, closing: AsyncExitStack) -> Callable[..., ChatOllama]:
    def connect(model: str = "m1", **options: Any) -> ChatOllama:
        llm = ChatOllama(model=model, base_url=server.url, **options)
        close: Callable[[], Awaitable[None]] = llm._async_client.close
        closing.push_async_callback(close)
        return llm

    return connect


@pytest.fixture
def bare(server: ModelServer, closing: AsyncExitStack) -> openai.AsyncOpenAI:
    client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="k", max_retries=0)
    closing.push_async_callback(client.close)
    return client


async def collect(llm: BaseChatModel, into: list[str] | None = None) -> AIMessageChunk:
    whole: AIMessageChunk | None = None
    async for chunk in llm.astream("hi there"):
        assert isinstance(chunk, AIMessageChunk)
        if into is not None and chunk.text:
            into.append(chunk.text)
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    return whole


class Verdict(BaseModel):
    winner: str
    score: int


def weather(place: str) -> str:
    """Return the weather of a place."""
    return f"Rain in {place}."


@pytest.mark.parametrize("shape", ["openai", "ollama"])
async def test_tools(
    server: ModelServer, shape: str, chat_openai: Connect, chat_ollama: Connect
) -> None:
    asked = [("weather", {"place": "Bern"}), ("weather", {"place": "Rom"})]
    server.script = sequence([Reply(TEXT, tool_calls=asked), Reply(tool_calls=asked[:1]), TEXT])
    connect = chat_openai if shape == "openai" else chat_ollama
    llm = connect().bind_tools([weather])
    whole = await collect(llm)
    assert whole.text == TEXT
    assert [(each["name"], each["args"]) for each in whole.tool_calls] == asked
    assert server.calls[0].request.tools == ["weather"]
    again = await llm.ainvoke("and?")
    assert [each["args"] for each in again.tool_calls] == [{"place": "Bern"}]
    told = ToolMessage("Rain.", tool_call_id=again.tool_calls[0]["id"])
    assert (await llm.ainvoke([HumanMessage("and?"), again, told])).text == TEXT
    assert server.calls[2].request.results == ["Rain."]


# --- ChatOpenAI ---


async def test_openai_stream(server: ModelServer, chat_openai: Connect) -> None:
    pieces: list[str] = []
    answer = await collect(chat_openai(stream_usage=True), pieces)
    assert pieces == ["one", " two", " three", " four", " five"]
    assert answer.text == TEXT
    assert answer.response_metadata["finish_reason"] == "stop"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["input_tokens"] == 2
    assert answer.usage_metadata["output_tokens"] == 5
    (call,) = server.calls
    assert call.completed
    assert call.chunks_sent == 5
    assert call.ended is not None
    assert call.ended >= call.started


async def test_openai_invoke(server: ModelServer, chat_openai: Connect) -> None:
    server.script = always(Reply(TEXT, finish="length", usage=(11, 7)))
    answer = await chat_openai().ainvoke("hi")
    assert answer.text == TEXT
    assert answer.response_metadata["finish_reason"] == "length"
    assert answer.usage_metadata["total_tokens"] == 18
    assert server.calls[0].completed


async def test_usage_can_be_absent(
    server: ModelServer, chat_openai: Connect, chat_ollama: Connect
) -> None:
    server.script = always(Reply(TEXT, usage=None))
    assert (await collect(chat_openai(stream_usage=True))).usage_metadata is None
    assert (await collect(chat_ollama())).usage_metadata is None


async def test_structured_output(
    server: ModelServer, chat_openai: Connect, chat_ollama: Connect
) -> None:
    server.script = always('{"winner": "a", "score": 3}')
    for llm in (chat_openai(), chat_ollama()):
        asked = llm.with_structured_output(Verdict, method="json_schema")
        assert await asked.ainvoke("judge") == Verdict(winner="a", score=3)
    for call in server.calls:
        assert call.request.schema is not None
        assert set(call.request.schema["properties"]) == {"winner", "score"}


async def test_request_helpers(server: ModelServer, chat_openai: Connect) -> None:
    blocks: list[str | dict[str, Any]] = [{"type": "text", "text": "look"}]
    await chat_openai().ainvoke([SystemMessage("be brief"), HumanMessage(blocks)])
    request = server.calls[0].request
    assert (request.index, request.shape, request.model) == (0, "openai", "m1")
    assert (request.system, request.user, request.text) == ("be brief", "look", "be brief\nlook")
    assert request.headers["authorization"] == "Bearer k"
    assert request.schema is None


async def test_openrouter(server: ModelServer, chat_openai: Connect) -> None:
    server.script = always(Reply(TEXT, cost=0.25))
    answer = await chat_openai(url=server.openrouter_url).ainvoke("hi")
    assert answer.response_metadata["token_usage"]["cost"] == 0.25
    assert server.calls[0].request.openrouter


async def test_openai_refuses_key(server: ModelServer, chat_openai: Connect) -> None:
    server.api_key = "right"
    with pytest.raises(openai.AuthenticationError) as caught:
        await collect(chat_openai(key="wrong"))
    assert caught.value.code == "invalid_api_key"
    assert (await collect(chat_openai(key="right"))).text == TEXT
    assert [(c.status, c.completed) for c in server.calls] == [(401, False), (200, True)]


async def test_openai_rate_limit(server: ModelServer, chat_openai: Connect) -> None:
    server.script = sequence([Reply(status=429, headers={"Retry-After": "7"}), TEXT])
    with pytest.raises(openai.RateLimitError) as caught:
        await collect(chat_openai())
    assert caught.value.response.headers["retry-after"] == "7"
    assert (await collect(chat_openai())).text == TEXT


async def test_openai_error_body(server: ModelServer, bare: openai.AsyncOpenAI) -> None:
    server.script = always(openai_error(400, "too long", "context_length_exceeded"))
    with pytest.raises(openai.BadRequestError) as caught:
        await bare.chat.completions.create(model="m1", messages=[{"role": "user", "content": "x"}])
    assert caught.value.code == "context_length_exceeded"


async def test_openai_cut(server: ModelServer, chat_openai: Connect) -> None:
    server.script = always(Reply(TEXT, cut_after=2))
    pieces: list[str] = []
    with pytest.raises(openai.APIConnectionError):
        await collect(chat_openai(), pieces)
    assert pieces == ["one", " two"]
    with pytest.raises(openai.APIConnectionError):
        await chat_openai().ainvoke("hi")
    assert not any(call.completed for call in server.wait_for_idle())


async def test_openai_stall(server: ModelServer, chat_openai: Connect) -> None:
    server.script = always(Reply(TEXT, stall_after=2))
    with pytest.raises(openai.APITimeoutError):
        await collect(chat_openai(timeout=1))
    with pytest.raises(TimeoutError):
        await collect(chat_openai(stream_chunk_timeout=1))
    calls = await asyncio.to_thread(server.wait_for_idle)
    assert [(c.completed, c.chunks_sent) for c in calls] == [(False, 2), (False, 2)]


async def test_openai_early_end(server: ModelServer, chat_openai: Connect) -> None:
    server.script = always(Reply(TEXT, end_early_after=2))
    answer = await collect(chat_openai())
    assert answer.text == "one two"
    assert "finish_reason" not in answer.response_metadata
    assert not server.wait_for_idle()[0].completed


async def test_openai_error_inside_stream(server: ModelServer, chat_openai: Connect) -> None:
    server.script = always(Reply(TEXT, error={"error": {"message": "boom", "code": 502}}))
    with pytest.raises(openai.APIError, match="boom") as caught:
        await collect(chat_openai())
    assert caught.value.code == "502"


async def test_openai_reasoning(server: ModelServer, bare: openai.AsyncOpenAI) -> None:
    server.script = always(Reply(TEXT, reasoning="let me think"))
    thought, text = "", ""
    stream = await bare.chat.completions.create(
        model="m1", messages=[{"role": "user", "content": "x"}], stream=True
    )
    async for event in stream:
        delta = event.choices[0].delta
        thought += getattr(delta, "reasoning_content", None) or ""
        text += delta.content or ""
    assert (thought, text) == ("let me think", TEXT)


async def test_openai_lists_models_and_refuses_unknown_ones(bare: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in bare.models.list()] == ["m1", "m2"]
    with pytest.raises(openai.NotFoundError) as caught:
        await bare.chat.completions.create(model="no", messages=[{"role": "user", "content": "x"}])
    assert caught.value.code == "model_not_found"


# --- ChatOllama ---


async def test_ollama_stream(server: ModelServer, chat_ollama: Connect) -> None:
    server.script = always(Reply(TEXT, reasoning="let me think"))
    answer = await collect(chat_ollama(reasoning=True))
    assert answer.text == TEXT
    assert answer.additional_kwargs["reasoning_content"] == "let me think"
    assert answer.response_metadata["done_reason"] == "stop"
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["output_tokens"] == 8
    assert server.calls[0].request.shape == "ollama"
    assert server.calls[0].completed


async def test_ollama_errors(server: ModelServer, chat_ollama: Connect) -> None:
    with pytest.raises(ResponseError) as caught:
        await collect(chat_ollama(model="no"))
    assert (caught.value.status_code, caught.value.error) == (404, "model 'no' not found")
    server.script = always(ollama_error(500, "out of memory"))
    with pytest.raises(ResponseError, match="out of memory"):
        await chat_ollama().ainvoke("hi")
    server.script = always(Reply(TEXT, error={"error": "boom"}))
    with pytest.raises(ResponseError, match="boom"):
        await collect(chat_ollama())


async def test_ollama_cut(server: ModelServer, chat_ollama: Connect) -> None:
    server.script = always(Reply(TEXT, cut_after=2))
    pieces: list[str] = []
    with pytest.raises(httpx.RemoteProtocolError):
        await collect(chat_ollama(), pieces)
    assert pieces == ["one", " two"]


async def test_ollama_stall(server: ModelServer, chat_ollama: Connect) -> None:
    server.script = always(Reply(TEXT, stall_after=1))
    with pytest.raises(httpx.ReadTimeout):
        await collect(chat_ollama(client_kwargs={"timeout": 0.3}))


async def test_ollama_early_end(server: ModelServer, chat_ollama: Connect) -> None:
    server.script = always(Reply(TEXT, end_early_after=2))
    answer = await collect(chat_ollama())
    assert answer.text == "one two"
    assert "done_reason" not in answer.response_metadata


async def test_ollama_lists_shows_and_embeds(server: ModelServer, closing: AsyncExitStack) -> None:
    client = AsyncClient(host=server.url)
    closing.push_async_callback(client.close)
    assert [model.model for model in (await client.list()).models] == ["m1", "m2"]
    info = (await client.show("m1")).modelinfo
    assert info is not None
    assert info["test.context_length"] == 131_072
    with pytest.raises(ResponseError) as caught:
        await client.show("no")
    assert caught.value.status_code == 404
    one, same, other = (await client.embed("m1", ["a b", "a b", "quite different"])).embeddings
    assert one == same
    assert one != other
    whole = await client.chat("m1", [{"role": "user", "content": "hi"}])
    assert (whole.message.content, whole.done_reason, whole.eval_count) == (TEXT, "stop", 5)


# --- the server itself ---


async def test_parallel_calls(server: ModelServer, chat_openai: Connect) -> None:
    server.script = lambda request: Reply(request.user, until=lambda: len(server.calls) == 8)
    llm = chat_openai()
    answers = await asyncio.gather(*(llm.ainvoke(f"q{n}") for n in range(8)))
    assert [answer.text for answer in answers] == [f"q{n}" for n in range(8)]
    calls = server.calls
    assert [call.request.index for call in calls] == list(range(8))
    ends = [call.ended for call in calls if call.ended is not None]
    assert max(call.started for call in calls) < min(ends)


async def test_sequence_past_its_end_fails(server: ModelServer, chat_openai: Connect) -> None:
    server.script = sequence(["only"], repeat_last=False)
    assert (await chat_openai().ainvoke("hi")).text == "only"
    with pytest.raises(openai.InternalServerError):
        await chat_openai().ainvoke("hi")
    with pytest.raises(AssertionError, match="past the 1 scripted"):
        server.check()
    server.failures.clear()


async def test_notices_a_client_that_disconnects(server: ModelServer, chat_openai: Connect) -> None:
    # Only the first chunks are sent before the client leaves, however slow the machine is. A
    # chunk timeout would use `asyncio.wait_for`, which loses some cancellations in Python 3.11.
    server.script = always(Reply(TEXT, stall_after=2))
    reading = asyncio.create_task(collect(chat_openai(stream_chunk_timeout=None)))
    await asyncio.to_thread(server.wait_for_chunks, 0, 2)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    (call,) = await asyncio.to_thread(server.wait_for_idle)
    assert not call.completed
    assert call.chunks_sent == 2


async def test_chunks(server: ModelServer, chat_openai: Connect) -> None:
    seen: list[int] = []
    server.on_chunk = lambda call, sent: seen.append(sent)
    server.script = always(Reply("abcdefg \n", chunk_size=3))
    pieces: list[str] = []
    await collect(chat_openai(), pieces)
    assert pieces == ["abc", "def", "g \n"]
    assert seen == [1, 2, 3]
    assert server.wait_for_chunks(0, 3).completed


CLIENT = """
import sys, urllib.request
body = b'{"model": "m1", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
urllib.request.urlopen(sys.argv[1] + "/v1/chat/completions", body).read()
"""


def test_kill_client_at_a_chunk(server: ModelServer) -> None:
    server.script = always(Reply(TEXT, chunk_delay=0.1))
    born = threading.Event()

    def kill(call: Call, sent: int) -> None:
        if sent == 3:
            born.wait(10)
            os.kill(client.pid, signal.SIGKILL)

    server.on_chunk = kill
    client = subprocess.Popen([sys.executable, "-c", CLIENT, server.url])
    born.set()
    assert client.wait(60) == -signal.SIGKILL
    (call,) = server.wait_for_idle()
    assert not call.completed
    assert call.chunks_sent in (3, 4)


def test_stop_with_open_calls() -> None:
    before = set(threading.enumerate())
    failures: list[Exception] = []

    def ask(url: str) -> None:
        try:
            httpx.post(f"{url}/api/chat", json={"model": "m1", "messages": []}, timeout=60)
        except httpx.TransportError as error:
            failures.append(error)

    with ModelServer(sequence([Reply(TEXT, stall_after=1), Reply(TEXT, delay=30)])) as server:
        clients = [threading.Thread(target=ask, args=(server.url,)) for _ in range(2)]
        for client in clients:
            client.start()
        server.wait_for_calls(2)
    for client in clients:
        client.join(10)
    assert len(failures) == 2
    assert set(threading.enumerate()) <= before
    assert all(call.ended and not call.completed for call in server.calls)


def test_wait_times_out(server: ModelServer) -> None:
    with pytest.raises(TimeoutError, match="2 calls"):
        server.wait_for_calls(2, timeout=0.01)


def test_failing_script_fails_the_test() -> None:
    def script(request: Request) -> Reply:
        raise LookupError("no such role")

    def ask() -> None:
        with ModelServer(script, models=None) as server:
            answer = httpx.post(f"{server.url}/api/chat", json={"model": "any", "messages": []})
            assert answer.status_code == 500

    with pytest.raises(LookupError):
        ask()


def test_own_process() -> None:
    command = [sys.executable, "-m", "tests.support.model_server", "--tokens", "7"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as served:
        assert served.stdout is not None
        url = served.stdout.readline().strip()
        body = {"model": "any", "messages": [], "stream": False}
        answer = httpx.post(f"{url}/v1/chat/completions", json=body).json()
        served.communicate()
    assert len(answer["choices"][0]["message"]["content"].split()) == 7
    assert served.returncode == 0
    assert answer["usage"]["completion_tokens"] == 7
