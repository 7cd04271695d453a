"""The OpenAI-compatible endpoints, called with the OpenAI client."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import Request
from openai import APIError, APIStatusError, AsyncOpenAI, BadRequestError, NotFoundError

from contend.debates.presets import presets_folder
from contend.service.errors import Refused
from contend.service.run import Run
from contend.service.starts import start_run
from tests.service.test_sse import Service, models, serve
from tests.support.model_server import ModelServer, Reply

__all__ = ["models"]

QUICK = {"contend": {"settings": {"min_rounds": 1, "max_rounds": 1}}}


@pytest.fixture
async def service(models: ModelServer) -> AsyncIterator[Service]:
    async with serve() as running:
        yield running


@pytest.fixture
async def client(service: Service) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=f"{service.url}/v1", api_key="none", max_retries=0
    ) as connected:
        yield connected


def ask(client: AsyncOpenAI, question: str = "Why?", **more: Any) -> Any:
    given = {"model": "contend/adversarial", "extra_body": QUICK, **more}
    messages = given.pop("messages", [{"role": "user", "content": question}])
    return client.chat.completions.create(messages=messages, **given)


async def test_the_message_content_is_the_final_answer(
    client: AsyncOpenAI, service: Service
) -> None:
    answered = await ask(client)
    found = (await service.http.get("/api/v1/debates")).json()["debates"]
    assert answered.id == f"chatcmpl-{found[0]['id']}"
    record = (await service.http.get(f"/api/v1/debates/{found[0]['id']}")).json()["record"]
    content = answered.choices[0].message.content
    assert content.endswith(record["final_answer"])
    assert all(warning in content for warning in record["warnings"])
    assert record["warnings"]
    usage = record["usage"]
    assert answered.usage.prompt_tokens == usage["input_tokens"] > 0
    assert answered.usage.completion_tokens == usage["output_tokens"] > 0


async def test_a_stream_sends_progress_as_reasoning_then_the_answer(
    client: AsyncOpenAI,
) -> None:
    reasoning, content, finished = "", "", []
    usage: Any = None
    options = {"include_usage": True}
    async for chunk in await ask(client, stream=True, stream_options=options):
        usage = chunk.usage or usage
        for choice in chunk.choices:
            assert not (content and getattr(choice.delta, "reasoning_content", None))
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            content += choice.delta.content or ""
            finished += [choice.finish_reason] if choice.finish_reason else []
    whole = await ask(client)
    assert content == whole.choices[0].message.content
    assert (usage.total_tokens, finished) == (whole.usage.total_tokens, ["stop"])
    assert "## Round 1" in reasoning
    assert reasoning.index("**Proposer:**") < reasoning.index("**Skeptic:**")


async def test_earlier_messages_are_sent_to_the_models(
    client: AsyncOpenAI, models: ModelServer
) -> None:
    parts = [{"type": "text", "text": "And at night?"}]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it safe by day?"},
        {"role": "assistant", "content": "Yes, it is."},
        {"role": "user", "content": parts},
    ]
    await ask(client, messages=messages)
    sent = models.calls[0].request.text
    places = [sent.index(each) for each in ("And at night?", "Be brief.", "Yes, it is.")]
    assert places == sorted(places)


async def test_protocols_and_presets_are_listed_as_models(client: AsyncOpenAI) -> None:
    presets_folder().mkdir(parents=True)
    text = "model: openai:m\nprotocol: refine\nmax_debate_rounds: 1\n"
    (presets_folder() / "mine.yaml").write_text(text)
    listed = [each.id async for each in client.models.list()]
    assert {"contend/forum", "contend/forecast", "contend/local", "contend/mine"} <= {*listed}
    answered = await ask(client, model="contend/mine", extra_body={})
    assert answered.choices[0].message.content


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"model": "gpt-5"}, NotFoundError, "There is no model 'gpt-5'; GET /v1/models"),
        ({"model": "contend/../x"}, NotFoundError, "There is no model"),
        ({"n": 2}, BadRequestError, "A debate gives one answer"),
        ({"tools": [{"type": "function"}]}, BadRequestError, "does not support `tools`"),
        ({"response_format": {"type": "json_object"}}, BadRequestError, "`response_format`"),
        ({"messages": []}, BadRequestError, "messages: List should have at least 1 item"),
        (
            {"messages": [{"role": "assistant", "content": "Hello"}]},
            BadRequestError,
            "The last message must come from the user",
        ),
        ({"question": " "}, BadRequestError, "question is empty"),
        ({"question": "x" * 200_001}, BadRequestError, "at most 200000 characters"),
        ({"stop": ["."]}, BadRequestError, "does not support `stop`"),
        ({"model": "contend/forecast"}, BadRequestError, "A forecast needs outcomes"),
        (
            {"extra_body": {"contend": {"settings": {"max_round": 2}}}},
            BadRequestError,
            "Did you mean 'max_rounds'",
        ),
        (
            {"extra_body": {"contend": {"settings": {"pause": "each_round"}}}},
            BadRequestError,
            "Nobody can answer here",
        ),
        (
            {"extra_body": {"contend": {"settings": {"skeptic_model": "human"}}}},
            BadRequestError,
            "Nobody can answer here",
        ),
    ],
)
async def test_refusals_use_openai_errors_and_cost_no_call(
    client: AsyncOpenAI,
    models: ModelServer,
    changes: dict[str, Any],
    error: type[APIStatusError],
    said: str,
) -> None:
    with pytest.raises(error) as refused:
        await ask(client, **changes)
    assert said in refused.value.body["message"]  # type: ignore[index]
    assert not models.calls


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failed_debate_returns_an_error_with_the_reason(
    client: AsyncOpenAI, models: ModelServer, *, stream: bool
) -> None:
    models.script = lambda _: Reply(status=401)
    with pytest.raises(APIError) as failed:
        await _read_all(client, stream=stream)
    assert "Proposer (openai:m)" in failed.value.message
    assert "sk-canary" not in str(failed.value.body)


async def test_client_retries_do_not_repeat_a_failed_debate(
    service: Service, models: ModelServer
) -> None:
    models.script = lambda _: Reply(status=401)
    async with AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=2) as client:
        with pytest.raises(APIStatusError) as failed:
            await ask(client)
    assert failed.value.status_code == 502
    assert len((await service.http.get("/api/v1/debates")).json()["debates"]) == 1


async def test_a_retried_request_returns_the_same_debate(
    client: AsyncOpenAI, service: Service
) -> None:
    first = await ask(client)
    again = await ask(client, extra_headers={"x-stainless-retry-count": "1"})
    anew = await ask(client, n=None)
    assert first.id == again.id != anew.id
    assert first.choices == again.choices
    assert len((await service.http.get("/api/v1/debates")).json()["debates"]) == 2


async def test_a_retry_during_preparation_returns_the_same_debate(
    client: AsyncOpenAI, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived: asyncio.Queue[Request] = asyncio.Queue()
    may_start = asyncio.Event()

    def note(request: Request) -> str:
        arrived.put_nowait(request)
        return "me"

    async def start_late(*given: Any, **more: Any) -> Run:
        await may_start.wait()
        return await start_run(*given, **more)

    monkeypatch.setattr("contend.service.chat.client_of", note)
    monkeypatch.setattr("contend.service.chat.start_run", start_late)
    first = asyncio.create_task(ask(client))
    await arrived.get()
    again = asyncio.create_task(ask(client, extra_headers={"x-stainless-retry-count": "1"}))
    await arrived.get()
    may_start.set()
    assert (await first).id == (await again).id
    assert len((await service.http.get("/api/v1/debates")).json()["debates"]) == 1


async def test_a_refused_start_can_be_retried(
    client: AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = [Refused(429, "too_many", "Too many debates are running.")]

    async def refuse_once(*given: Any, **more: Any) -> Run:
        if refusals:
            raise refusals.pop()
        return await start_run(*given, **more)

    monkeypatch.setattr("contend.service.chat.start_run", refuse_once)
    with pytest.raises(APIStatusError, match="Too many debates"):
        await ask(client)
    again = await ask(client, extra_headers={"x-stainless-retry-count": "1"})
    assert again.choices[0].message.content


async def _read_all(client: AsyncOpenAI, *, stream: bool) -> None:
    answered = await ask(client, stream=stream)
    _ = [chunk async for chunk in answered]
