"""Make the fixtures of a release: python -m tests.releases.make release_0_2

Each protocol is run once to its end, and once until it is killed amid its calls. One more debate
waits for the person in a seat.
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
from tests.support.model_server import ModelServer, Reply, Request

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
# Long enough for everything that is finished to be in a checkpoint.
_SECONDS_TO_SETTLE = 3.0


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, (ask, killed_in) in RUNS.items():
        with tempfile.TemporaryDirectory() as place, ModelServer(SCRIPTS[name], MODELS) as models:
            (Path(place) / "table.yaml").write_text(yaml.safe_dump(test_kill_tools.TABLE))
            done, killed = (Command(Path(place) / part, models) for part in ("done", "killed"))
            record = done.here(*ask, "--json").json
            record |= {"output_dir": None} if "output_dir" in record else {}
            calls = len(models.calls)
            stopped = _kill(killed, models, name, ask, calls + killed_in)
            about = {"id": stopped, "calls": calls, "paid": killed_in - 1, "record": record}
            text = json.dumps(about, ensure_ascii=False, indent=1)
            (folder / f"{name}.json").write_text(text, "utf-8")
            _pack(done, folder / f"{name}.done.db.gz")
            _pack(killed, folder / f"{name}.db.gz")
    with tempfile.TemporaryDirectory() as place, ModelServer(support.debaters(), MODELS) as models:
        waiting = Command(Path(place) / "home", models)
        assert waiting.here(*support.ASK, "--set", "skeptic_model=human").code == PAUSED
        _pack(waiting, folder / "person.db.gz")


def _kill(contend: Command, models: ModelServer, name: str, ask: Sequence[str], last: int) -> str:
    """Answer all calls before the last one, then kill the command; return the debate's id."""

    def hold(request: Request) -> Reply:
        said = SCRIPTS[name](request)
        reply = said if isinstance(said, Reply) else Reply(said)
        return replace(reply, until=lambda: False) if request.index + 1 >= last else reply

    models.script = hold
    with contend.start(*ask) as process:
        models.wait_for_calls(last)
        time.sleep(_SECONDS_TO_SETTLE)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    (debate,) = contend.here("list", "--json").json
    return str(debate["id"])


def _pack(contend: Command, file: Path) -> None:
    path = contend.home / "contend.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        # The name of this machine is nobody's business.
        opened.execute("UPDATE debates SET lease_owner = NULL, lease_holder = NULL")
        opened.execute("VACUUM")
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


if __name__ == "__main__":
    main(Path(__file__).parent / sys.argv[1])
