"""Killing a speech that uses tools repeats no finished call."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.cli.support import QUESTION, Command, debaters, spoken
from tests.faults.killing import is_kept
from tests.support.model_server import Call, ModelServer, Reply, Request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STEPS = 3  # the calls of one speech: two that use a tool, and the answer
TABLE = {
    "seats": [
        {"name": "ann", "model": "openai:ann", "tools": ["calculate"]},
        {"name": "ben", "model": "openai:ben"},
    ],
    "judge_model": "openai:judge",
    "max_debate_rounds": 1,
    "debate_timeout_ms": 60_000,
}


def _step(request: Request) -> int:
    """Return the number of the call within its speech."""
    return 1 + len(request.results)


def _using_tools(request: Request) -> Reply:
    reply: Reply = debaters()(request)
    if request.model == "ann" and _step(request) < STEPS:
        step = _step(request)
        use = ("calculate", {"expression": f"{step} + {step}"})
        reply = Reply(f"Step {step} of {reply.text}", tool_calls=[use])
    return reply


def _which(request: Request) -> tuple[str, str, int]:
    """Return a key of the call; equal for a repeated call."""
    task = next(
        (sign for sign in ("Improve", "feedback", "Merge", "Rate") if f"{sign} " in request.user),
        "answer",
    )
    return request.model, task, _step(request)


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(_using_tools, models=["ann", "ben", "judge"]) as running:
        yield running


@pytest.mark.parametrize("number", [0, 1], ids=["answers", "refinements"])
@pytest.mark.parametrize("step", [2, 3])
def test_a_kill_in_a_later_call_of_a_speech_keeps_earlier_calls(
    step: int, number: int, tmp_path: Path, models: ModelServer
) -> None:
    table = tmp_path / "table.yaml"
    table.write_text(yaml.safe_dump(TABLE))
    ask = ["ask", QUESTION, "-p", "refine", "--config", str(table), "--quiet"]
    undisturbed = Command(tmp_path / "calm", models)(*ask, "--json").json
    calls = len(models.calls)
    contend = Command(tmp_path / "killed", models)
    task = "Improve" if number else "answer"
    killed = False

    def endless(request: Request) -> Reply:
        fatal = _which(request) == ("ann", task, step) and not killed
        reply = _using_tools(request)
        return replace(reply, text="word " * 500, chunk_delay=0.02) if fatal else reply

    def kill(call: Call, _sent: int) -> None:
        nonlocal killed
        before = f"Step {step - 1} of This is answer {number} of ann."
        others = f"This is answer {number} of ben."
        fatal = _which(call.request) == ("ann", task, step) and not killed
        if fatal and all(is_kept(contend.home, text) for text in (before, others)):
            killed = True
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    models.script, models.on_chunk = endless, kill
    process = contend.start(*ask)
    process.communicate()
    models.check()
    assert process.returncode == -signal.SIGKILL
    (listed,) = contend.here("list", "--json").json
    record = contend("resume", listed["id"], "--quiet", "--json").json
    assert spoken(record) == spoken(undisturbed)
    used = [[use["result"] for use in turn["tool_calls"]] for turn in record["turns"]]
    assert used == [[use["result"] for use in t["tool_calls"]] for t in undisturbed["turns"]]
    finished = Counter(_which(call.request) for call in models.calls[calls:] if call.completed)
    assert finished.total() == len(finished) == calls == 2 * (STEPS + 1) + 3
