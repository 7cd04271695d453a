"""Installs a system that is compared, and runs it in a process of its own."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import REPOSITORY

_FOLDER = REPOSITORY / ".cache" / "peers"
_SECONDS_TO_INSTALL, _SECONDS_TO_RUN = 480, 300
_NO_TELEMETRY = {
    "ANONYMIZED_TELEMETRY": "false",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_DISABLE_TRACKING": "true",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
}


class NotMeasured(Exception):
    """Raised with the reason why a system could not be measured."""


def prepare_python(name: str, packages: Sequence[str], folder: Path = _FOLDER) -> Path:
    """Return a Python with the packages; install them on first use."""
    if not packages:
        return Path(sys.executable)
    venv = folder / name
    python, ready, wanted = venv / "bin" / "python", venv / "installed", "\n".join(packages)
    if not ready.exists() or ready.read_text("utf-8") != wanted:
        print(f"Setting up, once: installing {', '.join(packages)} ...", file=sys.stderr)
        _install([sys.executable, "-m", "venv", str(venv)])
        _install([str(python), "-m", "pip", "install", "-q", *packages])
        ready.write_text(wanted, "utf-8")
    return python


def _install(command: list[str]) -> None:
    try:
        subprocess.run(
            command, check=True, capture_output=True, text=True, timeout=_SECONDS_TO_INSTALL
        )
    except subprocess.TimeoutExpired:
        raise NotMeasured(f"not installed within {_SECONDS_TO_INSTALL} s") from None
    except subprocess.CalledProcessError as failed:
        raise NotMeasured(f"not installed: {_last_line(failed.stderr)}") from None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["it gave no reason"])[-1]


class SystemProcess:
    """A process that has run one debate and runs more on request."""

    def __init__(self, python: Path, command: str, home: Path, environment: dict[str, str]) -> None:
        self.versions: dict[str, str]
        self._log = home / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(python), "-m", "benchmarks.peers", *command.split()],
                cwd=REPOSITORY,
                env=_NO_TELEMETRY | _own_folders(home) | environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            self.versions = self._answer()
        except NotMeasured:
            self.stop()
            raise

    def run(self, count: int) -> dict[str, float]:
        """Run that many debates at once, and return the seconds and CPU seconds they took."""
        if self._process.stdin is None:
            raise RuntimeError("the process has no stdin")
        try:
            self._process.stdin.write(f"{count}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise NotMeasured(self._reason()) from None
        took: dict[str, float] = self._answer()
        return took

    def stop(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._process.wait()

    def _answer(self) -> Any:
        timer = threading.Timer(_SECONDS_TO_RUN, self._process.kill)
        timer.start()
        line = self._process.stdout.readline() if self._process.stdout else ""
        timer.cancel()
        if not line:
            raise NotMeasured(self._reason())
        return json.loads(line)

    def _reason(self) -> str:
        return f"it ended: {_last_line(self._log.read_text('utf-8', errors='replace'))}"


def _own_folders(home: Path) -> dict[str, str]:
    """Return the environment of a user who has no settings, no keys and no proxy."""
    path = os.environ.get("PATH", os.defpath)
    return {
        "PATH": path,
        "HOME": str(home),
        "CONTEND_HOME": str(home),
        "CREWAI_STORAGE_DIR": str(home),
        "DATABASE_URL": "",
        "LLM_USER_PATH": str(home),
    }
