"""Runs a cluster on this machine for a trial: PostgreSQL, Redis, two workers and the page."""

import os
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

from deploy.postgres import PostgresServer
from deploy.workers import (
    Missing,
    Process,
    Workers,
    answers,
    find_python,
    find_redis,
    free_port,
)

_WORKERS = 2


def main() -> int:
    signal.signal(signal.SIGTERM, _stop)
    try:
        find_redis(), find_python()
        with (
            PostgresServer() as postgres,
            tempfile.TemporaryDirectory(prefix="contend-cluster-") as home,
            Workers(Path(home), postgres.create(), _WORKERS, _environment(home)) as workers,
        ):
            _serve(workers)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped.")
    return 0


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _environment(home: str) -> dict[str, str]:
    return {**os.environ, "CONTEND_HOME": os.environ.get("CONTEND_HOME", f"{home}/data")}


def _serve(workers: Workers) -> None:
    server, database = ",".join(workers.addresses), workers.database_url
    port = free_port()
    contend = Path(sys.executable).with_name("contend")
    page = Process(
        [str(contend), "serve", "--no-open", "--port", str(port), "--server", server],
        workers.home / "page.log",
        {**workers.environment, "DATABASE_URL": database},
    )
    try:
        page.wait_until(lambda: answers(f"http://127.0.0.1:{port}/healthz"))
        print(f"The page:  http://127.0.0.1:{port}/")
        print(f"Workers:   {server}")
        print(f'Terminal:  contend ask "..." --server {server}')
        print(f"Database:  {database}")
        print("A trial: Ctrl-C stops it and deletes its debates.", flush=True)
        signal.pause()
    finally:
        page.stop()


if __name__ == "__main__":
    sys.exit(main())
