"""Measures the start of commands, and the time until a debate's first model call."""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
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

ASK_LIMIT = 1.3
HELP_LIMIT = 0.15
READ_LIMIT = 0.4
_RUNS = 5
_CONTEND = ["-m", "contend"]
_LANGGRAPH = ["-c", "import langgraph.graph"]


def results() -> list[Result]:
    with model_process("--tokens", "20") as server:
        link_embedding_weights(Path(os.environ["CONTEND_HOME"]))
        _first_call(server, templates=True)
        (debate,) = json.loads(_output(*_CONTEND, "list", "--json"))
        shown = ["show", debate["id"]]
        times: dict[str, list[float]] = defaultdict(list)
        for _ in range(_RUNS):
            times["langgraph"].append(_timed(*_LANGGRAPH))
            for command in (["--help"], ["list"], shown):
                times[command[0]].append(_timed(*_CONTEND, *command))
            for templates in (False, True):
                times[f"ask {templates}"].append(_first_call(server, templates=templates))
    seconds = {what: median(each) for what, each in times.items()}
    langgraph = seconds["langgraph"]
    plain, found = (seconds[f"ask {templates}"] for templates in (False, True))
    note = f"{plain:.2f} s; importing langgraph.graph {langgraph:.2f} s"
    what = "contend ask --no-templates to its first model call"
    return [
        Result(f"{what} over importing langgraph.graph", plain / langgraph, ASK_LIMIT, "x", note),
        Result("the same with templates", found / langgraph, note=f"{found:.2f} s"),
        Result("contend --help", seconds["--help"], HELP_LIMIT, "s"),
        Result("contend list", seconds["list"], READ_LIMIT, "s"),
        Result("contend show", seconds["show"], READ_LIMIT, "s"),
    ]


def _timed(*arguments: str) -> float:
    began = time.monotonic()
    _output(*arguments)
    return time.monotonic() - began


def _output(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} failed: {done.stderr or done.stdout}")
    return done.stdout


def _first_call(server: ModelProcess, *, templates: bool) -> float:
    chosen = settings(min_rounds=1, templates=templates)
    options = [f"--set={name}={value}" for name, value in chosen.items()]
    began = time.monotonic()
    _timed(*_CONTEND, "ask", QUESTION, "--json", *options)
    return server.take_calls()[0].started - began
