"""kill -9 while the debate waits for the person in a seat."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import ASK, Command, debaters
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m"]) as running:
        yield running


def test_a_debate_that_waits_for_a_person_survives_a_kill(
    tmp_path: Path, models: ModelServer
) -> None:
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
    ready = "No critical issues.\n\nReady for Synthesis ✅"
    done = contend("resume", debate["id"], "--say", ready, "--json")
    assert done.code == 0, done.err
    assert len(models.calls) - paid == 2, "the answer and its score"
    assert [t["text"] for t in done.json["turns"] if t["status"] == "human"] == [ready]
