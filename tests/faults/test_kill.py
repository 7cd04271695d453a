"""Killing a debate at every call loses nothing and repeats no finished call."""

import json
import os
import random
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.support import QUESTION, Command, debaters, spoken
from tests.faults.killing import is_kept
from tests.support.model_server import Call, ModelServer, Reply, Request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

THREE_ROUNDS = ["--set", "min_rounds=3", "--set", "max_rounds=5", "--set", "retry_wait=0.01"]
ASK = ["ask", QUESTION, "-m", "openai:m", *THREE_ROUNDS, "--quiet"]
TURNS = 8
CALLS = TURNS + 1  # the second critique says nothing a rule can read, so it is asked once more
UNREADABLE = "This is critique 2, and it says neither what is open nor what is settled."
READ_BY_SCHEMA = json.dumps({"ready": False, "score": None, "points": []})


def _unreadable_in_round_two(role: str, number: int, reply: Reply) -> Reply:
    text = reply.text
    if role == "extraction":
        text = READ_BY_SCHEMA
    elif (role, number) == ("skeptic", 2):
        text = UNREADABLE
    return replace(reply, text=text, chunk_delay=0.01, chunk_size=4)


def _turn(request: Request) -> tuple[str, int]:
    """Return a key of the call; equal for a repeated call."""
    role = re.search(r"You are the (\w+)", request.instructions)
    rounds = [int(number) for number in re.findall(r"This is critique (\d)", request.text)]
    return (role[1] if role else "extraction", max(rounds, default=0))


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(_unreadable_in_round_two), models=["m"]) as running:
        yield running


class Killer:
    """Start the command repeatedly and kill it once in every call."""

    def __init__(self, contend: Command) -> None:
        self.contend = contend
        self.killed: set[tuple[str, int]] = set()
        self.process: subprocess.Popen[str] | None = None

    def run(self) -> dict[str, object]:
        """Start, kill and resume the debate until it is done; return its record."""
        process = self._start(*ASK)
        while process.wait(timeout=200) == -signal.SIGKILL:
            process.communicate()
            if self._debate()["status"] == "done":  # killed between its end and its exit
                break
            process = self._start("resume", self._debate()["id"], "--quiet")
        else:
            _, err = process.communicate()
            assert process.returncode == 0, err
        record: dict[str, object] = self.contend.here("show", self._debate()["id"], "--json").json
        return record

    def kill(self, request: Request) -> None:
        """Kill the process that waits for this call, unless this call was killed before."""
        if _turn(request) not in self.killed and self.process:
            self.killed.add(_turn(request))
            self.process.kill()
            # Until it is gone it could read the rest of the answer, which then was finished.
            self.process.wait(60)

    def _start(self, *arguments: str) -> subprocess.Popen[str]:
        self.process = self.contend.start(*arguments)
        return self.process

    def _debate(self) -> dict[str, str]:
        debate: dict[str, str]
        (debate,) = self.contend.here("list", "--json").json
        return debate


@pytest.mark.parametrize("at_chunk", [1, 4])
def test_resumes_after_a_kill_in_every_call(
    at_chunk: int, tmp_path: Path, models: ModelServer
) -> None:
    undisturbed = Command(tmp_path / "calm", models).here(*ASK, "--json").json
    assert len(models.calls) == CALLS
    killer = Killer(Command(tmp_path / "killed", models))

    def script(request: Request) -> Reply | str:
        if request.schema:  # not streamed, so it is killed as it arrives
            while not is_kept(killer.contend.home, UNREADABLE):
                time.sleep(0.01)
            killer.kill(request)
        return calm(request)

    calm, models.script = models.script, script
    models.on_chunk = lambda call, sent: killer.kill(call.request) if sent == at_chunk else None
    record = killer.run()
    assert len(killer.killed) == CALLS
    assert spoken(record) == spoken(undisturbed)
    assert record["stop_reason"] == undisturbed["stop_reason"]
    # The server cannot see that nobody read an answer it sent in one piece, so only streams count.
    streamed = [call for call in models.calls[CALLS:] if not call.request.schema]
    finished = Counter(_turn(call.request) for call in streamed if call.completed)
    assert finished.total() == len(finished) == TURNS


def test_resumes_after_kills_at_random_moments(
    tmp_path: Path, models: ModelServer, database: str
) -> None:
    undisturbed = Command(tmp_path / "calm", models).here(*ASK, "--json").json
    killer = Killer(Command(tmp_path / "killed", models))
    killer.contend.env["DATABASE_URL"] = os.environ.get("DATABASE_URL", "")
    chance = random.Random(9)  # noqa: S311 - where the kills fall, not a secret

    def sometimes(call: Call, _sent: int) -> None:
        if chance.random() < 0.06:
            # The delay carries the kill over the end of the call, into the step behind it.
            timer = threading.Timer(chance.uniform(0, 0.2), killer.kill, [call.request])
            timer.start()
            timers.append(timer)

    timers: list[threading.Timer] = []
    models.on_chunk = sometimes
    record = killer.run()
    for timer in timers:
        timer.join()
    assert killer.killed
    assert spoken(record) == spoken(undisturbed)
