import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

import httpx
from filelock import FileLock

REPOSITORY = Path(__file__).parents[1]
_FOLDER = REPOSITORY / ".cluster"
_PINS = (REPOSITORY / "constraints.txt", REPOSITORY / "deploy" / "constraints.txt")
_SECONDS_TO_START, _SECONDS_TO_STOP = 240, 20
_MOST_PORTS = 5
_PORT_TAKEN = "address already in use"
_SHOW_PATH = "import sys; print(sys.executable); sys.exit(sys.version_info < (3, 12))"


class Missing(Exception):
    pass


class PortTaken(RuntimeError):
    pass


def find_redis() -> str:
    if found := shutil.which("redis-server"):
        return found
    raise Missing("Redis is missing: install redis-server, for example with apt-get.")


def find_python() -> str:
    names = [os.environ.get("PYTHON", ""), sys.executable, "python3.13", "python3.12"]
    for name in filter(shutil.which, names):
        # pyenv's commands work only if a version is selected.
        version = {"PYENV_VERSION": name.removeprefix("python")} if name in names[2:] else {}
        found = subprocess.run(
            [name, "-c", _SHOW_PATH],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, **version},
        )
        if not found.returncode:
            return found.stdout.strip()
    raise Missing("Python 3.12 or later is missing: Aegra needs it. Name it with PYTHON=...")


def prepare_python() -> Path:
    """Install Aegra into its own virtual environment unless it is there; return its Python."""
    _FOLDER.mkdir(exist_ok=True)
    python, pins = _FOLDER / "venv" / "bin" / "python", "".join(p.read_text() for p in _PINS)
    ready = _FOLDER / "ready"
    with FileLock(_FOLDER / "lock"):
        if not ready.exists() or ready.read_text("utf-8") != pins or not python.exists():
            print("Setting up, once: installing Aegra (a minute or two) ...", file=sys.stderr)
            subprocess.run([find_python(), "-m", "venv", _FOLDER / "venv"], check=True)
            limits = [word for path in _PINS for word in ("-c", str(path))]
            pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
            subprocess.run(
                [*pip, *limits, "-e", str(REPOSITORY), "aegra-api"],
                check=True,
                env={**os.environ, "PYTHONWARNINGS": "ignore"},
                stdout=sys.stderr,
            )
            ready.write_text(pins, "utf-8")
    return python


class Process:
    """A process with a log file; Ctrl-C in our terminal does not reach it."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=REPOSITORY,
                env=dict(environment),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until(self, is_ready: Callable[[], bool]) -> None:
        """Wait until it is ready; raise PortTaken if it ended because its port was taken."""
        deadline = time.monotonic() + _SECONDS_TO_START
        while not is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                tail = self.log.read_text("utf-8", errors="replace")[-3000:]
                kind = PortTaken if _PORT_TAKEN in tail.lower() else RuntimeError
                raise kind(f"{self._process.args!r} does not answer:\n{tail}")
            time.sleep(0.1)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self.kill()


class Workers:
    """Aegra workers that share a database, and a Redis server for them."""

    def __init__(
        self, home: Path, database_url: str, count: int, environment: Mapping[str, str]
    ) -> None:
        self.python, self._redis_server = prepare_python(), find_redis()
        self.home, self.database_url, self._count = home, database_url, count
        self.environment = environment
        self._redis_port = 0
        self._redis: Process | None = None
        self.running: dict[str, Process] = {}

    @property
    def addresses(self) -> list[str]:
        return list(self.running)

    def __enter__(self) -> Self:
        try:
            start_on_free_port(self._start_redis)
            for number in range(1, self._count + 1):
                # One after another, because the first one creates the tables.
                self.start_worker(number)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running.values():
            if process.is_running():
                process.stop()
        if self._redis:
            self._redis.stop()

    def _start_redis(self, port: int) -> None:
        self._redis_port = port
        self._redis = Process(
            [self._redis_server, *_redis_options(port, self.home)],
            self.home / "redis.log",
            self.environment,
        )
        self._redis.wait_until(lambda: _is_redis(port))

    def start_worker(self, number: int) -> None:
        start_on_free_port(partial(self._start_worker, number))

    def _start_worker(self, number: int, port: int) -> None:
        address = f"http://127.0.0.1:{port}"
        self.running[address] = Process(
            [str(self.python), "-m", "aegra_api.main"],
            self.home / f"worker{number}.log",
            {**self.environment, **self._settings(port, address)},
        )
        try:
            self.running[address].wait_until(lambda: answers(f"{address}/health"))
        except PortTaken:
            del self.running[address]
            raise

    def _settings(self, port: int, address: str) -> dict[str, str]:
        return {
            "AEGRA_CONFIG": str(REPOSITORY / "langgraph.json"),
            "DATABASE_URL": self.database_url,
            "HOST": "127.0.0.1",
            "PORT": str(port),
            "LANGGRAPH_API_URL": address,
            "LANGGRAPH_STRICT_MSGPACK": "true",
            "LOG_LEVEL": "WARNING",
            "REDIS_BROKER_ENABLED": "true",
            "REDIS_URL": f"redis://127.0.0.1:{self._redis_port}/0",
            "WORKER_DRAIN_TIMEOUT": "5",
            "LANGSMITH_TRACING": self.environment.get("LANGSMITH_TRACING", "false"),
        }


def _redis_options(port: int, home: Path) -> list[str]:
    kept = ["--save", "", "--appendonly", "no"]  # the runs themselves are in PostgreSQL
    return ["--bind", "127.0.0.1", "--port", str(port), "--dir", str(home), *kept]


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).is_success
    except httpx.TransportError:
        return False


def _is_redis(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False


def start_on_free_port(start: Callable[[int], None]) -> int:
    """Start something on a free port; try another if that port has just been taken."""
    for _ in range(_MOST_PORTS - 1):
        port = free_port()
        with suppress(PortTaken):
            start(port)
            return port
    start(port := free_port())
    return port


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
