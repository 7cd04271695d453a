import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imports must not be measured
    from contend.debates.events import Watch
    from contend.debates.repository import Repository
    from contend.graph.settings import DebateSettings

REPOSITORY = Path(__file__).parents[1]
SEATS = ("proposer", "skeptic", "synthesizer", "judge")
ROUNDS = 3
_TOKENS_PER_SECOND = 80
QUESTION = "Should a four-person team split its monolith into services?"


@dataclass(frozen=True)
class Result:
    what: str
    value: float
    limit: float = math.inf
    unit: str = "x"
    note: str = ""
    least: float = -math.inf

    @property
    def holds(self) -> bool:
        return self.least <= self.value <= self.limit

    def row(self) -> str:
        measured = f"{self.value:.2f} {self.unit}"
        limit, verdict = f"{self.limit:g} {self.unit}", "ok" if self.holds else "**broken**"
        if self.least > -math.inf:
            limit = f"at least {self.least:g} {self.unit}"
        elif self.limit == math.inf:
            limit, verdict = "-", ""
        return f"| {self.what} | {measured} | {limit} | {verdict} | {self.note} |"


@dataclass(frozen=True)
class ObservedCall:
    """A call as observed by the model process, with times on this machine's clock."""

    model: str
    messages: Any
    started: float
    ended: float
    reply: str = ""


class ModelProcess:
    """The model server in a separate process, so that its work is not measured."""

    def __init__(self, *options: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.model_process", *options],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = self._line()

    def take_calls(self) -> list[ObservedCall]:
        self._pipe_in().write("calls\n")
        self._pipe_in().flush()
        return [ObservedCall(**call) for call in json.loads(self._line())]

    def stop(self) -> None:
        self._pipe_in().close()
        self._process.wait(10)
        if self._process.stdout:
            self._process.stdout.close()

    def environment(self) -> dict[str, str]:
        return {"OPENAI_BASE_URL": self.url, "OPENAI_API_KEY": "sk-benchmark"}

    def _pipe_in(self) -> Any:
        return self._process.stdin

    def _line(self) -> str:
        line: str = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise RuntimeError("the model process ended")
        return line.strip()


@contextmanager
def model_process(*options: str) -> Iterator[ModelProcess]:
    process = ModelProcess(*options)
    try:
        with data_home() as home, environment(CONTEND_HOME=str(home), **process.environment()):
            yield process
    finally:
        process.stop()


@contextmanager
def data_home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="contend-bench-") as folder:
        yield Path(folder)


@contextmanager
def environment(**values: str) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update({"DATABASE_URL": ""} | values)  # measure on SQLite
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def settings(**changes: Any) -> dict[str, Any]:
    """Return settings for a debate that runs the full number of rounds on the model process."""
    models = {f"{seat}_model": f"openai:{seat}" for seat in SEATS}
    calm = {"min_rounds": ROUNDS, "max_rounds": ROUNDS, "max_retries": 0, "templates": False}
    return {**models, **calm, **changes}


async def debate(chosen: "DebateSettings | None" = None, watch: "Watch | None" = None) -> None:
    from contend.debates.run import open_repository

    records = open_repository()
    try:
        await debate_in(records, chosen, watch)
    finally:
        records.close()


async def debate_in(
    records: "Repository",
    chosen: "DebateSettings | None" = None,
    watch: "Watch | None" = None,
) -> None:
    from langgraph.runtime import RunControl

    from contend.debates.prepare import PreparedDebate, write_debate
    from contend.debates.run import run_debate
    from contend.graph.settings import AdversarialSettings
    from contend.models.seats import choose_seats

    chosen = chosen or AdversarialSettings.model_validate(settings())
    opened = write_debate(records, PreparedDebate(QUESTION, chosen, await choose_seats(chosen)))
    done = await run_debate(records, opened, watch or (lambda _: None), RunControl())
    if done.status != "done":
        raise RuntimeError(f"the debate ended {done.status}: {done.error}")


async def replay(calls: list[ObservedCall]) -> None:
    await replay_steps([[call] for call in calls])


async def replay_steps(steps: Sequence[Sequence[ObservedCall]]) -> list[float]:
    from openai import AsyncOpenAI

    took = []
    async with AsyncOpenAI(max_retries=0) as client:
        for step in steps:
            began = time.monotonic()
            await asyncio.gather(*(repeat_call(client, call) for call in step))
            took.append(time.monotonic() - began)
    return took


async def replay_by_hand(calls: list[ObservedCall]) -> None:
    import aiohttp

    async with aiohttp.ClientSession(headers=service_key()) as session:
        for call in calls:
            await repeat_by_hand(session, call)


async def repeat_by_hand(session: Any, call: ObservedCall) -> None:
    import orjson

    address = f"{os.environ['OPENAI_BASE_URL']}/chat/completions"
    body = {"model": call.model, "messages": call.messages, "stream": True}
    async with session.post(address, json=body) as answer:
        async for line in answer.content:
            if line.startswith(b"data: {"):
                orjson.loads(line[len(b"data: ") :])


def service_key() -> dict[str, str]:
    return {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}


def pace(seconds: float) -> list[str]:
    """Return options that spend half of each call before the first token, like hosted models."""
    tokens = round(seconds * _TOKENS_PER_SECOND)
    rest = seconds / 2
    return ["--tokens", str(tokens), "--delay", str(rest), "--chunk-delay", str(rest / tokens)]


def slowest(calls: Iterable[ObservedCall]) -> float:
    return max(call.ended - call.started for call in calls)


def in_steps(calls: list[ObservedCall], sizes: Sequence[int]) -> list[list[ObservedCall]]:
    if len(calls) != sum(sizes):
        raise RuntimeError(f"the debate made {len(calls)} calls, not {sum(sizes)}")
    left = iter(calls)
    return [[next(left) for _ in range(size)] for size in sizes]


async def repeat_call(client: Any, call: ObservedCall) -> None:
    stream = await client.chat.completions.create(
        model=call.model,
        messages=call.messages,
        stream=True,
        stream_options={"include_usage": True},
    )
    async for _ in stream:
        pass


def measured(clock: Callable[[], float], work: Callable[[], Any]) -> float:
    began = clock()
    asyncio.run(work())
    return clock() - began


def wall(work: Callable[[], Any]) -> float:
    return measured(time.monotonic, work)


def cpu(work: Callable[[], Any]) -> float:
    """Measure the CPU seconds of all threads in this process."""
    return measured(time.process_time, work)


def link_embedding_weights(home: Path) -> None:
    """Link the built-in embedding model into a data folder; download once per checkout."""
    from contend.models.providers.weights import DEFAULT_EMBEDDING, EMBEDDINGS, is_pulled, pull

    kept = REPOSITORY / ".cache" / "home"
    for weights in EMBEDDINGS[DEFAULT_EMBEDDING]:
        if not is_pulled(weights, kept):
            pull(weights, kept, lambda _done, _total: None)
    (home / "models").symlink_to(kept / "models")
