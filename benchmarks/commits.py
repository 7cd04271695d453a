"""Measures how long a finished model call takes to reach the database."""

import asyncio
import gc
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median, quantiles
from typing import Any, Literal
from unittest.mock import patch

from benchmarks import forecast, moderated, parallel
from benchmarks.harness import ModelProcess, Result, debate, model_process

LIMIT_MS, TENTH_LIMIT_MS = 20.0, 40.0
_RUNS = 4
_MARK = re.compile(rb"mark-[0-9a-f]{12}")


def results() -> list[Result]:
    protocols: dict[str, Callable[[], Any]] = {
        "adversarial": debate,
        "forum": partial(debate, parallel.forum_settings(5, 2, judge_mode="self_convergence")),
        "refine": partial(debate, parallel.refine_settings(5, 2)),
        "moderated": partial(debate, moderated.moderated_settings()),
        "forecast": forecast._forecast,
    }
    found = []
    for name, run in protocols.items():
        panel = ["--panel"] if name == "forecast" else []
        with model_process(*panel, "--delay", "0.2", "--mark") as server:
            found += _measure(name, run, server)
    return found


def _measure(name: str, run: Callable[[], Any], server: ModelProcess) -> list[Result]:
    asyncio.run(run())  # imports and caches
    gc.freeze()  # as the command does
    server.take_calls()
    waits: list[float] = []
    for _ in range(_RUNS):
        with _commit_times() as committed:
            asyncio.run(run())
        for call in server.take_calls():
            (mark,) = _MARK.findall(call.reply.encode())
            waits.append(1000 * (committed[mark] - call.ended))
    tenth = quantiles(waits, n=10)[-1]
    note = f"median of {len(waits)} calls; the slowest {max(waits):.0f} ms"
    return [
        Result(f"{name}: call's end to its commit", median(waits), LIMIT_MS, "ms", note),
        Result(f"{name}: the same, slowest tenth", tenth, TENTH_LIMIT_MS, "ms"),
    ]


@contextmanager
def _commit_times() -> Iterator[dict[bytes, float]]:
    """Yield a dictionary that gets the time at which each reply is committed."""
    times: dict[bytes, float] = {}

    class Timed(sqlite3.Connection):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._written: set[bytes] = set()

        def cursor(self, *_: Any) -> Any:
            return super().cursor(partial(_Cursor, self._written))

        def __exit__(self, *error: Any) -> Literal[False]:
            super().__exit__(*error)
            for mark in self._written:
                times.setdefault(mark, time.monotonic())
            self._written.clear()
            return False

    with patch("sqlite3.connect", partial(sqlite3.connect, factory=Timed)):
        yield times


class _Cursor(sqlite3.Cursor):
    def __init__(self, written: set[bytes], connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._written = written

    def executemany(self, statement: str, rows: Any) -> Any:
        rows = list(rows)
        if "INTO writes" in statement:
            self._written.update(mark for row in rows for mark in _MARK.findall(row[-1]))
        return super().executemany(statement, rows)
