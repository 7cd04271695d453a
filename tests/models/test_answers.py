"""The time limits of a streamed answer, with a simulated clock."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import httpx2
import pytest
from langchain_core.messages import HumanMessage

from contend.graph.errors import ModelFailed
from contend.graph.settings import AdversarialSettings
from contend.graph.values import Seat
from contend.models.answers import Reply
from contend.models.calls import ask_model
from contend.models.prices import Price
from contend.models.providers import embedded
from contend.models.providers.connections import PooledTransport
from contend.models.providers.weights import SMALLEST
from contend.models.retries import FailedAttempt, Listener

OPENAI, OPENROUTER, OLLAMA = "openai:m1", "openrouter:a/m1", "ollama:m1"
EMBEDDED = "embedded:qwen2.5-coder-1.5b-instruct-q4_k_m"
Step = float | bytes  # seconds of silence, or bytes
WORDS = ("one ", "two")


def openai_event(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    return b"data: " + json.dumps({**event, "choices": [choice]}).encode() + b"\n\n"


def openai_usage(**counts: Any) -> bytes:
    event = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m1"}
    return b"data: " + json.dumps({**event, "choices": [], "usage": counts}).encode() + b"\n\n"


def ollama_line(text: str, finish: str | None = None) -> bytes:
    ending = {"done": True, "done_reason": finish} if finish else {"done": False}
    line = {"model": "m1", "created_at": "2025-01-01T00:00:00Z"}
    message = {"role": "assistant", "content": text}
    return json.dumps({**line, "message": message, **ending}).encode() + b"\n"


def steps(model: str, before: list[Step], between: list[Step]) -> list[Step]:
    """Return a stream of `one two` with steps before its first and second token."""
    if model == OLLAMA:
        first, second = (ollama_line(word) for word in WORDS)
        return [*before, first, *between, second, ollama_line("", "stop")]
    first, second = (openai_event({"content": word}) for word in WORDS)
    opening = openai_event({"role": "assistant", "content": ""})
    ending = openai_event({}, "stop") + b"data: [DONE]\n\n"
    return [opening, *before, first, *between, second, ending]


class Wire:
    """Answers every request with the same bytes, timed by the event loop."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.requests = 0

    async def send(self) -> AsyncIterator[bytes]:
        for step in self.steps:
            if isinstance(step, bytes):
                yield step
            else:
                await asyncio.sleep(step)

    async def handle(self, library: Any) -> Any:
        wire = self

        class Stream(library.AsyncByteStream):  # type: ignore[misc]
            def __aiter__(self) -> AsyncIterator[bytes]:
                return wire.send()

        wire.requests += 1
        kind = "application/x-ndjson" if library is httpx else "text/event-stream"
        return library.Response(200, headers={"Content-Type": kind}, stream=Stream())


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Wire:
    wire = Wire()

    async def handle(transport: object, _request: object) -> Any:
        return await wire.handle(getattr(transport, "_library", httpx2))

    for transport in (PooledTransport, httpx2.AsyncHTTPTransport):
        monkeypatch.setattr(transport, "handle_async_request", handle)
    for service in ("OPENAI", "OPENROUTER"):
        monkeypatch.setenv(f"{service}_BASE_URL", "http://127.0.0.1:1/v1")
        monkeypatch.setenv(f"{service}_API_KEY", "key")
    served = embedded._Served(None, "http://127.0.0.1:1", "key")
    monkeypatch.setattr(embedded, "_serve", lambda _: served)
    monkeypatch.setattr(embedded, "find_weights", lambda *_: Path(f"{SMALLEST}.gguf"))
    return wire


async def ask(model: str, troubles: list[FailedAttempt], **changes: Any) -> str:
    return (await answer(model, troubles, **changes)).text


async def answer(model: str, troubles: list[FailedAttempt], **changes: Any) -> Reply:
    seat = Seat(id="proposer", name="Proposer", role="proposer", model=model, temperature=0.7)
    settings = AdversarialSettings.model_validate({"idle_timeout": 6} | changes)
    listener = Listener(on_failed_attempt=troubles.append)
    return (await ask_model(seat, [HumanMessage("Why?")], settings, listener)).result


every_shape = pytest.mark.parametrize("model", [OPENAI, OPENROUTER, OLLAMA, EMBEDDED])


@every_shape
@pytest.mark.looptime
async def test_the_idle_timeout_begins_with_the_first_token(wire: Wire, model: str) -> None:
    wire.steps, troubles = steps(model, [9.0], [5.0]), list[FailedAttempt]()
    assert await ask(model, troubles) == "one two"
    assert (wire.requests, troubles) == (1, [])


@every_shape
@pytest.mark.looptime
async def test_silence_after_the_first_token_is_a_stall(wire: Wire, model: str) -> None:
    wire.steps, troubles = steps(model, [], [7.0]), list[FailedAttempt]()
    with pytest.raises(ModelFailed, match=r"no token for 6 s \(setting idle_timeout\)"):
        await ask(model, troubles, max_retries=1)
    assert [each.failure.kind for each in troubles] == ["idle", "idle"]


@pytest.mark.parametrize("model", [OPENAI, OPENROUTER, OLLAMA])
@pytest.mark.looptime
async def test_a_first_token_timeout_is_not_retried(wire: Wire, model: str) -> None:
    wire.steps, troubles = steps(model, [301.0], []), list[FailedAttempt]()
    with pytest.raises(ModelFailed, match="raise the setting first_token_timeout") as failed:
        await ask(model, troubles)
    assert failed.value.kind == "first_token"
    assert (wire.requests, [each.what for each in troubles]) == (1, ["failed"])
    assert await ask(model, troubles, first_token_timeout=400) == "one two"


@pytest.mark.looptime
async def test_built_in_models_have_no_first_token_timeout(wire: Wire) -> None:
    wire.steps = steps(EMBEDDED, [800.0], [])
    assert await ask(EMBEDDED, [], first_token_timeout=1) == "one two"


@pytest.mark.looptime
async def test_the_total_timeout_includes_the_wait_for_the_first_token(wire: Wire) -> None:
    wire.steps = steps(EMBEDDED, [800.0], [])
    with pytest.raises(ModelFailed, match=r"within 700 s \(setting total_timeout\)"):
        await ask(EMBEDDED, [], total_timeout=700, max_retries=0)


@pytest.mark.parametrize(
    ("model", "field"), [(OPENROUTER, "reasoning"), (OPENAI, "reasoning_content")]
)
@pytest.mark.looptime
async def test_thinking_counts_as_the_first_token(wire: Wire, model: str, field: str) -> None:
    thoughts: list[Step] = [openai_event({field: word}) for word in ("It ", "may ", "rain. ")]
    wire.steps = steps(model, [step for each in thoughts for step in (100.0, each)] + [100.0], [])
    reply = await answer(model, [], idle_timeout=120, first_token_timeout=300)
    assert (reply.text, reply.thinking, wire.requests) == ("one two", "It may rain.", 1)


PINGS: dict[str, list[Step]] = {
    OPENAI: [5.0, b": ping\n\n", 5.0, b": ping\n\n", 5.0, openai_event({"content": ""}), 5.0],
    OPENROUTER: [*(5.0, b": OPENROUTER PROCESSING\n\n") * 3, 5.0],
    OLLAMA: [5.0, b"\n", 5.0, b"\r\n\n", 5.0, ollama_line(""), 5.0],
    EMBEDDED: [5.0, b":\n\n", 5.0, b": ping\n\n", 5.0],
}


@every_shape
@pytest.mark.looptime
async def test_keep_alives_reset_the_idle_timeout(wire: Wire, model: str) -> None:
    wire.steps, troubles = steps(model, [], PINGS[model]), list[FailedAttempt]()
    assert await ask(model, troubles, idle_timeout=6) == "one two"
    assert (wire.requests, troubles) == (1, [])


@pytest.mark.parametrize("model", [OPENAI, OPENROUTER, OLLAMA])
@pytest.mark.looptime
async def test_keep_alives_do_not_count_as_the_first_token(wire: Wire, model: str) -> None:
    ping: Step = b"\n" if model == OLLAMA else b": ping\n\n"
    wire.steps = steps(model, [5.0, ping] * 10, [])
    with pytest.raises(ModelFailed) as failed:
        await ask(model, [], first_token_timeout=20)
    assert failed.value.kind == "first_token"


@pytest.mark.parametrize("details", [{"cached_tokens": 1500}, None])
async def test_cached_input_is_read_and_priced(wire: Wire, details: Any) -> None:
    counts = {"prompt_tokens": 2000, "completion_tokens": 300, "total_tokens": 2300}
    usage = openai_usage(**counts, prompt_tokens_details=details)
    text, ending = openai_event({"content": "one"}), openai_event({}, "stop")
    wire.steps = [text, ending, usage, b"data: [DONE]\n\n"]
    table = {OPENAI: Price(1, 4, cached=0.1)}
    with patch("contend.models.prices.price_of", lambda spec, _: table[str(spec)]):
        reply = await answer(OPENAI, [])
    assert reply.usage.cached_tokens == (1500 if details else None)
    assert reply.usage.cost_usd == pytest.approx(0.00185 if details else 0.0032)
