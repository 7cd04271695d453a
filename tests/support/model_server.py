"""A real local HTTP model server with the APIs of OpenAI, OpenRouter and Ollama."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import math
import re
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, Self

from aiohttp import web

from tests.support.instructions import instructions_in

Shape = Literal["openai", "ollama"]
Usage = tuple[int, int] | Literal["counted"] | None
ToolCall = tuple[str, Mapping[str, Any] | str]
"""A tool's name and its arguments; those in a string are sent as they are, to be broken."""

_MAX_BODY = 64 * 1024 * 1024
_CREATED = 1_700_000_000
_CREATED_AT = "2025-01-01T00:00:00Z"
_EMBED_DIMS = 16
_CONTEXT_LENGTH = 131_072
_PIECE = re.compile(r"\s*\S{1,12}|\s+")


@dataclass(frozen=True)
class Request:
    """One chat request as the server received it."""

    index: int
    shape: Shape
    model: str
    messages: list[dict[str, Any]]
    body: dict[str, Any]
    headers: dict[str, str]
    path: str

    @property
    def system(self) -> str:
        """The text of all system (or developer) messages."""
        roles = ("system", "developer")
        return "\n".join(_text(m) for m in self.messages if m.get("role") in roles)

    @property
    def instructions(self) -> str:
        """The speaker's role, and the system message."""
        return instructions_in(self.system, self.text)

    @property
    def user(self) -> str:
        """The text of the last user message."""
        return next((_text(m) for m in reversed(self.messages) if m.get("role") == "user"), "")

    @property
    def text(self) -> str:
        """The text of all messages, joined by newlines."""
        return "\n".join(_text(m) for m in self.messages)

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that the request asks for, in either API."""
        if self.shape == "ollama":
            wanted = self.body.get("format")
        else:
            response_format = self.body.get("response_format") or {}
            wanted = response_format.get("json_schema", {}).get("schema")
        return wanted if isinstance(wanted, dict) else None

    @property
    def tools(self) -> list[str]:
        """The names of the tools that may be called."""
        return [tool["function"]["name"] for tool in self.body.get("tools") or ()]

    @property
    def results(self) -> list[str]:
        """The results of the tools that were called."""
        return [_text(m) for m in self.messages if m.get("role") == "tool"]

    @property
    def openrouter(self) -> bool:
        """Whether the request came through the OpenRouter base path."""
        return self.path.startswith("/api/v1/")


@dataclass(frozen=True)
class Reply:
    """The server's answer, and how it goes wrong.

    With status < 400, `error` is sent inside the stream instead of its ending.
    """

    text: str = ""
    finish: str | None = "stop"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: dict[str, Any] | str | None = None
    delay: float = 0
    until: Callable[[], bool] | None = None
    """A condition to wait for before the answer begins, such as the arrival of other calls."""
    chunk_delay: float = 0
    keeps_pace: bool = False
    """Whether chunks that are late are sent together, as by a server that is never too slow."""
    chunk_size: int | None = None
    stall_after: int | None = None
    cut_after: int | None = None
    end_early_after: int | None = None
    garble_after: int | None = None
    usage: Usage = "counted"
    reasoning: str | None = None
    cost: float | None = None
    tool_calls: Sequence[ToolCall] = ()

    @property
    def limit(self) -> int | None:
        """How many chunks are sent before the answer goes wrong; None if it does not."""
        limits = (self.stall_after, self.cut_after, self.end_early_after, self.garble_after)
        return min((n for n in limits if n is not None), default=None)


@dataclass(frozen=True)
class Call:
    """A snapshot of one chat call; `completed` means a whole answer (not an error) was sent."""

    request: Request
    started: float
    ended: float | None = None
    completed: bool = False
    chunks_sent: int = 0
    status: int | None = None


Script = Callable[[Request], Reply | str]
OnChunk = Callable[[Call, int], None]


def always(reply: Reply | str) -> Script:
    """Answer every call the same way."""
    return lambda _request: reply


def sequence(replies: Iterable[Reply | str], *, repeat_last: bool = True) -> Script:
    """Give the replies in order; after the last one, repeat it or fail."""
    items = list(replies)
    turns = itertools.count()

    def script(request: Request) -> Reply | str:
        turn = next(turns)
        if turn >= len(items) and not repeat_last:
            raise AssertionError(f"call {request.index} is past the {len(items)} scripted replies")
        return items[min(turn, len(items) - 1)]

    return script


def openai_error(
    status: int,
    message: str,
    code: str | None = None,
    type: str = "invalid_request_error",  # noqa: A002 - the name OpenAI gives the field
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Return an error in the format of the OpenAI API."""
    return Reply(status=status, error=_openai_body(message, code, type), headers=headers or {})


def ollama_error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Return an error in the format of the Ollama API."""
    return Reply(status=status, error={"error": message}, headers=headers or {})


def openrouter_error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Return an error in the format of the OpenRouter API."""
    body = {"error": {"message": message, "code": status}}
    return Reply(status=status, error=body, headers=headers or {})


def _openai_body(message: str, code: str | None, kind: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


# The real APIs' error messages: status -> (message, type, code).
_OPENAI_ERRORS: dict[int, tuple[str, str, str | None]] = {
    401: ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    403: ("Country, region, or territory not supported", "request_forbidden", None),
    404: (
        "The model does not exist or you do not have access to it.",
        "invalid_request_error",
        "model_not_found",
    ),
    429: ("Rate limit reached for requests", "requests", "rate_limit_exceeded"),
    500: (
        "The server had an error while processing your request. Sorry about that!",
        "server_error",
        None,
    ),
    503: ("The engine is currently overloaded, please try again later", "server_error", None),
}
_OPENROUTER_ERRORS = {
    401: "No auth credentials found",
    402: "Insufficient credits",
    429: "Rate limit exceeded",
    502: "Provider returned error",
}
_OLLAMA_ERRORS = {
    401: "unauthorized",
    404: "model not found",
    500: "an error was encountered while running the model",
    503: "server busy, please try again.  maximum pending requests exceeded",
}


def _default_error(request: Request, status: int) -> dict[str, Any]:
    """Return the body that the real provider sends with this status."""
    if request.shape == "ollama":
        return {"error": _OLLAMA_ERRORS.get(status, "error")}
    if request.openrouter:
        return {"error": {"message": _OPENROUTER_ERRORS.get(status, "Error"), "code": status}}
    message, kind, code = _OPENAI_ERRORS.get(status, ("Error", "invalid_request_error", None))
    return _openai_body(message, code, kind)


def _unknown_model(request: Request) -> Reply:
    """Return the provider's error for a model that it does not have."""
    if request.shape == "ollama":
        return ollama_error(404, f"model '{request.model}' not found")
    if request.openrouter:
        return openrouter_error(400, f"{request.model} is not a valid model ID")
    message = f"The model `{request.model}` does not exist or you do not have access to it."
    return openai_error(404, message, "model_not_found")


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(b.get("text", "")) for b in content if isinstance(b, dict))
    return content if isinstance(content, str) else ""


@lru_cache(maxsize=512)
def _pieces(text: str, chunk_size: int | None) -> tuple[str, ...]:
    if chunk_size is None:
        return tuple(_PIECE.findall(text))
    return tuple(text[i : i + chunk_size] for i in range(0, len(text), chunk_size))


@lru_cache(maxsize=512)
def _encoded(text: str, chunk_size: int | None) -> tuple[bytes, ...]:
    """Encode the pieces as JSON strings; cached, because benchmarks send one text many times."""
    return tuple(json.dumps(piece).encode() for piece in _pieces(text, chunk_size))


def _usage(request: Request, reply: Reply) -> tuple[int, int] | None:
    if reply.usage != "counted":
        return reply.usage
    said = len(reply.text.split()) + len((reply.reasoning or "").split())
    return len(request.text.split()), said


class _Wire:
    """The bytes of one answer, in one provider's format."""

    content_type = ""

    def __init__(self, request: Request, reply: Reply) -> None:
        self.request = request
        self.reply = reply

    def chunks(self) -> list[bytes]:
        """Return the encoded chunks: first the reasoning, then the text, then the tool calls."""
        size = self.reply.chunk_size
        thought = [self.chunk(p, thinking=True) for p in _encoded(self.reply.reasoning or "", size)]
        said = [self.chunk(p, thinking=False) for p in _encoded(self.reply.text, size)]
        return [*thought, *said, *self.tool_chunks()]

    def tool_chunks(self) -> list[bytes]:
        """Return the stream events for tool calls."""
        raise NotImplementedError

    def text_up_to(self, limit: int | None) -> str:
        """Return the text in the first `limit` chunks, some of which may contain only reasoning."""
        size = self.reply.chunk_size
        if limit is None:
            return self.reply.text
        spent = len(_pieces(self.reply.reasoning or "", size))
        return "".join(_pieces(self.reply.text, size)[: max(0, limit - spent)])

    def opening(self) -> bytes:
        """Return the bytes before the first chunk."""
        return b""

    def chunk(self, piece: bytes, *, thinking: bool) -> bytes:
        """Return the stream event for one JSON-encoded piece."""
        raise NotImplementedError

    def ending(self) -> bytes:
        """Return the bytes after the last chunk: finish reason, usage, terminator."""
        raise NotImplementedError

    def whole(self, text: str, finish: str | None) -> bytes:
        """Return the body of an answer that is not streamed."""
        raise NotImplementedError

    def error_line(self, body: bytes) -> bytes:
        """Return an error to send inside a stream that has already begun."""
        raise NotImplementedError


class _OpenAIWire(_Wire):
    content_type = "text/event-stream"

    def __init__(self, request: Request, reply: Reply) -> None:
        super().__init__(request, reply)
        self._id = f"chatcmpl-{request.index}"
        options = request.body.get("stream_options") or {}
        # OpenRouter always reports usage; OpenAI only on request.
        wanted = bool(options.get("include_usage")) or request.openrouter
        self._count = self._usage() if wanted else None
        head = json.dumps(self._base("chat.completion.chunk"))[:-1]
        start = f'data: {head}, "choices": [{{"index": 0, "delta": {{'
        thinking = "reasoning" if request.openrouter else "reasoning_content"
        self._text_head = f'{start}"content": '.encode()
        self._thought_head = f'{start}"{thinking}": '.encode()
        self._tail = b'}, "logprobs": null, "finish_reason": null}]}\n\n'

    def _base(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": _CREATED, "model": self.request.model}

    def _usage(self) -> dict[str, Any] | None:
        counted = _usage(self.request, self.reply)
        if counted is None:
            return None
        given, said = counted
        usage: dict[str, Any] = {
            "prompt_tokens": given,
            "completion_tokens": said,
            "total_tokens": given + said,
        }
        if self.reply.cost is not None:
            usage["cost"] = self.reply.cost
        return usage

    def _event(self, choices: list[dict[str, Any]], **extra: Any) -> bytes:
        event = {**self._base("chat.completion.chunk"), "choices": choices, **extra}
        return b"data: " + json.dumps(event).encode() + b"\n\n"

    def opening(self) -> bytes:
        return self._delta({"role": "assistant", "content": ""})

    def chunk(self, piece: bytes, *, thinking: bool) -> bytes:
        return (self._thought_head if thinking else self._text_head) + piece + self._tail

    def tool_chunks(self) -> list[bytes]:
        chunks = []
        for index, call in enumerate(self._tool_calls()):
            written = call["function"].pop("arguments")
            half = len(written) // 2
            head = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
            rest = [
                {"index": index, "function": {"arguments": part}}
                for part in (written[:half], written[half:])
            ]
            chunks += [self._delta({"tool_calls": [each]}) for each in (head, *rest)]
        return chunks

    def _tool_calls(self) -> list[dict[str, Any]]:
        return [
            {
                "id": f"call_{self.request.index}_{number}",
                "type": "function",
                "function": {"name": name, "arguments": _arguments(given)},
            }
            for number, (name, given) in enumerate(self.reply.tool_calls)
        ]

    def _delta(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        return self._event([{"index": 0, "delta": delta, "finish_reason": finish}])

    def _finish(self, finish: str | None) -> str | None:
        return "tool_calls" if self.reply.tool_calls and finish == "stop" else finish

    def ending(self) -> bytes:
        out = b""
        if self.reply.finish is not None:
            out += self._delta({}, self._finish(self.reply.finish))
        if self._count is not None:
            out += self._event([], usage=self._count)
        return out + b"data: [DONE]\n\n"

    def whole(self, text: str, finish: str | None) -> bytes:
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if self.reply.reasoning is not None:
            key = "reasoning" if self.request.openrouter else "reasoning_content"
            message[key] = self.reply.reasoning
        if self.reply.tool_calls:
            message["tool_calls"] = self._tool_calls()
        ended = self._finish(finish)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": ended}
        body = {**self._base("chat.completion"), "choices": [choice]}
        if (usage := self._usage()) is not None:
            body["usage"] = usage
        return json.dumps(body).encode()

    def error_line(self, body: bytes) -> bytes:
        return b"data: " + body + b"\n\n"


class _OllamaWire(_Wire):
    content_type = "application/x-ndjson"

    def __init__(self, request: Request, reply: Reply) -> None:
        super().__init__(request, reply)
        head = json.dumps(self._base())[:-1] + ', "message": {"role": "assistant", "content": '
        self._text_head = head.encode()
        self._thought_head = (head + '"", "thinking": ').encode()
        self._tail = b'}, "done": false}\n'

    def _base(self) -> dict[str, Any]:
        return {"model": self.request.model, "created_at": _CREATED_AT}

    def _last(self, text: str, finish: str | None) -> dict[str, Any]:
        last = {**self._base(), "message": {"role": "assistant", "content": text}, "done": True}
        if finish is not None:
            last["done_reason"] = finish
        last |= {"total_duration": 3_000_000, "load_duration": 1_000_000}
        counted = _usage(self.request, self.reply)
        if counted is not None:
            last |= {"prompt_eval_count": counted[0], "prompt_eval_duration": 1_000_000}
            last |= {"eval_count": counted[1], "eval_duration": 1_000_000}
        return last

    def chunk(self, piece: bytes, *, thinking: bool) -> bytes:
        return (self._thought_head if thinking else self._text_head) + piece + self._tail

    def tool_chunks(self) -> list[bytes]:
        return [
            json.dumps(
                {
                    **self._base(),
                    "message": {"role": "assistant", "content": "", "tool_calls": [call]},
                    "done": False,
                }
            ).encode()
            + b"\n"
            for call in self._tool_calls()
        ]

    def _tool_calls(self) -> list[dict[str, Any]]:
        return [
            {"function": {"name": name, "arguments": given}}
            for name, given in self.reply.tool_calls
        ]

    def ending(self) -> bytes:
        return json.dumps(self._last("", self.reply.finish)).encode() + b"\n"

    def whole(self, text: str, finish: str | None) -> bytes:
        last = self._last(text, finish)
        if self.reply.reasoning is not None:
            last["message"]["thinking"] = self.reply.reasoning
        if self.reply.tool_calls:
            last["message"]["tool_calls"] = self._tool_calls()
        if finish is None and self.reply.limit is not None:
            last["done"] = False
        return json.dumps(last).encode()

    def error_line(self, body: bytes) -> bytes:
        return body + b"\n"


def _arguments(given: Mapping[str, Any] | str) -> str:
    return given if isinstance(given, str) else json.dumps(given)


def _embedding(text: str) -> list[float]:
    """Return a hashed bag of words, so that similar texts have similar vectors."""
    vector = [0.0] * _EMBED_DIMS
    for word in text.lower().split() or [""]:
        vector[zlib.crc32(word.encode()) % _EMBED_DIMS] += 1.0
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


class ModelServer:
    """A server on 127.0.0.1, in a daemon thread with its own event loop.

    The script and `on_chunk` run in that loop, so they must not block.
    """

    def __init__(
        self,
        script: Script,
        models: Sequence[str] | None = ("m1", "m2"),
        api_key: str | None = None,
        port: int = 0,
    ) -> None:
        """Serve `models` (None means any name); port 0 means a free port at each start."""
        self.script = script
        self.models = models
        self.api_key = api_key
        self.vision: set[str] = set()
        """Models that report that they accept images."""
        self.tool_users: set[str] = set()
        """Models that report that they can call tools."""
        self.embedders: set[str] = set()
        self.sizes: dict[str, float] = {}
        """The size in gigabytes of models that differ from the others."""
        self.embedded: list[str] = []
        """All texts that the server was asked to embed."""
        self.embedding_error: int | None = None
        """The status with which embedding calls fail; None if they succeed."""
        self.on_chunk: OnChunk | None = None
        self.failures: list[BaseException] = []
        self._wanted_port = port
        self._port: int | None = None
        self._calls: list[Call] = []
        self._changed = threading.Condition()
        self._open: dict[int, web.Request] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Start listening; afterwards the URL is known."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self._wanted_port))
        except OSError:
            listener.close()
            raise
        self._port = listener.getsockname()[1]
        self._ready.clear()
        self._thread = threading.Thread(
            target=self._run, args=(listener,), name="model-server", daemon=True
        )
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("model server did not start")
        return self

    def stop(self) -> None:
        """Close every connection and end the thread."""
        thread, self._thread = self._thread, None
        if thread is None or self._loop is None or self._stopping is None:
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        thread.join(10)
        if thread.is_alive():
            raise RuntimeError("model server did not stop")

    def check(self) -> None:
        """Raise the first error from a script or hook, if there was one."""
        if self.failures:
            raise self.failures[0]

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        # A failing script shows up in the client as a vague 500; name the real cause.
        if error is None:
            self.check()

    @property
    def url(self) -> str:
        """The root URL, which is also the base URL for Ollama clients."""
        if self._port is None:
            raise RuntimeError("model server is not started")
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.url}/v1"

    @property
    def openrouter_url(self) -> str:
        """The base URL for OpenRouter clients."""
        return f"{self.url}/api/v1"

    @property
    def calls(self) -> list[Call]:
        """A snapshot of the chat calls, in order of arrival."""
        with self._changed:
            return list(self._calls)

    def wait_for_calls(self, n: int, timeout: float = 60) -> list[Call]:
        """Block until `n` calls have arrived."""
        return self._wait(lambda: len(self._calls) >= n, timeout, f"{n} calls")

    def wait_for_chunks(self, call_index: int, n: int, timeout: float = 60) -> Call:
        """Block until that call has sent `n` chunks."""

        def reached() -> bool:
            return len(self._calls) > call_index and self._calls[call_index].chunks_sent >= n

        return self._wait(reached, timeout, f"{n} chunks of call {call_index}")[call_index]

    def wait_until(self, reached: Callable[[], bool], what: str, timeout: float = 300) -> None:
        """Block until the calls are as wanted."""
        self._wait(reached, timeout, what)

    def wait_for_idle(self, timeout: float = 60) -> list[Call]:
        """Block until no call is open, and calls by killed clients have been noticed."""
        return self._wait(lambda: all(c.ended for c in self._calls), timeout, "open calls to end")

    def _wait(self, reached: Callable[[], bool], timeout: float, what: str) -> list[Call]:
        with self._changed:
            if not self._changed.wait_for(reached, timeout):
                raise TimeoutError(f"waited {timeout}s for {what}; have {len(self._calls)} calls")
            return list(self._calls)

    # --- server thread ---

    def _run(self, listener: socket.socket) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        # Cancel handlers, because the call of a client that goes away must end at once.
        runner = web.AppRunner(
            self._app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.5
        )
        await runner.setup()
        await web.SockSite(runner, listener, backlog=1024).start()
        self._ready.set()
        await self._stopping.wait()
        for request in list(self._open.values()):
            _abort(request)
        await runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=_MAX_BODY)
        for base in ("/v1", "/api/v1"):
            app.router.add_post(f"{base}/chat/completions", self._chat)
            app.router.add_get(f"{base}/models", self._openai_models)
            app.router.add_post(f"{base}/embeddings", self._openai_embed)
        app.router.add_post("/api/chat", self._chat)
        app.router.add_get("/api/tags", self._tags)
        app.router.add_post("/api/show", self._show)
        app.router.add_get("/api/version", self._version)
        app.router.add_post("/api/embed", self._embed)
        return app

    async def _openai_models(self, request: web.Request) -> web.Response:
        if not self._allowed(request):
            return web.json_response(_default_error(_request(request, {}, 0), 401), status=401)
        data = [
            {"id": name, "object": "model", "created": _CREATED, "owned_by": "test"}
            for name in self.models or ()
        ]
        return web.json_response({"object": "list", "data": data})

    async def _tags(self, _request: web.Request) -> web.Response:
        models = [
            {
                "name": name,
                "model": name,
                "modified_at": _CREATED_AT,
                "size": int(self.sizes.get(name, 1) * 1_000_000_000),
                "details": {},
            }
            for name in self.models or ()
        ]
        return web.json_response({"models": models})

    async def _show(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = str(body.get("model") or body.get("name") or "")
        if not self._has(name):
            return web.json_response({"error": f"model '{name}' not found"}, status=404)
        info = {"general.architecture": "test", "test.context_length": _CONTEXT_LENGTH}
        details = {"format": "gguf", "family": "test", "parameter_size": "1B"}
        return web.json_response(
            {
                "details": details,
                "model_info": info,
                "capabilities": ["embedding" if name in self.embedders else "completion"]
                + ["vision"] * (name in self.vision)
                + ["tools"] * (name in self.tool_users),
            }
        )

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({"version": "0.12.0"})

    async def _embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = str(body.get("model", ""))
        if not self._has(name):
            return web.json_response({"error": f"model '{name}' not found"}, status=404)
        if self.embedding_error:
            body = {"error": "the embedding model has crashed"}
            return web.json_response(body, status=self.embedding_error)
        texts = self._texts(body)
        words = sum(len(text.split()) for text in texts)
        vectors = [_embedding(text) for text in texts]
        return web.json_response({"model": name, "embeddings": vectors, "prompt_eval_count": words})

    async def _openai_embed(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = str(body.get("model", ""))
        if not self._allowed(request) or not self._has(name) or self.embedding_error:
            status = self.embedding_error or (404 if self._allowed(request) else 401)
            return web.json_response(_openai_body("No embeddings.", None, "error"), status=status)
        texts = self._texts(body)
        data = [
            {"object": "embedding", "index": number, "embedding": _embedding(text)}
            for number, text in enumerate(texts)
        ]
        words = sum(len(text.split()) for text in texts)
        usage = {"prompt_tokens": words, "total_tokens": words}
        return web.json_response({"object": "list", "model": name, "data": data, "usage": usage})

    def _texts(self, body: Mapping[str, Any]) -> list[str]:
        given = body.get("input", "")
        texts = [str(text) for text in (given if isinstance(given, list) else [given])]
        self.embedded.extend(texts)
        return texts

    def _has(self, model: str) -> bool:
        if self.models is None:
            return True
        # Ollama treats a bare name as its `latest` tag.
        return model in self.models or model.removesuffix(":latest") in self.models

    def _allowed(self, request: web.Request) -> bool:
        wanted = f"Bearer {self.api_key}"
        return self.api_key is None or request.headers.get("Authorization") == wanted

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        started = time.monotonic()
        body = await _body(http)
        with self._changed:
            # Number it only after reading the body, so that parallel calls do not share an index.
            request = _request(http, body, len(self._calls))
            self._calls.append(Call(request, started))
            self._changed.notify_all()
        self._open[request.index] = http
        try:
            return await self._answer(http, request)
        except ConnectionError:
            # The client is gone, so there is nobody left to answer.
            self._update(request.index, completed=False)
            return web.Response()
        except asyncio.CancelledError:
            self._update(request.index, completed=False)
            raise
        except Exception as error:
            self.failures.append(error)
            raise
        finally:
            del self._open[request.index]
            if self._calls[request.index].ended is None:
                self._update(request.index, ended=time.monotonic())

    async def _answer(self, http: web.Request, request: Request) -> web.StreamResponse:
        reply = self._reply(http, request)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        while reply.until and not reply.until():  # noqa: ASYNC110 - set from any thread
            await asyncio.sleep(0.005)
        self._update(request.index, status=reply.status)
        if reply.status >= 400:
            return self._refuse(request, reply)
        wire = _OpenAIWire if request.shape == "openai" else _OllamaWire
        streamed = request.body.get("stream", request.shape == "ollama")
        send = self._stream if streamed else self._send_whole
        return await send(http, wire(request, reply))

    def _reply(self, http: web.Request, request: Request) -> Reply:
        if not self._allowed(http):
            return Reply(status=401)
        if not self._has(request.model):
            return _unknown_model(request)
        try:
            reply = self.script(request)
        except Exception as error:  # noqa: BLE001 - check() raises it in the test's thread
            self.failures.append(error)
            # openai's clients obey this header, so that a retry does not hide the failure.
            return Reply(status=500, headers={"x-should-retry": "false"})
        return Reply(reply) if isinstance(reply, str) else reply

    def _refuse(self, request: Request, reply: Reply) -> web.Response:
        self._update(request.index, ended=time.monotonic())
        return web.Response(
            body=_error_bytes(request, reply),
            status=reply.status,
            headers=_headers(request, reply),
            content_type="application/json",
        )

    async def _stream(self, http: web.Request, wire: _Wire) -> web.StreamResponse:
        request, reply = wire.request, wire.reply
        response = web.StreamResponse(headers=_headers(request, reply))
        response.content_type = wire.content_type
        await response.prepare(http)
        chunks = wire.chunks()[: reply.limit]
        buffered = await self._send_chunks(response, wire, chunks)
        if reply.limit is not None:
            garbled = reply.garble_after == reply.limit
            await response.write(buffered + (wire.error_line(b'{"choi') if garbled else b""))
            await self._break_off(http, reply)
            return response
        if reply.error is not None:
            await response.write_eof(buffered + wire.error_line(_error_bytes(request, reply)))
            return response
        # Mark it before the last write, so that it is marked when the client has the whole answer.
        self._update(request.index, completed=True, ended=time.monotonic())
        await response.write_eof(buffered + wire.ending())
        return response

    async def _send_chunks(
        self, response: web.StreamResponse, wire: _Wire, chunks: list[bytes]
    ) -> bytes:
        """Send the chunks one by one, or return them to be sent in a single write."""
        index, delay = wire.request.index, wire.reply.chunk_delay
        if delay == 0 and self.on_chunk is None:
            self._update(index, chunks_sent=len(chunks))
            return wire.opening() + b"".join(chunks)
        await response.write(wire.opening())
        if wire.reply.keeps_pace:
            await _send_on_time(response, chunks, delay)
            self._update(index, chunks_sent=len(chunks))
            return b""
        for sent, chunk in enumerate(chunks, start=1):
            if delay and sent > 1:
                await asyncio.sleep(delay)
            await response.write(chunk)
            self._chunk_sent(index, sent)
        return b""

    def _chunk_sent(self, index: int, sent: int) -> None:
        call = self._update(index, chunks_sent=sent)
        if self.on_chunk is None:
            return
        try:
            self.on_chunk(call, sent)
        except Exception as error:  # noqa: BLE001 - check() raises it in the test's thread
            self.failures.append(error)

    async def _break_off(self, http: web.Request, reply: Reply) -> None:
        """Make a stream stall or break; to end it early, just return."""
        if reply.stall_after == reply.limit:
            await asyncio.Event().wait()
        if reply.cut_after == reply.limit:
            _abort(http)

    async def _send_whole(self, http: web.Request, wire: _Wire) -> web.StreamResponse:
        request, reply = wire.request, wire.reply
        if reply.limit is not None and reply.stall_after == reply.limit:
            await asyncio.Event().wait()
        limit = reply.limit
        body = wire.whole(wire.text_up_to(limit), reply.finish if limit is None else None)
        if reply.error is not None:
            body = _error_bytes(request, reply)
        headers = _headers(request, reply)
        if limit is not None and reply.cut_after == limit:
            return await _send_half(http, body, headers)
        if limit is None and reply.error is None:
            count = len(wire.chunks())
            now = time.monotonic()
            self._update(request.index, completed=True, chunks_sent=count, ended=now)
        return web.Response(body=body, headers=headers, content_type="application/json")

    def _update(self, index: int, **changes: Any) -> Call:
        with self._changed:
            self._calls[index] = call = replace(self._calls[index], **changes)
            self._changed.notify_all()
        return call


async def _send_on_time(response: web.StreamResponse, chunks: list[bytes], delay: float) -> None:
    loop, sent = asyncio.get_running_loop(), 0
    began = loop.time()
    while sent < len(chunks):
        due = int((loop.time() - began) / delay) + 1
        if late := chunks[sent:due]:
            await response.write(b"".join(late))
            sent += len(late)
        await asyncio.sleep(delay)


async def _body(http: web.Request) -> dict[str, Any]:
    body = await http.json()
    return body if isinstance(body, dict) else {}


def _request(http: web.Request, body: dict[str, Any], index: int) -> Request:
    return Request(
        index=index,
        shape="ollama" if http.path == "/api/chat" else "openai",
        model=str(body.get("model", "")),
        messages=list(body.get("messages", ())),
        body=body,
        headers={name.lower(): value for name, value in http.headers.items()},
        path=http.path,
    )


async def _send_half(
    http: web.Request, body: bytes, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Announce the full length, send half of the body, and cut the connection."""
    response = web.StreamResponse(headers=headers)
    response.content_type = "application/json"
    response.content_length = len(body)
    await response.prepare(http)
    await response.write(body[: len(body) // 2])
    _abort(http)
    return response


def _headers(request: Request, reply: Reply) -> dict[str, str]:
    return {"x-request-id": f"req_{request.index}", **reply.headers}


def _error_bytes(request: Request, reply: Reply) -> bytes:
    body = reply.error if reply.error is not None else _default_error(request, reply.status)
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()


def _abort(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.abort()


def main(argv: Sequence[str] | None = None) -> None:
    """Serve a fixed text until stdin closes."""
    parser = argparse.ArgumentParser(prog="model_server", description=main.__doc__)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before the first byte")
    parser.add_argument("--chunk-delay", type=float, default=0.0, help="seconds between chunks")
    parser.add_argument("--tokens", type=int, default=200, help="words in the answer")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args(argv)
    text = " ".join(f"word{n}" for n in range(options.tokens))
    reply = Reply(text, delay=options.delay, chunk_delay=options.chunk_delay)
    with ModelServer(always(reply), models=None, port=options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
