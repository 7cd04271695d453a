"""Start, use and stop a cluster with `python -m deploy`."""

import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import pytest

from contend.service.address import DEBATES_PREFIX
from deploy.workers import answers, prepare_python
from tests.cli.support import Command
from tests.cluster.debating import IN_CLUSTER
from tests.cluster.test_serving import events_of
from tests.support.model_server import ModelServer

pytestmark = IN_CLUSTER

ROOT = Path(__file__).parents[2]


@pytest.fixture
def trial() -> Iterator[Path]:
    """Return a temporary folder that the PostgreSQL user can access."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


def test_make_cluster_starts_runs_a_debate_and_stops(
    aegra: None, models: ModelServer, tmp_path: Path, trial: Path
) -> None:
    env = {**Command(tmp_path / "home", models).env, "TMPDIR": str(trial)}
    env["PYTHON"] = str(prepare_python())
    env.pop("CONTEND_HOME")
    command = [sys.executable, "-m", "deploy"]
    recipe = subprocess.run(
        ["make", "-n", "--no-print-directory", "cluster"],  # this test may run below another make
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert recipe.stdout.strip().endswith("python -m deploy")
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout
            said = "".join(iter_until(process.stdout, "A trial: Ctrl-C"))
            assert said, process.communicate()
            (page,) = re.findall(r"The page: +(\S+)/\n", said)
            (workers,) = re.findall(r"Workers: +(\S+)\n", said)
            with httpx.Client(base_url=page, timeout=300) as client:
                assert events_of(client)[-1]["event"] == "complete"
                (listed,) = client.get(DEBATES_PREFIX).json()["debates"]
                assert listed["status"] == "done"
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
    assert (process.returncode, out) == (0, "\nStopped.\n"), err
    assert "Traceback" not in err
    assert not [url for url in (page, *workers.split(",")) if answers(url)]
    assert [*trial.iterdir()] == []


def iter_until(lines: Iterable[str], last: str) -> Iterator[str]:
    for line in lines:
        yield line
        if line.startswith(last):
            return
