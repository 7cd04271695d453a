"""Measures the time of `contend --help`, and the time until a debate's first model call."""

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.harness import (
    QUESTION,
    REPOSITORY,
    ModelProcess,
    Result,
    link_embedding_weights,
    model_process,
    settings,
)

HELP_LIMIT = 0.5
FIRST_CALL_LIMIT = 2.5
_RUNS = 5
_COMMAND = [sys.executable, "-m", "contend"]


def results() -> list[Result]:
    """Return medians after one warm-up run."""
    with model_process("--tokens", "20") as server:
        link_embedding_weights(Path(os.environ["CONTEND_HOME"]))
        _first_call(server, templates=True)
        helped = median(_timed("--help") for _ in range(_RUNS))
        first = median(_first_call(server, templates=False) for _ in range(_RUNS))
        found = median(_first_call(server, templates=True) for _ in range(_RUNS))
    return [
        Result("contend --help", helped, HELP_LIMIT, "s"),
        Result("contend ask --no-templates to its first model call", first, FIRST_CALL_LIMIT, "s"),
        Result("the same with templates by the embedded model", found, unit="s"),
    ]


def _timed(*arguments: str) -> float:
    began = time.monotonic()
    done = subprocess.run(
        [*_COMMAND, *arguments], cwd=REPOSITORY, check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"contend {arguments[0]} failed: {done.stderr or done.stdout}")
    return time.monotonic() - began


def _first_call(server: ModelProcess, *, templates: bool) -> float:
    chosen = settings(min_rounds=1, templates=templates)
    options = [f"--set={name}={value}" for name, value in chosen.items()]
    began = time.monotonic()
    _timed("ask", QUESTION, "--json", *options)
    return server.take_calls()[0].started - began
