"""Measures forecasts on 1, 2 and 4 Aegra workers, and the takeover from a killed worker.

`python -m benchmarks cluster`; it is not part of `make bench`, because it needs Redis and Python
3.12. All processes share this machine, so more workers help only as far as it has idle cores.
"""

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from benchmarks.forecast import REQUEST
from benchmarks.harness import Result, data_home, model_process, wall
from contend.graph.settings import ForecastSettings
from deploy.postgres import PostgresServer
from deploy.workers import Missing, Workers, find_redis, prepare_python

SECONDS = 0.5  # of a call
FORECASTS = 12
CALLS = 31
_COUNTS = (1, 2, 4)
_TICKS = os.sysconf("SC_CLK_TCK")


def results() -> list[Result]:
    try:
        find_redis()
        prepare_python()
    except Missing as missing:
        print(f"Not measured: {missing}", file=sys.stderr)
        return []
    seconds, cpu = {}, {}
    with PostgresServer() as postgres, model_process("--panel", "--delay", str(SECONDS)) as server:
        for count in _COUNTS:
            with data_home() as home, _workers(home, postgres, server, count) as workers:
                asyncio.run(_run(workers, count))  # imports, caches and tables
                server.take_calls()
                before = _cpu_seconds(workers)
                seconds[count] = wall(partial(_run, workers, FORECASTS))
                cpu[count] = (_cpu_seconds(workers) - before) / FORECASTS
                if (made := len(server.take_calls())) != FORECASTS * CALLS:
                    raise RuntimeError(f"{made} calls instead of {FORECASTS * CALLS}")
        with data_home() as home, _workers(home, postgres, server, 2) as workers:
            asyncio.run(_run(workers, 2))
            server.take_calls()
            killed = wall(partial(_run, workers, FORECASTS, kill_after=SECONDS * 5))
            repeated = len(server.take_calls()) - FORECASTS * CALLS
    return [*_throughput(seconds), *_cpu(cpu), _takeover(killed - seconds[2], repeated)]


def _throughput(seconds: dict[int, float]) -> list[Result]:
    note = f"{FORECASTS} forecasts of {CALLS} calls of {SECONDS:g} s, {os.cpu_count()} cores"
    return [
        Result(f"forecasts a minute on {count} workers over 1", seconds[1] / took, note=note)
        for count, took in seconds.items()
        if count > 1
    ]


def _cpu(cpu: dict[int, float]) -> list[Result]:
    return [
        Result(f"CPU of the workers a forecast, {count} workers", spent, unit="s")
        for count, spent in cpu.items()
    ]


def _takeover(seconds: float, repeated: int) -> Result:
    what = "a killed worker's forecasts done, beyond the work left"
    return Result(what, seconds, unit="s", note=f"{repeated} calls in flight made again")


def _workers(home: Path, postgres: PostgresServer, server: Any, count: int) -> Workers:
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        **server.environment(),
        "CONTEND_HOME": str(home / "data"),
    }
    return Workers(home, postgres.create(), count, environment)


async def _run(workers: Workers, count: int, kill_after: float | None = None) -> None:
    clients = [get_client(url=url, api_key=None, timeout=600) for url in workers.addresses]
    # Watch all forecasts through the last worker, because the first one may be killed.
    running = [asyncio.create_task(_forecast(clients, at)) for at in range(count)]
    if kill_after is not None:
        await asyncio.sleep(kill_after)
        await asyncio.to_thread(workers.running[workers.addresses[0]].kill)
    await asyncio.gather(*running)
    for client in clients:
        await client.aclose()


async def _forecast(clients: list[LangGraphClient], at: int) -> None:
    asked, watched = clients[at % len(clients)], clients[-1]
    settings = ForecastSettings.settings_for_model("openai:panel") | {"templates": False}
    thread = (await asked.threads.create())["thread_id"]
    question = REQUEST["prediction_context"]["task"]["question"]  # type: ignore[index]
    given: Any = {"question": question, "request": REQUEST}
    run = await asked.runs.create(
        thread, "forecast", input=given, context=settings, durability="sync"
    )
    state: Any = await watched.runs.join(thread, run["run_id"])
    if not state.get("forecast"):
        raise RuntimeError(f"the forecast failed: {state}")


def _cpu_seconds(workers: Workers) -> float:
    return sum(_ticks(process.pid) for process in workers.running.values()) / _TICKS


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])  # user and system time
