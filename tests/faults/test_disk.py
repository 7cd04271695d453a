"""Disk errors at different writes cause no damage, loss or repeated call."""

import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import pytest

from contend.debates.run import open_repository
from tests.cli.support import QUESTION, Command, debaters, spoken
from tests.faults.test_database import _paid_twice
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ONE_ROUND = ["--set", "min_rounds=1", "--set", "max_rounds=1", "--set", "retry_wait=0.01"]
ASK = ["ask", QUESTION, "-m", "openai:m", *ONE_ROUND, "--json"]

Fault = Callable[[int], AbstractContextManager[None]]
"""A context manager that limits what the disk accepts."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contend.graph.checkpoints.outages.PATIENCE", 0)


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m"]) as running:
        yield running


@contextmanager
def file_size(kilobytes: int) -> Iterator[None]:
    """Cause real I/O errors by limiting the file size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def pages(count: int) -> Iterator[None]:
    """Simulate a full disk by limiting the SQLite pages."""

    class Small(sqlite3.Connection):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self.execute(f"PRAGMA max_page_count={count}")

    with _connections(Small):
        yield


@contextmanager
def commits(count: int) -> Iterator[None]:
    """Fail every flush after this many transactions."""
    left = iter(range(count))

    class Unflushed(sqlite3.Connection):
        def _fail(self) -> None:
            if next(left, None) is None:
                self.rollback()
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
                raise error

        def commit(self) -> None:
            if self.in_transaction:
                self._fail()
            super().commit()

        def __exit__(self, kind: Any, *error: Any) -> Literal[False]:
            if kind is None:
                self._fail()
            return super().__exit__(kind, *error)

    with _connections(Unflushed):
        yield


@contextmanager
def _connections(kind: type[sqlite3.Connection]) -> Iterator[None]:
    with ExitStack() as stack:
        for name in ("sqlite3.connect", "sqlite3.dbapi2.connect"):
            stack.enter_context(patch(name, partial(sqlite3.connect, factory=kind)))
        yield


def _assert_intact(home: Path) -> None:
    with closing(sqlite3.connect(home / "contend.db")) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert opened.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.parametrize(
    ("fault", "limits"),
    [
        (file_size, range(56, 640, 48)),
        (pages, range(20, 68, 4)),
        (commits, range(1, 82, 6)),
    ],
    ids=["file_size", "pages", "commits"],
)
def test_a_debate_recovers_from_disk_errors(
    fault: Fault, limits: range, tmp_path: Path, models: ModelServer
) -> None:
    calm = Command(tmp_path / "calm", models).here(*ASK).json
    endings = set()
    for limit in limits:
        contend = Command(tmp_path / str(limit), models)
        _make_tables(contend)
        before = len(models.calls)
        with fault(limit):
            ended = contend.here(*ASK)
        endings.add(ended.code)
        assert ended.code in (0, 2, 3), ended.err
        _assert_intact(contend.home)
        for debate in contend.here("list", "--json").json:
            if debate["status"] != "done":
                ended = contend.here("resume", debate["id"], "--json")
            shown = contend.here("show", debate["id"], "--json").json
            assert (ended.code, shown["status"]) == (0, "done"), ended.err
            assert spoken(shown) == spoken(calm)
            assert _paid_twice(models.calls[before:]) == []
            _assert_intact(contend.home)
        assert not list((contend.home / "unsaved").rglob("*.writes"))
    assert endings >= {0, 3}  # the faults fell where the debate writes, and beyond


def _make_tables(contend: Command) -> None:
    """Create the database first, so that the faults occur during the debate."""
    with patch.dict("os.environ", contend.env, clear=True):
        open_repository().close()
