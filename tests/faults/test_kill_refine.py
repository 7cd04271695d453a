"""Killing one of three parallel answers keeps the other two."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.support import QUESTION, Command, debaters, spoken
from tests.faults.killing import is_kept
from tests.support.model_server import Call, ModelServer, Reply, Request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MODELS = ["ann", "ben", "cyd"]
SEATS = [word for name in MODELS for word in ("--seat", f"{name}=openai:{name}")]
PATIENT = ["debate_timeout_ms=60000", "max_debate_rounds=1", "judge_model=openai:judge"]
ASK = [
    *["ask", QUESTION, "-p", "refine", *SEATS, "--quiet"],
    *[word for each in PATIENT for word in ("--set", each)],
]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=[*MODELS, "judge"]) as running:
        yield running


def _which(request: Request) -> tuple[str, str]:
    """Return a key of the call; equal for a repeated call."""
    task = next(
        (sign for sign in ("Improve", "feedback", "Merge", "Rate") if f"{sign} " in request.user),
        "answer",
    )
    return request.model, task


@pytest.mark.parametrize("number", [0, 1])
def test_a_kill_keeps_two_of_three_parallel_answers(
    number: int, tmp_path: Path, models: ModelServer
) -> None:
    undisturbed = Command(tmp_path / "calm", models)(*ASK, "--json").json
    calls = len(models.calls)
    contend = Command(tmp_path / "killed", models)
    killed = False

    def endless(role: str, round_number: int, reply: Reply) -> Reply:
        is_last = f"This is answer {number} of ben." in reply.text and not killed
        return replace(reply, text="word " * 500, chunk_delay=0.02) if is_last else reply

    def kill(call: Call, _sent: int) -> None:
        nonlocal killed
        others = [f"This is answer {number} of {name}." for name in ("ann", "cyd")]
        mine = call.request.model == "ben" and not killed
        if mine and all(is_kept(contend.home, text) for text in others):
            killed = True
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    models.script, models.on_chunk = debaters(endless), kill
    process = contend.start(*ASK)
    process.communicate()
    models.check()
    assert process.returncode == -signal.SIGKILL
    (listed,) = contend.here("list", "--json").json
    record = contend("resume", listed["id"], "--quiet", "--json").json
    assert spoken(record) == spoken(undisturbed)
    finished = Counter(_which(call.request) for call in models.calls[calls:] if call.completed)
    assert finished.total() == len(finished) == calls == 9
