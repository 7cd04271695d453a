"""Runs many debates concurrently in one process, and compares them with the bare client."""

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.harness import (
    REPOSITORY,
    ModelProcess,
    ObservedCall,
    Result,
    debate_in,
    environment,
    in_steps,
    model_process,
    repeat_by_hand,
    repeat_call,
    service_key,
)
from benchmarks.parallel import refine_settings
from deploy.postgres import PostgresServer
from deploy.workers import Missing

LIMIT = 0.35
MEMORY_LIMIT = 250.0
LAG_LIMIT = 100.0
_DEBATES = (100, 500)
_MODELS, _ROUNDS = 3, 2
_STEPS = [_MODELS, 1, _MODELS, 1, _MODELS, 1, 1]
_CALL = ["--tokens", "200", "--delay", "0.05", "--chunk-delay", "0.001", "--keep-pace"]
_POLL_SECONDS = 0.01


def results() -> list[Result]:
    found = [result for number in _DEBATES for result in _compare(number)]
    try:
        with PostgresServer() as postgres:
            return [*found, *_compare(_DEBATES[0], " on PostgreSQL", postgres.create())]
    except Missing as missing:
        print(f"Not measured: {missing}", file=sys.stderr)
        return found


def _compare(number: int, on: str = "", database_url: str = "") -> list[Result]:
    with model_process(*_CALL) as server, environment(DATABASE_URL=database_url):
        ours, bare, by_hand = (_measured(server, who, number) for who in _WAYS)
    what = f"{number} refine debates of {sum(_STEPS)} calls at once{on}"
    fairness = f"the first ended after {ours['first']:.1f} s, the last after {ours['seconds']:.1f}"
    clients = f"the bare client {bare['seconds']:.1f} s, aiohttp by hand {by_hand['seconds']:.1f} s"
    return [
        Result(
            f"{what} over the bare client",
            ours["seconds"] / bare["seconds"],
            LIMIT,
            "x",
            f"{clients}; {fairness}",
        ),
        Result(f"{what}: memory", ours["mb"], MEMORY_LIMIT, "MB", f"bare {bare['mb']:.0f} MB"),
        Result(
            f"{what}: longest lag of the event loop",
            ours["lag"],
            LAG_LIMIT,
            "ms",
            f"99 % below {ours['usual_lag']:.0f} ms",
        ),
    ]


def _measured(server: ModelProcess, who: str, number: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.crowd", who, str(number)],
        cwd=REPOSITORY,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    server.take_calls()
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


async def _replay_many(number: int) -> dict[str, float]:
    from openai import AsyncOpenAI

    steps = in_steps(_calls(), _STEPS)
    async with AsyncOpenAI(max_retries=0, timeout=3600) as client:
        await _replay(client, steps)
        return await _timed(lambda: _replay(client, steps), number)


async def _replay_many_by_hand(number: int) -> dict[str, float]:
    import aiohttp

    steps = in_steps(_calls(), _STEPS)
    pool = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=pool, headers=service_key()) as session:

        async def replay_once() -> None:
            for step in steps:
                await asyncio.gather(*(repeat_by_hand(session, call) for call in step))

        await replay_once()
        return await _timed(replay_once, number)


async def _run_debates(number: int) -> dict[str, float]:
    from contend.debates.run import open_repository

    records, chosen = open_repository(), refine_settings(_MODELS, _ROUNDS)
    try:
        await debate_in(records, chosen)
        return await _timed(lambda: debate_in(records, chosen), number)
    finally:
        records.close()


async def _timed(work: Callable[[], Awaitable[None]], number: int) -> dict[str, float]:
    ended, began = list[float](), time.monotonic()
    lags = list[float]()

    async def one() -> None:
        await work()
        ended.append(time.monotonic() - began)

    watching = asyncio.create_task(_watch(lags))
    await asyncio.gather(*(one() for _ in range(number)))
    watching.cancel()
    lags.sort()
    return {
        "first": ended[0],
        "seconds": ended[-1],
        "lag": 1000 * lags[-1],
        "usual_lag": 1000 * lags[int(len(lags) * 0.99)],
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
    }


async def _watch(lags: list[float]) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(_POLL_SECONDS)
        lags.append(time.monotonic() - before - _POLL_SECONDS)


def _calls() -> list[ObservedCall]:
    """Return typical calls of a debate, with half a page of text from each earlier speaker."""
    sizes = [1] * _MODELS + [_MODELS] + [_MODELS + 1] * _MODELS + [_MODELS]
    sizes += [_MODELS + 1] * _MODELS + [_MODELS, 1]
    page = " ".join(f"word{n}" for n in range(200))
    return [
        ObservedCall("model", [{"role": "user", "content": page * size}], 0.0, 0.0)
        for size in sizes
    ]


async def _replay(client: Any, steps: list[list[ObservedCall]]) -> None:
    for step in steps:
        await asyncio.gather(*(repeat_call(client, call) for call in step))


_WAYS = {"ours": _run_debates, "bare": _replay_many, "by hand": _replay_many_by_hand}

if __name__ == "__main__":
    print(json.dumps(asyncio.run(_WAYS[sys.argv[1]](int(sys.argv[2])))))
