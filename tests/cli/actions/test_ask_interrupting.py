"""A second Ctrl-C ends the process immediately and loses no finished turn."""

import contextlib
import json
import os
import pty
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.cli.support import ASK, Command, change_database, debaters, on_embedded
from tests.models.providers.test_embedded import weights as weights  # noqa: PLC0414 - the fixture that pulls
from tests.support.model_server import ModelServer, Reply

pytestmark = pytest.mark.slow

# Makes the terminal on its stdin the one whose keys reach it.
AT_TERMINAL = """
import os, sys
os.login_tty(0)
os.execv(sys.executable, [sys.executable, "-m", "contend", *sys.argv[1:]])
"""
AGAIN = "press Ctrl-C again"


def _silent(role: str, _number: int, reply: Reply) -> Reply:
    return Reply(until=lambda: False) if role == "skeptic" else reply


def _cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _read_until(stream: IO[bytes], wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen and (piece := os.read(stream.fileno(), 4096)):
        seen += piece
    assert wanted in seen, seen
    return seen


def _read_rest(stream: IO[bytes]) -> bytes:
    seen = b""
    with contextlib.suppress(OSError):  # a terminal without a process has no end of file
        while piece := os.read(stream.fileno(), 4096):
            seen += piece
    return seen


def _wait_for_checkpoint(contend: Command, debate: str, turn: str) -> None:
    while turn not in contend.here("history", debate, "--json").out:
        pass


def test_second_ctrl_c_restores_the_terminal(contend: Command, models: ModelServer) -> None:
    models.script = debaters(_silent)
    keyboard, terminal = pty.openpty()
    with open(keyboard, "r+b", buffering=0) as keys:  # noqa: PTH123 - a descriptor
        process = subprocess.Popen(
            [sys.executable, "-c", AT_TERMINAL, *ASK],
            env=contend.env | {"TERM": "xterm"},
            cwd=contend.home.parent,
            stdin=terminal,
        )
        os.close(terminal)
        shown = _read_until(keys, b"Skeptic is ")
        keys.write(b"\x03")
        shown += _read_until(keys, AGAIN.encode())
        keys.write(b"\x03")
        shown += _read_rest(keys)
        assert process.wait(timeout=200) == 3
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l"), "the cursor is visible"
    assert b"Paused. Continue with: contend resume" in shown
    models.script = debaters()
    (listed,) = contend.here("list", "--json").json
    assert contend.here("resume", listed["id"]).code == 0


def test_second_ctrl_c_ends_the_process_while_the_database_is_locked(
    contend: Command, models: ModelServer
) -> None:
    models.script = debaters(_silent)
    with contend.start(*ASK, "--events") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while '"skeptic_chunk"' not in (line := process.stdout.readline()):
            pass
        _wait_for_checkpoint(contend, json.loads(line)["debate_id"], "r1.propose.proposer")
        with contextlib.closing(sqlite3.connect(contend.home / "contend.db")) as other:
            other.execute("BEGIN EXCLUSIVE")
            process.send_signal(signal.SIGINT)
            assert AGAIN in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=200)
    assert process.returncode == 3
    assert err.startswith("Stopped. Continue with: contend resume ")
    change_database(contend, "UPDATE debates SET lease_until = NULL, lease_owner = NULL")
    models.script = debaters()
    resumed = contend.here("resume", err.split()[-1])
    assert resumed.code == 0
    assert "Resumed with 1 turn so far." in resumed.out


@pytest.mark.embedded
@pytest.mark.skipif(sys.platform != "linux", reason="reads the times of a process from /proc")
def test_second_ctrl_c_interrupts_the_embedded_model_reading_its_prompt(
    weights: Path, contend: Command
) -> None:
    on_embedded(contend, weights)
    long = " ".join(f"Point {n}: towns of {7 * n} people need {n} wells." for n in range(220))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with contend.start("ask", f"Is it so? {long}", "--events") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while '"proposer_chunk"' not in process.stdout.readline():
            pass
        asked = _cpu_seconds(process)
        process.send_signal(signal.SIGINT)
        assert AGAIN in process.stderr.readline()
        while (spent := _cpu_seconds(process)) < asked + 1:  # it is reading
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
    assert process.returncode == 3
    assert json.loads(out.splitlines()[-1])["event"] == "paused", "no token came"
    assert "Continue with: contend resume" in err
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    total = sum(after[:2]) - sum(before[:2])
    assert total - spent < 2, "it went on reading"
    (listed,) = contend.here("list", "--json").json
    assert listed["status"] == "paused"
