"""The call policy against a real server, with both API styles."""

import asyncio
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from contend.graph.errors import ModelFailed, Paused
from contend.graph.settings import AdversarialSettings
from contend.graph.values import Seat
from contend.models import retries
from contend.models.answers import Reply as Accepted
from contend.models.calls import CallTools, Extracted, ask_model, extract
from contend.models.limits import ProviderLimits, limits_of
from contend.models.providers.registry import _registered, parse_spec, provider_of
from contend.models.replies.rating import RatingBlock
from contend.models.retries import Answered, FailedAttempt, Listener
from contend.models.tools import calls_in, open_tools
from tests.support import model_server
from tests.support.model_server import (
    ModelServer,
    Reply,
    Request,
    always,
    ollama_error,
    openai_error,
    openrouter_error,
    sequence,
)

OPENAI, OLLAMA, OPENROUTER = "openai:m1", "ollama:m1", "openrouter:m1"
ANSWER = "A complete answer."
CANARIES = ("sk-canary-0123456789abcdef", "or-canary-0123456789abcdef")
MESSAGES = [SystemMessage("You are the Proposer."), HumanMessage("Why?")]

both = pytest.mark.parametrize("model", [OPENAI, OLLAMA])


@dataclass
class Ear:
    """A listener that records what it receives and can request a pause."""

    pieces: list[str] = field(default_factory=list)
    troubles: list[FailedAttempt] = field(default_factory=list)
    pause: bool = False

    def listener(self) -> Listener:
        return Listener(
            text=lambda piece, _: self.pieces.append(piece),
            on_failed_attempt=self.troubles.append,
            pause_requested=lambda: self.pause,
        )

    @property
    def heard(self) -> list[tuple[str, str]]:
        return [(trouble.what, trouble.failure.kind) for trouble in self.troubles]


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Skip the waits between attempts and record their lengths."""
    waited: list[float] = []
    pause = retries._pause_before_retry

    async def at_once(seconds: float, listener: Listener) -> None:
        waited.append(seconds)
        await pause(0, listener)

    monkeypatch.setattr(retries, "_pause_before_retry", at_once)
    monkeypatch.setattr(ProviderLimits, "_is_open", lambda _: True)
    return waited


def seat(model: str, *fallbacks: str) -> Seat:
    return Seat(
        id="proposer",
        name="Proposer",
        role="proposer",
        model=model,
        temperature=0.7,
        fallback_models=fallbacks,
    )


def settings(**changes: Any) -> AdversarialSettings:
    return AdversarialSettings.model_validate({"retry_wait": 0.5} | changes)


async def asked(model: str, ear: Ear, *fallbacks: str, **changes: Any) -> Answered[Accepted]:
    listener = ear.listener()
    return await ask_model(seat(model, *fallbacks), list(MESSAGES), settings(**changes), listener)


async def failed(model: str, ear: Ear, *fallbacks: str, **changes: Any) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        await asked(model, ear, *fallbacks, **changes)
    assert not any(key in str(caught.value) for key in CANARIES)
    return caught.value


# --- answers that count ---


@both
async def test_a_complete_answer(server: ModelServer, ear: Ear, model: str) -> None:
    server.script = always(Reply(ANSWER, usage=(11, 7)))
    answered = await asked(model, ear)
    assert (answered.model, answered.fell_back) == (model, False)
    assert answered.result.text == "".join(ear.pieces) == ANSWER
    assert answered.result.usage.input_tokens == 11
    assert answered.result.usage.output_tokens == 7
    assert ear.troubles == []
    (call,) = server.calls
    assert call.request.system == "You are the Proposer."
    assert call.request.user == "Why?"


async def test_temperature_and_window_reach_the_provider(server: ModelServer, ear: Ear) -> None:
    await asked(OPENAI, ear)
    await asked(OLLAMA, ear, context_tokens=4096)
    openai, ollama = (call.request.body for call in server.calls)
    assert openai["temperature"] == ollama["options"]["temperature"] == 0.7
    assert ollama["options"]["num_ctx"] == 4096


@pytest.mark.parametrize("model", [OPENAI, OLLAMA])
@pytest.mark.parametrize(
    ("text", "thinking"),
    [
        (f"<think>Hm.</think>{ANSWER}", "Hm."),
        (f"<think>\nHm.\n</think>\n\n{ANSWER}", "Hm."),
        (f"Hm.\n</think>\n{ANSWER}", "Hm."),
        (f"<think>Hm.</think>{ANSWER}\n<think>\nOk?\n</think>", "Hm.\nOk?"),
        (f"{ANSWER}\n<think>\nand more", "and more"),
    ],
)
async def test_separates_thinking_from_the_answer(
    server: ModelServer, ear: Ear, model: str, text: str, thinking: str
) -> None:
    server.script = always(text)
    reply = (await asked(model, ear)).result
    assert (reply.text, reply.thinking) == (ANSWER, thinking)


@pytest.mark.parametrize("model", [OPENAI, OLLAMA, OPENROUTER])
async def test_a_reasoning_field_never_enters_the_text(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = always(Reply(ANSWER, reasoning="Let me think."))
    reply = (await asked(model, ear)).result
    assert reply.text == "".join(ear.pieces) == ANSWER


async def test_retries_an_answer_that_is_only_thinking(server: ModelServer, ear: Ear) -> None:
    server.script = sequence(["<think>Hm.</think>", "<think>Hm.", ANSWER])
    assert (await asked(OPENAI, ear)).result.text == ANSWER
    assert ear.heard == [("retried", "empty")] * 2


async def test_text_is_cleaned(server: ModelServer, ear: Ear) -> None:
    server.script = always("\x1b[31mred\x1b[0m\x00\r\nend \ud800\x07")
    assert (await asked(OPENAI, ear)).result.text == "[31mred[0m\nend"


# --- answers that do not count, tried again ---


BROKEN = {
    "server": Reply(status=500),
    "cut": Reply("one two three four", end_early_after=2),
    "connection": Reply("one two three four", cut_after=2),
    "empty": Reply(""),
    "length": Reply("one two three", finish="length"),
}


@both
@pytest.mark.parametrize("kind", BROKEN)
async def test_retries_a_temporary_failure(
    server: ModelServer, ear: Ear, model: str, kind: str
) -> None:
    server.script = sequence([BROKEN[kind], BROKEN[kind], ANSWER])
    answered = await asked(model, ear)
    assert answered.result.text == ANSWER
    assert not answered.fell_back
    assert ear.heard == [("retried", kind)] * 2
    assert len(server.calls) == 3


@both
async def test_retries_an_empty_stream_as_cut(server: ModelServer, ear: Ear, model: str) -> None:
    server.script = sequence([Reply("one two", end_early_after=0), ANSWER])
    assert (await asked(model, ear)).result.text == ANSWER
    assert ear.heard == [("retried", "cut")]


@both
async def test_a_stalled_stream_hits_the_idle_timeout(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = sequence([Reply("one two three", stall_after=1), ANSWER])
    assert (await asked(model, ear, idle_timeout=1)).result.text == ANSWER
    assert ear.heard == [("retried", "idle")]
    assert "no token for 1 s" in ear.troubles[0].failure.why


@both
async def test_an_endless_answer_hits_the_total_timeout(
    server: ModelServer, ear: Ear, model: str
) -> None:
    slow = Reply(" ".join(["word"] * 500), chunk_delay=0.1)
    server.script = sequence([slow, ANSWER])
    assert (await asked(model, ear, idle_timeout=5, total_timeout=1.5)).result.text == ANSWER
    assert ear.heard == [("retried", "total")]


@both
async def test_tokens_keep_a_slow_answer_alive(server: ModelServer, ear: Ear, model: str) -> None:
    server.script = always(Reply("one two three four five six", chunk_delay=0.4))
    assert (await asked(model, ear, idle_timeout=2)).result.text == "one two three four five six"
    assert ear.troubles == []


@both
async def test_requests_a_shorter_answer_after_a_length_cut(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = sequence([Reply("one two", finish="length"), Reply(status=500), ANSWER])
    await asked(model, ear)
    first, second, third = (call.request for call in server.calls)
    assert len(second.messages) == len(first.messages) + 1
    assert "half the length" in second.user
    assert third.user == "Why?", "the nudge answers a length cut, not any failure"


LIMIT = CallTools(limit=300)


def ceilings(server: ModelServer) -> list[int | None]:
    """Return the token limit sent with each call."""
    bodies = [call.request.body for call in server.calls]
    return [
        body.get("max_completion_tokens", body.get("options", {}).get("num_predict"))
        for body in bodies
    ]


async def limited(model: str, ear: Ear, **changes: Any) -> Answered[Accepted]:
    return await ask_model(seat(model), list(MESSAGES), settings(**changes), ear.listener(), LIMIT)


@both
async def test_does_not_request_a_shorter_answer_if_the_turn_has_a_limit(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = sequence([Reply("one two", finish="length"), Reply(status=500), ANSWER])
    await limited(model, ear, max_retries=2)
    assert {call.request.user for call in server.calls} == {"Why?"}
    assert ceilings(server) == [600, 2400, 2400], "the last try keeps a long answer whole, too"


@both
async def test_a_model_that_never_ends_is_stopped_and_fails(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = always(Reply("one two", finish="length"))
    with pytest.raises(ModelFailed, match="cut off"):
        await limited(model, ear, max_retries=1)
    assert ceilings(server) == [600, 2400]


@both
async def test_a_turn_without_a_limit_has_a_ceiling_too(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = sequence([Reply("one two", finish="length"), ANSWER])
    await asked(model, ear)
    # Nobody knows of these models whether they think, so they have room to.
    assert ceilings(server) == [2 * 4096 + 8192, 8 * 4096 + 8192]
    await extracted(model, ear)
    assert ceilings(server)[-1] == 2 * 4096 + 8192


REFUSALS = [
    "max_tokens is too large: 16384. This model supports at most 4096 completion tokens.",
    "max_tokens: 16384 > 4096, which is the maximum allowed number of output tokens",
    "Unrecognized request argument supplied: max_completion_tokens",
    "This model's maximum context length is 8192 tokens. However, you requested 16400 tokens "
    "(16 in the messages, 16384 in the completion).",
]


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_model_that_refuses_the_ceiling_is_asked_without_one(
    server: ModelServer, ear: Ear, refusal: str
) -> None:
    refused = openai_error(400, refusal)
    server.script = lambda r: refused if "max_completion_tokens" in r.body else ANSWER
    for _ in range(2):
        assert (await asked(OPENAI, ear, max_retries=0)).result.text == ANSWER
    assert ceilings(server) == [8 * 4096 + 8192, None, None]
    assert ear.heard == []


async def test_fails_if_the_request_is_refused_without_a_ceiling_too(
    server: ModelServer, ear: Ear
) -> None:
    server.script = always(openai_error(400, REFUSALS[-1]))
    assert (await failed(OPENAI, ear)).kind == "bad_request"
    assert len(server.calls) == 2


@both
async def test_a_call_without_retries_has_a_ceiling(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = always(ANSWER)
    await limited(model, ear, max_retries=0)
    assert ceilings(server) == [2400]


@both
async def test_retry_after_is_honoured(
    server: ModelServer, ear: Ear, waits: list[float], model: str
) -> None:
    limited = Reply(status=429, headers={"Retry-After": "7"})
    server.script = sequence([limited, ANSWER])
    assert (await asked(model, ear)).result.text == ANSWER
    assert ear.heard == []  # waited out, so there is nothing to report
    # Ollama's client keeps no headers, so there the usual backoff is all there is.
    low, high = (7, 8) if model == OPENAI else (0, 0.5)
    assert low <= waits[0] <= high


async def test_a_provider_that_is_down_is_skipped_where_there_is_a_fallback(
    server: ModelServer, ear: Ear
) -> None:
    server.script = lambda request: Reply(status=503) if "m1" in request.model else ANSWER
    down, up = OPENROUTER, "openai:m2"
    for _ in range(2):
        await asked(down, ear, up, max_retries=2)
    before = len(server.calls)
    answered = await asked(down, ear, up, max_retries=2)
    assert (answered.model, answered.fell_back) == (up, True)
    assert ear.heard[-1] == ("fell_back", "unavailable")
    assert len(server.calls) == before + 1
    # Without a fallback it is the only hope.
    assert (await failed(down, ear, max_retries=0)).kind == "server"


async def test_rate_limits_are_bounded_by_time_not_by_retries(
    server: ModelServer, ear: Ear, waits: list[float]
) -> None:
    limited = Reply(status=429, headers={"Retry-After": "9"})
    server.script = sequence([*[limited] * 8, ANSWER])
    assert (await asked(OPENAI, ear, max_retries=0)).result.text == ANSWER
    assert len(waits) == 8
    server.script = always(limited)
    failure = await failed(OPENAI, ear, "openai:m2", rate_limit_patience=5)
    assert failure.kind == "rate_limit"
    assert ear.heard == [("fell_back", "rate_limit"), ("failed", "rate_limit")]
    assert len(waits) == 8


@pytest.mark.parametrize("model", [OPENAI, OLLAMA, OPENROUTER])
async def test_reads_the_remaining_requests_from_response_headers(
    server: ModelServer, ear: Ear, model: str
) -> None:
    headers = {"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "60s"}
    server.script = always(Reply(ANSWER, headers=headers))
    await asked(model, ear)
    limits = limits_of(parse_spec(model))
    assert limits._requests.left == 3
    server.script = always(Reply(FORM.model_dump_json(), headers=headers))
    await extracted(model, ear)
    assert limits._requests.left == 3


async def test_waits_grow_with_full_jitter(
    server: ModelServer, ear: Ear, waits: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(random, "uniform", lambda low, high: high)
    server.script = always(Reply(status=503))
    await failed(OPENAI, ear, max_retries=8)
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]


# --- failures that trying again cannot mend ---


FATAL = [
    (OPENAI, Reply(status=401), "auth"),
    (OPENAI, Reply(status=403), "auth"),
    (OPENAI, Reply(status=404), "unknown_model"),
    (OPENAI, openai_error(402, "Payment required"), "quota"),
    (OPENAI, openai_error(429, "You exceeded your quota", "insufficient_quota"), "quota"),
    (OPENAI, openai_error(400, "too long", "context_length_exceeded"), "context_overflow"),
    (OPENAI, openai_error(400, "Your input exceeds the context window"), "context_overflow"),
    (OPENAI, openai_error(400, "temperature is not supported"), "bad_request"),
    (OPENAI, Reply("I cannot", finish="content_filter"), "refused"),
    (OPENAI, Reply(status=429, headers={"Retry-After": "1000"}), "rate_limit"),
    (OLLAMA, ollama_error(401, "unauthorized"), "auth"),
    (OLLAMA, ollama_error(403, "forbidden"), "auth"),
    (OLLAMA, ollama_error(404, "model 'm1' not found"), "unknown_model"),
    (OLLAMA, ollama_error(402, "usage limit"), "quota"),
    (OLLAMA, ollama_error(400, "input exceeds context window"), "context_overflow"),
    (OPENROUTER, openrouter_error(402, "Insufficient credits"), "quota"),
    (OPENROUTER, openrouter_error(401, "No auth credentials found"), "auth"),
]


@pytest.mark.parametrize(("model", "reply", "kind"), FATAL)
async def test_a_permanent_failure_is_not_retried(
    server: ModelServer, ear: Ear, waits: list[float], model: str, reply: Reply, kind: str
) -> None:
    server.script = always(reply)
    failure = await failed(model, ear)
    assert (failure.seat, failure.model, failure.kind) == ("Proposer", model, kind)
    assert str(failure).startswith(f"Proposer ({model}): ")
    assert ear.heard == [("failed", kind)]
    assert len(server.calls) == 1
    assert waits == []


async def test_keeps_the_providers_error_message(server: ModelServer, ear: Ear) -> None:
    server.script = always(openai_error(400, "The temperature must be 1 for this model."))
    failure = await failed(OPENAI, ear)
    assert failure.why == "400: The temperature must be 1 for this model."


@both
async def test_retries_a_refused_connection(
    server: ModelServer, ear: Ear, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:1")
    failure = await failed(model, ear, max_retries=2)
    assert failure.kind == "connection"
    assert ear.heard == [("retried", "connection")] * 2 + [("failed", "connection")]
    assert server.calls == []


@both
async def test_an_exhausted_call_names_seat_model_and_reason(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = always(Reply(status=500))
    failure = await failed(model, ear, max_retries=2)
    assert len(server.calls) == 3
    assert str(failure).startswith(f"Proposer ({model}): 500: ")
    assert ear.heard == [("retried", "server")] * 2 + [("failed", "server")]


async def test_no_retries_means_one_call(server: ModelServer, ear: Ear) -> None:
    server.script = always(Reply(status=500))
    await failed(OPENAI, ear, max_retries=0)
    assert len(server.calls) == 1


@both
async def test_retries_after_an_error_inside_the_stream(
    server: ModelServer, ear: Ear, model: str
) -> None:
    error = {"error": {"message": "overloaded", "code": 503}} if model == OPENAI else None
    broken = Reply("one two", error=error or {"error": "llama runner process has terminated"})
    server.script = sequence([broken, ANSWER])
    assert (await asked(model, ear)).result.text == ANSWER
    assert [what for what, _ in ear.heard] == ["retried"]


async def test_an_unexpected_exception_is_named_scrubbed_and_not_retried(
    server: ModelServer,
) -> None:
    def broken(piece: str, model: str) -> None:
        raise KeyError(f"Bearer {os.environ['OPENAI_API_KEY']}")

    with pytest.raises(ModelFailed, match=r"KeyError.*\*\*\*") as failed:
        await ask_model(seat(OPENAI), list(MESSAGES), settings(), Listener(text=broken))
    assert failed.value.kind == "unexpected"
    assert "canary" not in str(failed.value)
    assert len(server.calls) == 1


# --- fallbacks ---


def only(good: str) -> Callable[[Request], Reply | str]:
    return lambda request: ANSWER if request.model == good else Reply(status=401)


async def test_fallbacks_are_tried_in_order(server: ModelServer, ear: Ear) -> None:
    server.models, server.script = None, only("m3")
    answered = await asked(OPENAI, ear, "ollama:m2", "openai:m3", "openai:m4")
    assert (answered.model, answered.fell_back) == ("openai:m3", True)
    assert [call.request.model for call in server.calls] == ["m1", "m2", "m3"]
    assert [(t.what, t.model) for t in ear.troubles] == [
        ("fell_back", "openai:m1"),
        ("fell_back", "ollama:m2"),
    ]


async def test_a_fallback_to_the_same_model_counts_as_a_fallback(
    server: ModelServer, ear: Ear
) -> None:
    server.script = sequence([Reply(status=401), ANSWER])
    answered = await asked(OPENAI, ear, OPENAI)
    assert answered.fell_back


async def test_names_the_last_fallback_if_all_models_fail(server: ModelServer, ear: Ear) -> None:
    server.models, server.script = None, only("nobody")
    failure = await failed(OPENAI, ear, "openai:m2")
    assert failure.model == "openai:m2"
    assert ear.heard == [("fell_back", "auth"), ("failed", "auth")]


# --- pausing ---


@pytest.mark.parametrize("seconds", [10_000.0, 0.0])
async def test_a_pause_during_backoff_makes_no_further_call(
    server: ModelServer, ear: Ear, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
    monkeypatch.setenv("OPENAI_API_KEY", CANARIES[0])
    monkeypatch.setattr(retries, "_backoff", lambda *_: seconds)
    server.script = always(Reply(status=500))

    def on_trouble(trouble: FailedAttempt) -> None:
        asyncio.get_running_loop().call_later(0.05 if seconds else 0, setattr, ear, "pause", True)
        ear.pause = not seconds

    listener = Listener(on_failed_attempt=on_trouble, pause_requested=lambda: ear.pause)
    with pytest.raises(Paused):
        await ask_model(seat(OPENAI), list(MESSAGES), settings(), listener)
    assert len(server.calls) == 1


# --- keys ---


@pytest.mark.parametrize("status", [400, 401, 429, 500])
@pytest.mark.parametrize("model", [OPENAI, OPENROUTER])
async def test_a_key_the_provider_echoes_is_never_passed_on(
    server: ModelServer, ear: Ear, model: str, status: int
) -> None:
    echo = f"Incorrect API key provided: {CANARIES[0]} or {CANARIES[1]}."
    server.script = always(openai_error(status, echo))
    failure = await failed(model, ear, max_retries=1)
    heard = str(failure) + failure.why + "".join(t.failure.why for t in ear.troubles)
    assert "Incorrect API key provided: ***" in heard
    assert not any(key in heard for key in CANARIES)


# --- usage and price ---


@pytest.mark.parametrize(
    ("model", "prices", "cost"),
    [
        (OPENAI, {}, None),
        (OPENAI, {"openai:m1": [2.0, 10.0]}, (1000 * 2 + 500 * 10) / 1e6),
        (OPENAI, {"openai:m2": [2.0, 10.0]}, None),
        (OLLAMA, {}, 0.0),
        (OLLAMA, {"ollama:m1": [1.0, 1.0]}, 1500 / 1e6),
    ],
)
async def test_the_price_of_a_call(
    server: ModelServer, ear: Ear, model: str, prices: dict[str, Any], cost: float | None
) -> None:
    server.script = always(Reply(ANSWER, usage=(1000, 500)))
    usage = (await asked(model, ear, prices=prices)).result.usage
    assert usage.cost_usd == (None if cost is None else pytest.approx(cost))


async def test_usage_is_unknown_if_the_provider_does_not_report_it(
    server: ModelServer, ear: Ear
) -> None:
    server.script = always(Reply(ANSWER, usage=None))
    usage = (await asked(OPENAI, ear, prices={"openai:m1": [1, 1]})).result.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (None, None, None)


# --- answers in a form ---

FORM = RatingBlock(
    correctness=8,
    completeness=7,
    clarity=6,
    depth=5,
    justification="Sound.",
    would_benefit_from_finetune=False,
)


async def extracted(model: str, ear: Ear, **changes: Any) -> Extracted[RatingBlock]:
    listener = ear.listener()
    form = await extract(seat(model), list(MESSAGES), RatingBlock, settings(**changes), listener)
    return form.result


@both
async def test_requests_a_form_by_schema_and_reads_it(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = always(Reply(FORM.model_dump_json(), usage=(9, 4)))
    found = await extracted(model, ear)
    assert found.block == FORM
    assert found.usage.input_tokens == 9
    (call,) = server.calls
    assert call.request.schema is not None
    assert set(FORM.model_dump()) <= set(call.request.schema["properties"])
    temperature = call.request.body.get("options", call.request.body)["temperature"]
    assert temperature == 0


@both
@pytest.mark.parametrize(
    "reply",
    [
        Reply("I would rather not."),
        Reply('{"correctness": 11}'),
        Reply(FORM.model_dump_json()[:-30], finish="length"),
        Reply(""),
    ],
)
async def test_an_invalid_form_returns_none_without_a_retry(
    server: ModelServer, ear: Ear, model: str, reply: Reply
) -> None:
    server.script = always(reply)
    assert (await extracted(model, ear)).block is None
    assert len(server.calls) == 1


@both
async def test_retries_a_form_after_a_temporary_failure(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = sequence([Reply(status=500), FORM.model_dump_json()])
    assert (await extracted(model, ear)).block == FORM
    assert ear.heard == [("retried", "server")]


@both
async def test_a_form_hits_the_total_timeout(server: ModelServer, ear: Ear, model: str) -> None:
    server.script = sequence([Reply("{", stall_after=0), FORM.model_dump_json()])
    assert (await extracted(model, ear, total_timeout=1.5)).block == FORM
    assert ear.heard == [("retried", "total")]


# --- tools ---


async def no_search(query: str) -> tuple[str, Any]:
    raise AssertionError


TOOLS = tuple(open_tools(("calculate", "search_documents"), no_search))
SUM = ("calculate", {"expression": "6 * 7"})


async def asked_with(model: str, ear: Ear, tools: CallTools, **changes: Any) -> Accepted:
    listener = ear.listener()
    answered = await ask_model(seat(model), list(MESSAGES), settings(**changes), listener, tools)
    return answered.result


@both
async def test_tools_are_offered_and_called_while_the_text_streams(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = always(Reply("Let me see.", tool_calls=[SUM, SUM], usage=(11, 7)))
    reply = await asked_with(model, ear, CallTools(TOOLS))
    assert server.calls[0].request.tools == ["calculate", "search_documents"]
    assert reply.text == "".join(ear.pieces) == "Let me see."
    assert reply.message is not None
    assert [(each["name"], each["args"]) for each in calls_in(reply.message)] == [SUM, SUM]
    assert len({each["id"] for each in calls_in(reply.message)}) == 2
    assert reply.usage.output_tokens == 7


@both
async def test_a_tool_call_without_text_can_be_answered(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = sequence([Reply(tool_calls=[SUM]), "It is 42."])
    asking = (await asked_with(model, ear, CallTools(TOOLS))).message
    assert asking is not None
    (call,) = calls_in(asking)
    told = ToolMessage("42", tool_call_id=str(call["id"]))
    answered = await ask_model(seat(model), [*MESSAGES, asking, told], settings(), ear.listener())
    assert answered.result.text == "It is 42."
    request = server.calls[1].request
    assert request.results == ["42"]
    assert request.messages[2]["tool_calls"][0]["function"]["name"] == "calculate"
    assert request.tools == []


@both
async def test_offers_no_tools_when_the_tool_calls_are_used_up(
    server: ModelServer, ear: Ear, model: str
) -> None:
    server.script = sequence([Reply(tool_calls=[SUM]), ANSWER])
    reply = await asked_with(model, ear, CallTools(TOOLS, spent=True))
    assert (reply.text, reply.message) == (ANSWER, None)
    assert [call.request.tools for call in server.calls] == [[], []]
    assert ear.heard == [("retried", "empty")]


async def test_sends_used_up_tools_to_a_provider_that_requires_them(
    server: ModelServer, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    demanding = replace(provider_of(parse_spec(OPENAI)), history_needs_tools=True)
    monkeypatch.setitem(_registered, "openai", demanding)
    server.script = sequence([Reply("Once more!", tool_calls=[SUM]), ANSWER])
    reply = await asked_with(OPENAI, ear, CallTools(TOOLS, spent=True))
    assert (reply.text, reply.message) == (ANSWER, None)
    assert len(server.calls[0].request.tools) == 2
    assert "called for a tool instead of answering" in ear.troubles[0].failure.why


async def test_returns_tool_arguments_unchanged_if_they_are_not_json(
    server: ModelServer, ear: Ear
) -> None:
    server.script = always(Reply(tool_calls=[("calculate", "6 * 7")]))
    reply = await asked_with(OPENAI, ear, CallTools(TOOLS))
    (call,) = calls_in(reply.message)
    assert (call["name"], call["args"]) == ("calculate", "6 * 7")
    assert call["id"]


@both
async def test_calls_cut_by_length_do_not_count(server: ModelServer, ear: Ear, model: str) -> None:
    server.script = sequence([Reply(tool_calls=[SUM], finish="length"), ANSWER])
    assert (await asked_with(model, ear, CallTools(TOOLS))).text == ANSWER
    assert ear.heard == [("retried", "length")]


async def test_tool_call_arguments_are_cleaned_for_storage(server: ModelServer, ear: Ear) -> None:
    odd = {
        "expression": "1\ud800\x00",
        "big": 10**30,
        "odd": float("nan"),
        "in": [{"\x00": "\x00"}],
    }
    server.script = always(Reply("a\ud800", tool_calls=[("calculate", odd)]))
    reply = await asked_with(OPENAI, ear, CallTools(TOOLS))
    assert reply.message is not None
    (call,) = reply.message.tool_calls
    kept = {"expression": "1", "big": str(10**30), "odd": "nan", "in": [{"": ""}]}
    assert (call["args"], reply.message.text) == (kept, "a")
    serde = JsonPlusSerializer()
    assert serde.loads_typed(serde.dumps_typed(reply.message)) == reply.message


async def test_calls_without_an_id_get_one(
    server: ModelServer, ear: Ear, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = model_server._OpenAIWire._tool_calls

    def nameless(self: Any) -> list[dict[str, Any]]:
        return [{**each, "id": None} for each in plain(self)]

    monkeypatch.setattr(model_server._OpenAIWire, "_tool_calls", nameless)
    server.script = always(Reply(tool_calls=[SUM, SUM]))
    reply = await asked_with(OPENAI, ear, CallTools(TOOLS))
    assert [each["id"] for each in calls_in(reply.message)] == ["call_1", "call_2"]


async def test_all_calls_of_a_turn_share_one_total_timeout(server: ModelServer, ear: Ear) -> None:
    server.script = always(Reply("word " * 500, chunk_delay=0.02))
    with pytest.raises(ModelFailed, match="no complete answer within 60 s"):
        await asked_with(
            OPENAI, ear, CallTools(TOOLS, seconds=59.8), total_timeout=60, max_retries=0
        )
    assert ear.heard == [("failed", "total")]
