"""Measures time travel: replaying, forking, and the cost of recording a debate."""

import asyncio
import sqlite3
import statistics
import time
from contextlib import AbstractContextManager, closing, nullcontext
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks.checkpoints import register_speaker
from benchmarks.harness import (
    QUESTION,
    Result,
    data_home,
    debate,
    environment,
    model_process,
    pace,
    wall,
)

if TYPE_CHECKING:  # imports must not be measured
    from contend.debates.record import StoredDebate
    from contend.debates.repository import Repository

_ROUNDS = 24
_TURNS = 2 * _ROUNDS + 2
_FORKS = 5
_RUNS = 5
_CALL = 1.0


def results() -> list[Result]:
    register_speaker()
    with data_home() as home, environment(CONTEND_HOME=str(home)):
        stored = asyncio.run(_long_debate())
        return [*_replay(stored), *_fork(home, stored), _recording()]


async def _long_debate() -> "StoredDebate":
    from langgraph.runtime import RunControl

    from contend.debates.prepare import PreparedDebate, write_debate
    from contend.debates.run import open_repository, run_debate
    from contend.graph.settings import AdversarialSettings
    from contend.models.seats import choose_seats

    models = {f"{seat}_model": "bench:speaker" for seat in ("proposer", "skeptic", "synthesizer")}
    rounds = {"min_rounds": _ROUNDS, "max_rounds": _ROUNDS, "templates": False}
    chosen = AdversarialSettings(**models, judge_model="bench:speaker", **rounds)
    records = open_repository()
    try:
        plan = await choose_seats(chosen)
        opened = write_debate(records, PreparedDebate(QUESTION, chosen, plan))
        done = await run_debate(records, opened, lambda _: None, RunControl())
    finally:
        records.close()
    if len(done.turns) != _TURNS:
        raise RuntimeError(f"the debate has {len(done.turns)} turns, not {_TURNS}")
    return done


def _replay(stored: "StoredDebate") -> list[Result]:
    from rich.console import Console

    from contend.cli.actions.replay import show_events
    from contend.cli.view.renderer import Renderer
    from contend.debates.replay import replay_strictly

    with _opened() as records:
        events = [each.as_event() for each in records.journal.read(stored.id, 0)]
        renderer = Renderer(Console(file=StringIO(), width=100))
        began = time.monotonic()
        show_events(events, renderer, stored, speed=1e9)
        shown = time.monotonic() - began
        strict = wall(lambda: replay_strictly(records, stored))
    note = f"{_TURNS / shown:.0f} turns a second, {len(events)} events drawn"
    return [
        Result("replay at full speed, per turn", 1000 * shown / _TURNS, 5, "ms", note),
        Result("replay --strict, per turn", 1000 * strict / _TURNS, unit="ms"),
    ]


def _fork(home: Path, stored: "StoredDebate") -> list[Result]:
    from contend.debates.fork import ForkPoint, fork_debate

    async def fork() -> float:
        began = time.monotonic()
        await fork_debate(records, stored, ForkPoint(_ROUNDS), {})
        return time.monotonic() - began

    with _opened() as records:
        asyncio.run(fork())  # imports and caches
        before = _bytes(home)
        took = [asyncio.run(fork()) for _ in range(_FORKS)]
    added = (_bytes(home) - before) / _FORKS
    turns = sum(len(turn.model_dump_json().encode()) for turn in stored.turns)
    note = f"{added / 1024:.0f} KB for turns of {turns / 1024:.0f} KB"
    return [
        Result("fork of a debate of 50 turns", 1000 * statistics.median(took), 100, "ms"),
        Result("bytes of a fork over those of its turns", added / turns, 2, "x", note),
    ]


def _recording() -> Result:
    with model_process(*pace(_CALL)):
        wall(debate)  # imports and caches
        pairs = [(wall(debate), _without_recording()) for _ in range(_RUNS)]
    ratio = statistics.median(recorded for recorded, _ in pairs) / statistics.median(
        plain for _, plain in pairs
    )
    note = f"medians of {_RUNS} debates with calls of {_CALL:g} s"
    return Result("a recorded debate over one that is not", ratio, 1.02, "x", note)


def _without_recording() -> float:
    with patch("contend.debates.run.using_recording", lambda _: nullcontext()):
        return wall(debate)


def _opened() -> "AbstractContextManager[Repository]":
    from contend.debates.run import open_repository

    return closing(open_repository())


def _bytes(home: Path) -> int:
    """Return the number of bytes in use, without free pages."""
    with sqlite3.connect(home / "contend.db") as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (pages, free, size) = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
    database.close()
    return int((pages - free) * size)
