"""Make the fixtures of a release: python -m tests.releases.make release_0_2_shared

Each protocol is run once to its end, and once until it is killed amid its calls; so are a debate
with a budget, and a fork beside its parent. One more debate waits for the person in a seat.
"""

import gzip
import json
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from contend.cli.exit_codes import PAUSED
from tests.cli import support
from tests.cli.actions import test_ask_moderated
from tests.cli.support import Command
from tests.faults import (
    test_kill,
    test_kill_forecast,
    test_kill_forum,
    test_kill_refine,
    test_kill_tools,
)
from tests.releases.test_release_0_1 import MODELS, SCRIPTS
from tests.support.model_server import ModelServer, Reply, Request, Script

_TOOLS = ["ask", support.QUESTION, "-p", "refine", "--config", "table.yaml", "--quiet"]
# How each is asked, and in which call it is killed.
RUNS: dict[str, tuple[Sequence[str], int]] = {
    "adversarial": (test_kill.ASK, 5),
    "forum": (test_kill_forum.RUN, 8),
    "refine": (test_kill_refine.ASK, 6),
    "tools": (_TOOLS, 9),
    "moderated": ([*test_ask_moderated.ASK, *test_ask_moderated.SIDES, "--quiet"], 12),
    "forecast": (test_kill_forecast.RUN, 14),
}
# The debates that one call of `ask` starts.
STOPPED = RUNS | {"budget": ([*test_kill.ASK, "--budget", "60000"], 5)}
# The scripts of the debates of newer sets.
NEWER_SCRIPTS: dict[str, Script] = SCRIPTS | {
    "budget": SCRIPTS["adversarial"],
    "fork": support.debaters(),
    "person": support.debaters(),
}
# A fork after the first of two rounds, killed while the Skeptic speaks.
_FORK_CALLS, _FORK_KILLED_IN = 4, 2
# Long enough for everything that is finished to be in a checkpoint.
_SECONDS_TO_SETTLE = 3.0


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, (ask, killed_in) in STOPPED.items():
        script = NEWER_SCRIPTS[name]
        with tempfile.TemporaryDirectory() as place, ModelServer(script, MODELS) as models:
            (Path(place) / "table.yaml").write_text(yaml.safe_dump(test_kill_tools.TABLE))
            done, killed = (Command(Path(place) / part, models) for part in ("done", "killed"))
            record = done.here(*ask, "--json").json
            calls = len(models.calls)
            stopped = _kill(killed, models, script, ask, calls + killed_in)
            _write(folder, name, killed, stopped, calls - killed_in + 1, record)
    with tempfile.TemporaryDirectory() as place, ModelServer(support.debaters(), MODELS) as models:
        _make_fork(folder, Command(Path(place) / "home", models), models)
    with tempfile.TemporaryDirectory() as place, ModelServer(support.debaters(), MODELS) as models:
        waiting = Command(Path(place) / "home", models)
        paused = waiting.here(*support.ASK, "--set", "skeptic_model=human", "--json")
        assert paused.code == PAUSED
        _write(folder, "person", waiting, paused.json["id"], 2, None)


def _make_fork(folder: Path, contend: Command, models: ModelServer) -> None:
    parent = contend.here(*support.ASK, "--json").json
    fork = ["fork", parent["id"], "--at", "1", "--quiet"]
    last = len(models.calls) + _FORK_KILLED_IN
    stopped = _kill(contend, models, support.debaters(), fork, last)
    _write(folder, "fork", contend, stopped, _FORK_CALLS - _FORK_KILLED_IN + 1, parent)


def _write(folder: Path, name: str, contend: Command, debate: str, calls: int, record: Any) -> None:
    """Write the database and the expected records of the debate."""
    _pack(contend, folder / f"{name}.db.gz")
    shown = contend.here("show", debate, "--json").json
    shown |= {"output_dir": None} if "output_dir" in shown else {}
    said = sorted(support.spoken(record)) if record else None
    about = {"id": debate, "calls_to_come": calls, "shown": shown, "spoken": said}
    text = json.dumps(about, ensure_ascii=False, separators=(",", ":"))
    (folder / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _kill(
    contend: Command, models: ModelServer, script: Script, ask: Sequence[str], last: int
) -> str:
    """Answer all calls before the last one, then kill the command; return the debate's id."""

    def hold(request: Request) -> Reply:
        said = script(request)
        reply = said if isinstance(said, Reply) else Reply(said)
        return replace(reply, until=lambda: False) if request.index + 1 >= last else reply

    models.script = hold
    with contend.start(*ask) as process:
        models.wait_for_calls(last)
        time.sleep(_SECONDS_TO_SETTLE)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    debate, *_ = contend.here("list", "--json").json
    return str(debate["id"])


def _pack(contend: Command, file: Path) -> None:
    path = contend.home / "contend.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        # The name of this machine is nobody's business.
        opened.execute(
            "UPDATE debates SET lease_owner = NULL, lease_holder = NULL, lease_until = created_at"
            " WHERE lease_until IS NOT NULL"
        )
        opened.execute("VACUUM")
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    main(Path(__file__).parent / sys.argv[1])
