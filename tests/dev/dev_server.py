"""Run `langgraph dev` as a separate process outside the repository folder."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.support.model_server import ModelServer

REPOSITORY = Path(__file__).parents[2]
_SECONDS_TO_START = 240
_SECONDS_TO_STOP = 20


class DevServer:
    """Run the repository's langgraph.json with all data under `home`."""

    def __init__(
        self,
        home: Path,
        models: ModelServer,
        database_url: str = "",
        host: str = "127.0.0.1",
        **environment: str,
    ) -> None:
        self.host = host
        self.home, self.models, self.database_url = home, models, database_url
        self.more = environment
        self.config = REPOSITORY / "langgraph.json"
        self.log = home / "server.log"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> LangGraphClient:
        token = self.more.get("CONTEND_SERVICE_TOKEN")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return get_client(url=self.url, api_key=None, headers=headers, timeout=60)

    def start(self) -> Self:
        # The paths of the graphs are relative to the working folder, where the server keeps files.
        if not (self.home / "graph").exists():
            (self.home / "graph").symlink_to(REPOSITORY / "graph")
        command = [str(Path(sys.executable).with_name("langgraph")), "dev", *self._options()]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.home, env=self._environment(), stdout=log, stderr=log
            )
        deadline = time.monotonic() + _SECONDS_TO_START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"langgraph dev did not start:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.1)
        return self

    def kill(self) -> None:
        """Kill the server."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop the server as Ctrl-C would, or kill it after a timeout."""
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(_SECONDS_TO_STOP)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/ok", timeout=2).is_success
        except httpx.TransportError:
            return False

    def _options(self) -> list[str]:
        place = ["--config", str(self.config), "--host", self.host]
        quiet = ["--no-browser", "--no-reload", "--n-jobs-per-worker", "8"]
        return [*place, "--port", str(self.port), *quiet]

    def _environment(self) -> dict[str, str]:
        """Return a minimal environment without the user's keys or tracing settings."""
        inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return inherited | {
            "CONTEND_HOME": str(self.home / "contend"),
            "OPENAI_BASE_URL": self.models.openai_url,
            "DATABASE_URL": self.database_url,
            "OLLAMA_HOST": self.models.url,
            "OPENAI_API_KEY": "sk-for-a-local-test-server",
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGSMITH_TRACING": "false",
            **self.more,
        }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
