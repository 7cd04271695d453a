"""Provides OpenAI's chat API, so that any chat client can use a debate as a model."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from contend.debates.presets import preset_names
from contend.debates.record import StoredDebate
from contend.graph.record import DebateRecord
from contend.graph.settings import SETTINGS
from contend.service.auth import client_of, require_token_from_network
from contend.service.bodies import describe_body, parse_body, parse_given, read_json
from contend.service.chat_forms import (
    ChatAnswer,
    ChatMessage,
    ChatModel,
    ChatModels,
    ChatRequest,
    chat_error,
    chat_errors,
    chat_status,
)
from contend.service.errors import Refused, error_headers, refusing_outages
from contend.service.lookup import TheRuns
from contend.service.openapi import errors
from contend.service.progress import follow_progress
from contend.service.run import Run
from contend.service.runs import Runs
from contend.service.sse import HEARTBEAT, MessageStream
from contend.service.starts import start_run
from contend.service.uploads import Start, Upload

_OWNER = "contend"
# Headers of OpenAI's clients.
_SHOULD_RETRY, _RETRIES = "x-should-retry", "x-stainless-retry-count"
_MOST_RECENT = 200
_DONE = b"data: [DONE]\n\n"
# Parameters that would change the form of the answer. Sampling parameters and token limits mean
# nothing to a debate and are ignored, as documented, because chat clients always send some.
_NOT_SUPPORTED = (
    *("tools", "functions", "response_format", "logprobs", "audio", "modalities", "stop"),
)
_PLAIN: tuple[object, ...] = (None, False, [], ["text"], {"type": "text"})


class _ChatRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_in_form(request: Request) -> Response:
            try:
                with refusing_outages():
                    return await handle(request)
            except Refused as refused:
                return _error_response(refused)

        return handle_in_form


router = APIRouter(
    prefix="/v1",
    tags=["chat"],
    dependencies=[Depends(require_token_from_network)],
    route_class=_ChatRoute,
)


def _error_response(refused: Refused) -> JSONResponse:
    headers = dict(error_headers(refused))
    if refused.body.debate_id:
        # OpenAI's clients retry failed requests, which would pay for another whole debate.
        headers[_SHOULD_RETRY] = "false"
    return JSONResponse(chat_error(refused), chat_status(refused), headers)


@router.get(
    "/models", summary="Protocols and presets as chat models", responses=chat_errors(401, 503)
)
async def get_chat_models() -> ChatModels:
    names = [*SETTINGS, *await asyncio.to_thread(preset_names)]
    found = [
        ChatModel(id=f"{_OWNER}/{name}", object="model", created=0, owned_by=_OWNER)
        for name in names
    ]
    return ChatModels(object="list", data=found)


@router.post(
    "/chat/completions",
    summary="Debate the last message, as a chat model",
    response_model=None,
    openapi_extra=describe_body(ChatRequest),
    responses={
        **errors(403),  # before it is known to be a chat request
        **chat_errors(401, 404, 408, 413, 415, 422, 429, 502, 503),
        200: {
            "model": ChatAnswer,
            "description": "The answer; with `stream`, its chunks as events.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
    },
)
async def post_chat(request: Request, runs: TheRuns) -> Response:
    """Debate the last message. The debate continues even if the client disconnects."""
    body = await read_json(request)
    asked = parse_body(ChatRequest, body)
    _refuse_unsupported(asked)
    run = await _run_of(request, runs, asked, body)
    if asked.stream:
        return MessageStream(_stream(runs, run, asked, follow_progress(run)))
    await asyncio.wait({run.task})
    return JSONResponse(_completion(await _ended(runs, run), asked))


async def _run_of(request: Request, runs: Runs, asked: ChatRequest, body: bytes) -> Run:
    """Start a debate or, if the client repeats a request, return the run of that request."""
    recent: dict[tuple[str, str], asyncio.Task[Run]] = request.app.state.recent_chats
    key = client_of(request), sha256(body).hexdigest()
    is_again = request.headers.get(_RETRIES, "0") != "0"
    started = recent.get(key) if is_again else None
    if started is None:
        # The task is kept before it is done: the client may repeat the request meanwhile.
        started = asyncio.create_task(_start(runs, asked, key[0]))
        recent.pop(key, None)
        recent[key] = started
        started.add_done_callback(partial(_forget_failed, recent, key))
        if len(recent) > _MOST_RECENT:
            del recent[next(iter(recent))]
    return await asyncio.shield(started)


async def _start(runs: Runs, asked: ChatRequest, client: str) -> Run:
    start = await asyncio.to_thread(_start_of, asked)
    return await start_run(runs, Upload(start), client, is_attended=False)


def _forget_failed(
    recent: dict[tuple[str, str], asyncio.Task[Run]],
    key: tuple[str, str],
    started: asyncio.Task[Run],
) -> None:
    has_failed = started.cancelled() or started.exception() is not None
    if has_failed and recent.get(key) is started:
        del recent[key]


def _refuse_unsupported(asked: ChatRequest) -> None:
    given = asked.model_extra or {}
    for name in _NOT_SUPPORTED:
        if given.get(name) not in _PLAIN:
            raise Refused(422, "unsupported", f"A debate does not support `{name}`.")
    if asked.n not in (None, 1):
        raise Refused(422, "unsupported", "A debate gives one answer; leave `n` at 1.")


def _start_of(asked: ChatRequest) -> Start:
    name = asked.model.removeprefix(f"{_OWNER}/")
    kind = "protocol" if name in SETTINGS else "preset"
    if kind == "preset" and name not in preset_names():
        detail = f"There is no model {asked.model!r}; GET /v1/models lists them."
        raise Refused(404, "model_not_found", detail)
    given = {kind: name, **asked.contend.model_dump(), "question": _question(asked.messages)}
    return parse_given(Start, given)


def _question(messages: list[ChatMessage]) -> str:
    *earlier, last = messages
    if last.role != "user":
        raise Refused(422, "invalid", "The last message must come from the user.")
    if not earlier:
        return last.text
    said = "\n\n".join(f"{each.role.capitalize()}: {each.text}" for each in earlier)
    return f"{last.text}\n\nThe conversation before this question:\n\n{said}"


def _completion(ended: StoredDebate, asked: ChatRequest) -> dict[str, Any]:
    record = ended.as_record()
    message = {"role": "assistant", "content": _answer(record)}
    return {
        **_head(ended, asked, "chat.completion"),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": _usage(record),
    }


async def _ended(runs: Runs, run: Run) -> StoredDebate:
    debate_id = run.debate.id
    ended = await asyncio.to_thread(runs.records.find, debate_id)
    if ended.status == "done":
        return ended
    if ended.status == "failed":
        why = ended.error or "The debate failed."
        raise Refused(502, "debate_failed", why, debate_id=debate_id)
    if ended.status == "paused":
        detail = f"Debate {debate_id} was paused; continue it on the page of this service."
        raise Refused(503, "paused", detail, debate_id=debate_id)
    detail = f"Debate {debate_id} is continued by another process; read it on the page."
    raise Refused(503, ended.status, detail, debate_id=debate_id)


async def _stream(
    runs: Runs, run: Run, asked: ChatRequest, progress: AsyncGenerator[str]
) -> AsyncGenerator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _data({**head, "choices": [choice]})

    head = _head(run.debate, asked, "chat.completion.chunk")
    yield chunk({"role": "assistant", "content": ""})
    async with aclosing(progress):
        async for text in progress:
            yield chunk({"reasoning_content": f"{text}\n\n"}) if text else HEARTBEAT
    try:
        with refusing_outages():
            record = (await _ended(runs, run)).as_record()
    except Refused as refused:
        yield _data(chat_error(refused))
    else:
        yield chunk({"content": _answer(record)})
        yield chunk({}, "stop")
        if asked.stream_options and asked.stream_options.include_usage:
            yield _data({**head, "choices": [], "usage": _usage(record)})
    yield _DONE


def _head(debate: StoredDebate, asked: ChatRequest, kind: str) -> dict[str, Any]:
    created = int(datetime.fromisoformat(debate.created_at).timestamp())
    return {
        "id": f"chatcmpl-{debate.id}",
        "object": kind,
        "created": created,
        "model": asked.model,
    }


def _answer(record: DebateRecord) -> str:
    cautions = [f"> {each}" for each in record.warnings]
    return "\n\n".join(filter(None, ["\n>\n".join(cautions), record.final_answer]))


def _usage(record: DebateRecord) -> dict[str, Any] | None:
    sent, written = record.usage.input_tokens, record.usage.output_tokens
    if sent is None or written is None:
        return None
    return {
        "prompt_tokens": sent,
        "completion_tokens": written,
        "total_tokens": sent + written,
        "prompt_tokens_details": {"cached_tokens": record.usage.cached_tokens or 0},
    }


def _data(message: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(message, ensure_ascii=False)}\n\n".encode()
