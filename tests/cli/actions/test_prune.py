import sqlite3
import sys
from contextlib import closing
from io import StringIO

import pytest

from tests.cli.support import Command, change_database

AGED = "UPDATE debates SET updated_at = '2020-01-01T00:00:00.000000+00:00' WHERE id = ?"


@pytest.fixture
def two(contend: Command) -> tuple[str, str]:
    """Return the ids of an old debate and a new one."""
    first, second = (contend.ask_here("--json").json["id"] for _ in range(2))
    change_database(contend, AGED, first)
    return first, second


def listed(contend: Command) -> list[str]:
    return [each["id"] for each in contend.here("list", "--json").json]


def test_old_debates_are_deleted(contend: Command, two: tuple[str, str]) -> None:
    tried = contend.here("prune", "--older", "90d", "--dry-run")
    assert (tried.code, tried.out) == (0, f"{two[0]}\n")
    assert "1 debate would be deleted." in tried.err
    assert len(listed(contend)) == 2
    size = (contend.home / "contend.db").stat().st_size
    ended = contend.here("prune", "--older", "90d", "--yes", "--json")
    assert ended.code == 0, ended.err
    freed = size - (contend.home / "contend.db").stat().st_size
    assert ended.json == {"debates": [two[0]], "dry_run": False, "freed_bytes": freed}
    assert freed > 10_000
    assert listed(contend) == [two[1]]
    assert "No debate was deleted." in contend.here("prune", "--older", "90d", "--yes").err


def test_rated_debates_can_be_kept(contend: Command, two: tuple[str, str]) -> None:
    contend.here("rate", two[0], "8")
    assert contend.here("prune", "--older", "90d", "--keep-rated", "--yes").code == 0
    assert len(listed(contend)) == 2
    ended = contend.here("prune", "--older", "90d", "--yes")
    assert ended.err.startswith("Deleted 1 debate, 0.")
    assert listed(contend) == [two[1]]


def test_damaged_debates_are_deleted(contend: Command, two: tuple[str, str]) -> None:
    change_database(contend, "UPDATE debates SET settings = '' WHERE id = ?", two[1])
    assert contend.here("prune", "--damaged", "--yes").code == 0
    assert listed(contend) == [two[0]]
    assert contend.here("list").err == ""


def test_nothing_is_deleted_without_a_confirmation(contend: Command, two: tuple[str, str]) -> None:
    for arguments in (["--older", "90d"], [], ["--older", "soon", "--yes"]):
        ended = contend.here("prune", *arguments, stdin="y\n")
        assert (ended.code, ended.out) == (2, "")
    assert len(listed(contend)) == 2


@pytest.mark.parametrize(("reply", "left"), [("y", 1), ("", 2), ("no", 2)])
def test_confirmation_at_the_terminal_decides_the_deletion(
    reply: str, left: int, contend: Command, two: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = StringIO(f"{reply}\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    ended = contend.here("prune", "--older", "90d")
    assert ended.code == 0
    assert ended.err.startswith("Delete 1 debate for good? [y/N] ")
    assert len(listed(contend)) == left


def test_without_debates_nothing_is_created(contend: Command) -> None:
    assert contend.here("prune", "--older", "1d", "--yes").code == 0
    assert not contend.home.exists()


def test_stored_chunks_of_old_debates_are_deleted(contend: Command, two: tuple[str, str]) -> None:
    contend.here("prune", "--older", "9999w", "--dry-run")
    assert set(debates_with_chunks(contend)) == set(two)
    assert "No debate was deleted." in contend.here("prune", "--older", "9999w", "--yes").err
    assert debates_with_chunks(contend) == [two[1]]
    assert len(listed(contend)) == 2


def debates_with_chunks(contend: Command) -> list[str]:
    with closing(sqlite3.connect(contend.home / "contend.db")) as database:
        found = database.execute("SELECT DISTINCT debate_id FROM debate_events WHERE is_chunk")
        return [debate for (debate,) in found]
