"""Streams debates between simulated models, from the service or a bare Starlette loop."""

import asyncio
import gc
import json
import re
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse
from starlette.routing import Route

from benchmarks.harness import SEATS
from benchmarks.model_process import DECISIONS

TOKENS = 300
SECONDS_PER_TOKEN = 0.012
# As in the service.
GROUP_SECONDS = 0.033
SECONDS_WITHOUT_READING = 3.0
ROUNDS = 2
WRITER = "writer"
_PARAGRAPHS, _PARAGRAPH = 6, "An **important** reason is `cost`: " + "word " * 94 + "\n\n"
CALLS = 2 * ROUNDS + 2
_PAGE = Path(__file__).parents[1] / "service" / "web"


class SimulatedChat(BaseChatModel):
    """A model whose tokens are timestamps, so that viewers can compute each token's age."""

    part: str

    @property
    def _llm_type(self) -> str:
        return "simulated"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        said = AIMessage(self._ending(messages))
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _astream(
        self, messages: Any, *_: Any, **__: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        async for piece in self._pieces():
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        last = AIMessageChunk(content=self._ending(messages))
        last.response_metadata = {"finish_reason": "stop"}
        yield ChatGenerationChunk(message=last)

    async def _pieces(self) -> AsyncIterator[str]:
        if self.part == WRITER:
            for _number in range(_PARAGRAPHS):
                yield _PARAGRAPH
            return
        for _number in range(TOKENS):
            await asyncio.sleep(SECONDS_PER_TOKEN)
            yield f"{time.monotonic():.6f} "

    def _ending(self, messages: Any) -> str:
        tag = re.search(r'"nonce": "(\w+)"', "\n".join(message.text for message in messages))
        block = DECISIONS.get(self.part)
        if not (tag and block):
            return "."
        return f"\n\n```json\n{json.dumps({'nonce': tag[1], **block})}\n```"


def make_service() -> Any:
    from contend.models.providers.registry import Opened, Provider, register
    from contend.service import protocol
    from contend.service.app import create_app
    from contend.service.options import ServiceOptions

    async def check(_: list[str]) -> None: ...

    protocol.SECONDS_WITHOUT_READING = SECONDS_WITHOUT_READING  # type: ignore[assignment]
    register("simulated", Provider(lambda name, _: Opened(SimulatedChat(part=name)), check))
    models = {f"{seat}_model": f"simulated:{seat}" for seat in SEATS}
    calm = {"templates": "false", "min_rounds": str(ROUNDS), "max_rounds": str(ROUNDS)}
    return create_app(
        ServiceOptions(
            assignments=models | calm,
            max_running=100,
            max_running_per_client=100,
            max_streams_per_client=1000,
        )
    )


class BareDebate:
    """The same calls in sequence, without the service; grouped tokens stay in memory."""

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.is_done = False
        self._changed = asyncio.Event()
        self._said: list[str] = []
        self._tasks = [asyncio.create_task(self._run()), asyncio.create_task(self._group())]

    async def _run(self) -> None:
        for number in range(CALLS):
            model = SimulatedChat(part=SEATS[number % len(SEATS)])
            async for chunk in model.astream([HumanMessage("?")]):
                self._said.append(chunk.text)
        self.is_done = True

    async def _group(self) -> None:
        while not self.is_done or self._said:
            await asyncio.sleep(GROUP_SECONDS)
            if self._said:
                data = json.dumps({"seq": len(self.events) + 1, "content": "".join(self._said)})
                self.events.append(f"id: {len(self.events) + 1}\ndata: {data}\n\n".encode())
                self._said = []
                self._notify()
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def follow(self) -> AsyncIterator[bytes]:
        seen = 0
        while not (self.is_done and not self._said and seen == len(self.events)):
            if seen == len(self.events):
                await self._changed.wait()
            yield b"".join(self.events[seen:])
            seen = len(self.events)


def make_bare() -> Starlette:
    debates: list[BareDebate] = []

    async def start(_: Request) -> JSONResponse:
        debates.append(BareDebate())
        return JSONResponse({"id": str(len(debates) - 1)}, 201)

    async def follow(request: Request) -> StreamingResponse:
        events = debates[int(request.path_params["number"])].follow()
        return StreamingResponse(events, media_type="text/event-stream")

    # One file with the web page's markup and style, which loads nothing else.
    page = re.sub(
        r"<(script|link)\b.*?>(</script>)?", "", (_PAGE / "index.html").read_text("utf-8")
    )
    styles = "".join((_PAGE / name).read_text("utf-8") for name in ("base.css", "page.css"))
    page = page.replace("</head>", f"<style>{styles}</style></head>")
    return Starlette(
        routes=[
            Route("/", lambda _: HTMLResponse(page)),
            Route("/api/v1/debates", start, methods=["POST"]),
            Route("/api/v1/debates/{number}/events", follow),
        ]
    )


def _report() -> None:
    for _ in sys.stdin:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        print(json.dumps({"cpu": time.process_time(), "mb": pages * 4096 / 1e6}), flush=True)


class _Server(uvicorn.Server):
    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        print(self.servers[0].sockets[0].getsockname()[1], flush=True)
        threading.Thread(target=_report, daemon=True).start()


def main(kind: str) -> None:
    from contend.cli.garbage import start_collecting
    from contend.service.protocol import PunctualProtocol

    is_service = kind == "service"
    if is_service:  # as `contend serve` does
        gc.disable()
    app = make_service() if is_service else make_bare()
    protocol = PunctualProtocol if is_service else "h11"
    start_collecting()
    config = uvicorn.Config(app, port=0, http=protocol, log_level="warning", access_log=False)
    _Server(config).run()


if __name__ == "__main__":
    main(sys.argv[1])
