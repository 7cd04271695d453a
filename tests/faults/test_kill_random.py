"""Kill debates of every protocol at random moments, on both databases."""

import multiprocessing
import os
import random
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Command, spoken
from tests.faults.preloaded import run
from tests.support.model_server import Call, ModelServer, Reply, Request
from tests.support.protocols import PROTOCOLS, ask_in, script_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# More for a measurement: CONTEND_TEST_KILLS=50 on an idle machine.
KILLS = int(os.environ.get("CONTEND_TEST_KILLS", "1"))
IS_MEASUREMENT = "CONTEND_TEST_KILLS" in os.environ
# A finished call may be paid again if it ended less than this before the kill.
SECONDS_EXPOSED = 0.05


class Killer:
    """Run debates one after the other and kill each repeatedly."""

    def __init__(self, contend: Command, models: ModelServer, ask: list[str]) -> None:
        self.contend, self.models, self.ask = contend, models, ask
        self.chance = random.Random(len(ask))  # noqa: S311 - where the kills fall, not a secret
        self.most_chunks = sum(call.chunks_sent for call in models.calls) // 3
        self.forks = multiprocessing.get_context("forkserver")
        self.forks.set_forkserver_preload(["tests.faults.preloaded"])
        self.killed: list[float] = []
        self.logs = count()

    def run(self) -> dict[str, Any]:
        """Start, kill and resume the debate until it is done; return its record."""
        known = self._debates()
        arguments = [*self.ask, "--quiet"]
        while self._is_killed(arguments):
            started = {id_: status for id_, status in self._debates().items() if id_ not in known}
            if "done" in started.values():  # killed between its end and its exit
                break
            arguments = ["resume", *started, "--quiet"] if started else arguments
        (debate,) = self._debates().keys() - known
        record: dict[str, Any] = self.contend.here("show", debate, "--json").json
        assert record["status"] == "done"
        return record

    def _is_killed(self, arguments: list[str]) -> bool:
        log = self.contend.home.parent / f"{next(self.logs)}.log"
        process = self.forks.Process(target=run, args=(arguments, self.contend.env, log))
        left = self.chance.randint(1, self.most_chunks)
        timer = threading.Timer(self.chance.uniform(0, 0.08), self._kill, [process])

        def count_down(_call: Call, _sent: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                timer.start()

        self.models.on_chunk = count_down
        before = len(self.killed)
        process.start()
        process.join(300)
        self.models.on_chunk = None
        timer.cancel()
        if timer.ident:
            timer.join()
        assert process.exitcode in (0, -9), log.read_text("utf-8")
        if process.exitcode == 0:
            del self.killed[before:]
        return process.exitcode == -9

    def _kill(self, process: Any) -> None:
        self.killed.append(time.monotonic())
        process.kill()

    def _debates(self) -> dict[str, str]:
        """Return the status of each debate."""
        listed = self.contend.here("list", "--json", "--limit", "1000").json
        return {each["id"]: each["status"] for each in listed}


def _key(request: Request) -> str:
    """Return the request text without nonces."""
    return request.model + re.sub(r"[0-9a-f]{8,}", "", request.text)


def _slowly(script: Any) -> Any:
    """Stream every answer in pieces at varying speeds."""

    def slow(request: Request) -> Reply:
        reply: Reply = script(request)
        return replace(reply, chunk_size=12, chunk_delay=0.002 + 0.005 * (request.index % 5))

    return slow


def _exposed(calls: list[Call], kills: list[float]) -> list[float]:
    """Return how long before the kill each repeated call had ended."""
    made = defaultdict(list)
    for call in calls:
        made[_key(call.request)].append(call)
    repeated = [call for same in made.values() for call in same[:-1] if call.completed]
    # A server cannot know that nobody reads: some of these ended after the kill.
    ended = ((call.ended or 0, next(k for k in kills if k > call.started)) for call in repeated)
    return [kill - end for end, kill in ended if kill > end]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Reply(""), models=None) as running:
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_resumes_after_kills_at_random_moments(
    protocol: str, tmp_path: Path, models: ModelServer, database: str
) -> None:
    models.script = _slowly(script_of(protocol))
    ask = ask_in(protocol)
    undisturbed = Command(tmp_path / "calm", models).here(*ask, "--json").json
    contend = Command(tmp_path / "killed", models)
    contend.env["DATABASE_URL"] = os.environ.get("DATABASE_URL", "")
    killer = Killer(contend, models, ask)
    exposed = []
    while len(killer.killed) < KILLS:
        calls, before = len(models.calls), len(killer.killed)
        record = killer.run()
        assert sorted(spoken(record)) == sorted(spoken(undisturbed))
        assert record["stop_reason"] == undisturbed["stop_reason"]
        assert record["degraded"] == undisturbed["degraded"]
        exposed += _exposed(models.calls[calls:], killer.killed[before:])
    models.check()
    milliseconds = sorted(round(1000 * each) for each in exposed)
    kills = len(killer.killed)
    sys.stdout.write(f"{protocol}, {database}: {kills} kills, repeated after {milliseconds} ms\n")
    if IS_MEASUREMENT:
        assert max(exposed, default=0) < SECONDS_EXPOSED
