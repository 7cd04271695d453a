"""Helpers that run the real command and script whole debates."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

from contend.cli.main import run
from contend.models.providers.weights import KNOWN, SMALLEST, weights_path
from tests.support.model_server import ModelServer, Reply, Request

ROOT = Path(__file__).parents[2]
QUESTION = "Should a team of four split its monolith?"
ANSWER = "# Answer\n\nKeep the monolith 🧱, and draw the boundaries inside it first."
SHORT = ["--set", "min_rounds=1", "--set", "max_rounds=2", "--set", "retry_wait=0.01"]
ASK = ["ask", QUESTION, "-m", "openai:m", *SHORT]
NOISE = ("Traceback", "Exception ignored", "Warning")

Change = Callable[[str, int, Reply], Reply]
"""Changes the reply of a role in a round."""


def debaters(change: Change = lambda role, round_number, reply: reply) -> Any:
    """Script a whole debate; the round is read from the prompt, so resuming is exact."""

    def script(request: Request) -> Reply:
        found = re.search(r"You are (?:the|one of several) (\w+?)s?\b", request.instructions)
        role = found[1].lower() if found else "extraction"
        number = 1 + len(set(re.findall(r"This is critique (\d)", request.text)))
        if role == "debater":
            again = re.search(r"Round (\d+) of", request.user)
            number = int(again[1]) if again else 0
        return change(role, number, Reply(_said(role, number, request)))

    return script


# What is said to whoever is asked for it.
_SAID = {
    "Give feedback that makes": "This is feedback: be concrete.",
    "Merge these answers": ANSWER,
    "Give your verdict on it": "Each has a point.",
    "Write the one answer the user will read": ANSWER,
}


def _said(role: str, number: int, request: Request) -> str:
    if role == "skeptic":
        status = "open" if number == 1 else "resolved"
        point = {"id": "" if number == 1 else "S1", "severity": "critical", "status": status}
        points = [point | {"text": "The cost is never estimated."}]
        block = {"nonce": _nonce(request), "ready": False, "score": 5, "points": points}
        return f"This is critique {number} 🔍 of the answer.\n\n```json\n{json.dumps(block)}\n```"
    for sign, said in _SAID.items():
        if sign in request.user:
            return said
    if role == "debater":
        return f"This is answer {number} of {request.model}."
    if role == "judge":
        ratings = {"correctness": 8, "completeness": 7, "clarity": 9, "depth": 6}
        more = {"justification": "Clear.", "would_benefit_from_finetune": False}
        block = {"nonce": _nonce(request), **ratings, **more}
        return f"Rated.\n\n```json\n{json.dumps(block)}\n```"
    return ANSWER if role == "synthesizer" else f"This is proposal {number}: keep it together."


def _nonce(request: Request) -> str:
    return str(re.findall(r'"nonce": "([0-9a-f]+)"', request.text)[-1])


def slowly(role: str, round_number: int) -> Change:
    """Make one turn arrive slowly enough to be interrupted."""

    def change(this: str, number: int, reply: Reply) -> Reply:
        slow = (this, number) == (role, round_number)
        return replace(reply, chunk_delay=0.06, chunk_size=8) if slow else reply

    return change


@dataclass(frozen=True)
class Ended:
    """The result of a finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Command:
    """Run `contend` with its own data folder, home and environment."""

    def __init__(self, home: Path, server: ModelServer) -> None:
        self.home = home
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home.parent),
            "CONTEND_HOME": str(home),
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": "sk-canary-0123456789abcdef",
            "OLLAMA_HOST": server.url,
            "LANGSMITH_TRACING": "false",
            # Tests of retrieval switch them on; the others need no embedding model.
            "CONTEND_TEMPLATES": "false",
        }

    def start(self, *arguments: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "contend", *arguments],
            env=self.env | env,
            cwd=self.home.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def spawn(self, *arguments: str, stdin: str = "", **env: str) -> Ended:
        """Run it in a separate process, which is slow and seldom needed."""
        with self.start(*arguments, **env) as process:
            try:
                out, err = process.communicate(stdin, timeout=280)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        ended = Ended(process.returncode, out, err)
        assert not any(noise in err for noise in NOISE), err
        return ended

    def here(self, *arguments: str, stdin: str | None = None, **env: str) -> Ended:
        """Run it in this process, which has already loaded the packages."""
        out, err = StringIO(), StringIO()
        given = sys.stdin if stdin is None else TextIOWrapper(BytesIO(stdin.encode()))
        with (
            patch.dict(os.environ, self.env | env, clear=True),
            patch.object(sys, "stdin", given),
            contextlib.chdir(self.home.parent),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = run(list(arguments))
        assert not any(noise in err.getvalue() for noise in NOISE), err.getvalue()
        return Ended(code, out.getvalue(), err.getvalue())

    __call__ = here

    def ask(self, *arguments: str) -> Ended:
        return self(*ASK, *arguments)

    def ask_here(self, *arguments: str, **env: str) -> Ended:
        return self.here(*ASK, *arguments, **env)


def change_database(contend: Command, statement: str, *values: object) -> None:
    """Change the SQLite file directly, without the command."""
    with contextlib.closing(sqlite3.connect(contend.home / "contend.db")) as opened, opened:
        opened.execute(statement, values)


def break_table(contend: Command, table: str) -> None:
    """Overwrite the first page of a table, as disk damage would."""
    path = contend.home / "contend.db"
    with contextlib.closing(sqlite3.connect(path)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (size,) = opened.execute("PRAGMA page_size").fetchone()
        find = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = opened.execute(find, [table]).fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\x99" * size
    path.write_bytes(data)


def spoken(record: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the ids and texts of the transcript, which interruptions must not change."""
    return [(turn["id"], turn["text"]) for turn in record["turns"]]


def on_embedded(contend: Command, weights: Path) -> None:
    """Leave the command only the embedded model."""
    home = weights_path(KNOWN[SMALLEST], contend.home)
    home.parent.mkdir(parents=True)
    os.link(weights, home)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        contend.env.pop(name)
