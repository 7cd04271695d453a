"""Two services on one database, under locks, stops and clock jumps."""

import hashlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.actions.test_serve import Served, free_port
from tests.cli.support import ROOT, Command
from tests.faults.killing import is_kept
from tests.service.conftest import TOKEN
from tests.service.test_routes import PREFIX, asked
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer, Reply, Request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TASKS = 6
CALLS = 5  # of one round with one role and the judge
SMALL = {"rounds": 1, "roles": ["pessimist", "judge"]}


def _in_pieces(request: Request) -> Reply:
    reply: Reply = forecasters()(request)
    said = f"{_mark(request)} {reply.text}"
    return replace(reply, text=said, delay=0.5, chunk_delay=0.02, chunk_size=40)


def _mark(request: Request) -> str:
    """Return a mark that identifies a call and is equal for a repeated call."""
    same = re.sub(r"[0-9a-f]{8,}", "", request.text)  # without its secret
    return hashlib.sha256(same.encode()).hexdigest()[:16]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(_in_pieces, models=["m"]) as running:
        yield running


@contextmanager
def serving(contend: Command) -> Iterator[Served]:
    port = free_port()
    arguments = ["serve", "-m", "openai:m", "--port", str(port)]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.hurried", *arguments],
        env=contend.env | {"CONTEND_SERVICE_TOKEN": TOKEN, "PYTHONPATH": str(ROOT)},
        cwd=contend.home.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    running = Served(process, f"http://127.0.0.1:{port}")
    try:
        until(lambda: _answers(running))
        yield running
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def _answers(running: Served) -> bool:
    assert running.process.poll() is None, running.process.communicate()
    try:
        return running.call("GET", "/readyz").status_code == 200
    except httpx.TransportError:
        return False


def until(happens: Callable[[], bool]) -> None:
    for _ in range(2000):
        if happens():
            return
        time.sleep(0.05)
    raise AssertionError("it does not happen")


class Checker:
    """Check invariants of the database and the calls."""

    def __init__(self, home: Path, models: ModelServer) -> None:
        self.database, self.models = home / "contend.db", models
        self.cut_off: set[str] = set()

    def rows(self, query: str) -> list[Any]:
        with closing(sqlite3.connect(self.database, timeout=60)) as opened:
            return opened.execute(query).fetchall()

    def holders(self) -> set[int]:
        found = self.rows("SELECT lease_holder FROM debates WHERE lease_holder IS NOT NULL")
        return {int(holder.rpartition(":")[2]) for (holder,) in found}

    def is_over(self) -> bool:
        return not self.rows("SELECT 1 FROM accepted_debates")

    def can_write(self) -> bool:
        with closing(sqlite3.connect(self.database, timeout=5)) as opened:
            try:
                opened.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
        return True

    def note_calls_under_way(self) -> None:
        """Record the calls that no checkpoint holds, which may be paid again."""
        marks = {_mark(call.request) for call in self.models.calls}
        self.cut_off |= {mark for mark in marks if not is_kept(self.database.parent, mark)}

    def check(self) -> None:
        assert self.rows("PRAGMA integrity_check") == [("ok",)]
        statuses = Counter(status for (status,) in self.rows("SELECT status FROM debates"))
        assert statuses == {"done": TASKS}
        # One runner, and no write after a takeover: every checkpoint follows the one before.
        steps = self.rows(
            "SELECT thread_id, checkpoint_id, parent_checkpoint_id FROM checkpoints ORDER BY 1, 2"
        )
        for (thread, before, _), (same, _, parent) in pairwise(steps):
            assert same != thread or parent == before
        paid = Counter(_mark(call.request) for call in self.models.calls if call.completed)
        assert len(paid) == TASKS * CALLS
        assert {mark for mark, count in paid.items() if count > 1} <= self.cut_off


@dataclass(frozen=True)
class Scene:
    services: list[Served]
    checker: Checker
    models: ModelServer
    clock: Path

    @property
    def pids(self) -> list[int]:
        return [each.process.pid for each in self.services]


def lock(scene: Scene) -> None:
    """Lock the database while calls end."""
    with closing(sqlite3.connect(scene.checker.database, timeout=60)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        scene.models.wait_for_idle()


def stop(scene: Scene) -> None:
    """Suspend one service until the other has taken over, then continue it."""
    stopped, other = scene.pids
    os.kill(stopped, signal.SIGSTOP)
    while not scene.checker.can_write():  # it stands still amid a transaction
        os.kill(stopped, signal.SIGCONT)
        os.kill(stopped, signal.SIGSTOP)
    scene.checker.note_calls_under_way()
    until(lambda: scene.checker.holders() <= {other})
    os.kill(stopped, signal.SIGCONT)


def step_clock(scene: Scene) -> None:
    """Move the clock ten minutes ahead and back."""
    for step in ("600", "0", "-600", "0"):
        set_clock(scene.clock, step)
        scene.models.wait_for_calls(min(len(scene.models.calls) + 2, TASKS * CALLS))


def set_clock(clock: Path, step: str) -> None:
    """Set the clock file atomically."""
    written = clock.with_suffix(".new")
    written.write_text(step, "ascii")
    written.replace(clock)


@pytest.mark.parametrize("disturb", [lock, stop, step_clock])
def test_disturbed_services_run_every_debate_once(
    disturb: Callable[[Scene], None], tmp_path: Path, models: ModelServer
) -> None:
    contend, clock = Command(tmp_path / "home", models), tmp_path / "clock"
    set_clock(clock, "0")
    contend.env["TEST_CLOCK"] = str(clock)
    with ExitStack() as stack:
        services = [stack.enter_context(serving(contend)) for _ in range(2)]
        scene = Scene(services, Checker(contend.home, models), models, clock)
        for number in range(TASKS):
            request = asked(f"task-{number}", **SMALL)
            request["prediction_context"]["task"]["question"] = f"Does bridge {number} open?"
            later = {"Prefer": "respond-async"}
            served = services[number % 2].call("POST", PREFIX, json=request, headers=later)
            assert served.status_code == 202, served.text
        until(lambda: scene.checker.holders() == set(scene.pids))
        models.wait_for_calls(TASKS)
        disturb(scene)
        until(scene.checker.is_over)
    scene.checker.check()
