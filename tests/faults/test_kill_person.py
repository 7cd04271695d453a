"""Killing a debate that waits for a person."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cli.support import ASK, Command, debaters
from tests.faults.test_kill_service import Service
from tests.service.test_debates import QUESTION, QUICK
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

DOUBTS = "🔴 Critical: the cost is never estimated."
READY = "No critical issues.\n\nReady for Synthesis ✅"


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m"]) as running:
        yield running


def test_a_debate_waiting_for_a_person_survives_a_kill(tmp_path: Path, models: ModelServer) -> None:
    contend = Command(tmp_path / "home", models)
    terminal, other_end = pty.openpty()
    asked = [sys.executable, "-m", "contend", *ASK, "--set", "skeptic_model=human", "--plain"]
    with subprocess.Popen(
        asked, stdin=other_end, stdout=other_end, stderr=other_end, env=contend.env, cwd=tmp_path
    ) as process:
        os.close(other_end)
        seen = b""
        while b"End with Ctrl-D" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"critical: half an answ")
        process.send_signal(signal.SIGKILL)
    os.close(terminal)
    (debate,) = contend("list", "--json").json
    assert debate["status"] == "paused"
    paid = len(models.calls)
    done = contend("resume", debate["id"], "--say", READY, "--json")
    assert done.code == 0, done.err
    assert len(models.calls) - paid == 2, "the answer and its score"
    assert [t["text"] for t in done.json["turns"] if t["status"] == "human"] == [READY]


def wait_for_question(service: Service, debate: str, after: int = 0) -> int:
    """Watch until the person in the Skeptic's seat is asked; return the event's number."""
    for event in service.read(debate, after):
        if event["event"] == "paused":
            assert event["metadata"]["ask"]["seat"] == "skeptic"
            return int(event["seq"])
    raise AssertionError("nobody was asked")


def answer(service: Service, debate: str, text: str) -> None:
    said = httpx.post(f"{service.url}/{debate}/resume", json={"say": text}, timeout=60)
    assert said.status_code == 202, said.text


def test_a_person_answers_over_the_api_after_each_kill(tmp_path: Path, models: ModelServer) -> None:
    service = Service(Command(tmp_path / "home", models))
    settings = QUICK | {"skeptic_model": "human", "max_rounds": 3}
    with service.run() as kill:
        body = {"question": QUESTION, "settings": settings}
        debate = httpx.post(service.url, json=body, timeout=60).json()["id"]
        asked = wait_for_question(service, debate)
        kill()
    assert len(models.calls) == 1, "the first proposal"
    with service.run() as kill:
        waiting = httpx.get(f"{service.url}/{debate}", timeout=60).json()
        assert (waiting["status"], waiting["waiting_for_you"]) == ("paused", True)
        answer(service, debate, DOUBTS)
        asked = wait_for_question(service, debate, asked)
        kill()
    assert len(models.calls) == 2, "the second proposal"
    with service.run():
        answer(service, debate, READY)
        *_, last = service.watch(debate)
        record = httpx.get(f"{service.url}/{debate}", timeout=60).json()["record"]
    assert last["event"] == "complete"
    assert (record["stop_reason"], record["total_rounds"]) == ("skeptic_ready", 2)
    said = [turn["text"] for turn in record["turns"] if turn["status"] == "human"]
    assert said == [DOUBTS, READY]
    sent = [call.request.text for call in models.calls]
    assert len(sent) == len({*sent}) == 4, "two proposals, the answer and its score"
