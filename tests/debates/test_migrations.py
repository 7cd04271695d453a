"""Creating and migrating the tables on both databases."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from contend.debates import migrations
from contend.debates.loading import Contents, check_records
from contend.debates.migrations import NEWEST, VERSION_TABLE, stored_revision
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.tables import metadata, open_engine
from contend.graph.checkpoints import location
from contend.graph.errors import BadInput
from tests.cli.support import ANSWER, Command, debaters
from tests.support.model_server import ModelServer
from tests.support.postgres import PostgresServer

BEFORE_ALEMBIC = Path(__file__).parent / "data" / "before_alembic.sql"
CHECKPOINTS = "checkpoint"  # the tables of LangGraph's savers, which look after them themselves


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Provide a database without tables."""
    if request.param == "sqlite":
        yield
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.create()
    monkeypatch.setenv("DATABASE_URL", url)
    yield
    server.drop(url)


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    engine = open_engine(location.database())
    yield engine
    engine.dispose()


def _tables(engine: sa.Engine) -> set[str]:
    names = sa.inspect(engine).get_table_names()
    return {name for name in names if CHECKPOINTS not in name}


def _revision(engine: sa.Engine) -> str | None:
    with engine.connect() as connection:
        return stored_revision(connection)


def test_a_new_database_gets_the_newest_tables(empty: None, engine: sa.Engine) -> None:
    assert check_records(location.database()) is None
    assert _tables(engine) == set()
    open_repository().close()
    assert _revision(engine) == NEWEST
    assert _tables(engine) == {*metadata.tables, VERSION_TABLE}
    assert check_records(location.database()) == Contents(0, ())


def test_migrations_produce_the_tables_the_code_expects(empty: None, engine: sa.Engine) -> None:
    open_repository().close()
    with engine.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_newest_constant_is_the_head_revision() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_current_head() == NEWEST


def test_parallel_first_starts_create_the_tables_once(empty: None, engine: sa.Engine) -> None:
    with ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(lambda _: open_repository(), range(8)))
    assert [records.newest(1) for records in opened] == [[]] * 8
    for records in opened:
        records.close()
    assert _revision(engine) == NEWEST


def test_a_failed_migration_is_rolled_back(
    empty: None, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no room left")

    with monkeypatch.context() as patch:
        patch.setattr(Operations, "create_index", fail)
        with pytest.raises(RuntimeError, match="no room left"):
            open_repository()
    assert _tables(engine) == set()
    open_repository().close()
    assert _revision(engine) == NEWEST


def test_refuses_a_database_of_a_later_release_unchanged(database: str, engine: sa.Engine) -> None:
    open_repository().close()
    with engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num='9999'"))  # noqa: S608
        connection.execute(sa.text("ALTER TABLE debates ADD COLUMN later TEXT"))
    with pytest.raises(BadInput, match="newer version"):
        open_repository()
    assert _revision(engine) == "9999"


def test_a_database_in_another_encoding_is_refused(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes at startup, not after a paid call returns an emoji."""
    url = postgres.create("template0 ENCODING 'LATIN1'")
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(BadInput, match="LATIN1; Contend needs UTF8"):
        open_repository()
    postgres.drop(url)


@pytest.fixture
def kept_before() -> Path:
    """Create the database file of the release before Alembic."""
    path = location.database_path()
    with closing(sqlite3.connect(path)) as file:
        file.executescript(BEFORE_ALEMBIC.read_text("utf-8"))
        file.execute("PRAGMA user_version=1")
    return path


def _rows(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the table contents without null columns."""
    with closing(sqlite3.connect(path)) as file:
        file.row_factory = sqlite3.Row
        kept = ("debates", "debate_turns", "checkpoints", "writes")
        found = {name: file.execute(f"SELECT * FROM {name}").fetchall() for name in kept}  # noqa: S608
    return {
        name: [{key: row[key] for key in row.keys() if row[key] is not None} for row in rows]  # noqa: SIM118
        for name, rows in found.items()
    }


def test_migrates_the_file_of_the_release_before_alembic(kept_before: Path) -> None:
    before = _rows(kept_before)
    assert [len(rows) for rows in before.values()] == [2, 8, 5, 19]
    with closing(Repository(kept_before)) as records:
        waiting, done = records.newest(9)
        assert (waiting.status, done.status) == ("paused", "done")
        assert [turn.phase for turn in records.find(waiting.id).turns] == ["propose", "critique"]
        assert records.find(done.id).as_json()["final_answer"] == ANSWER
    assert _rows(kept_before) == before


def test_resumes_a_debate_paused_before_alembic(kept_before: Path) -> None:
    with ModelServer(debaters(), models=["m"]) as models:
        contend = Command(kept_before.parent, models)
        (waiting,) = [
            each for each in contend.here("list", "--json").json if not each["auto_score"]
        ]
        contend.here("resume", waiting["id"])
        done = contend.here("resume", waiting["id"], "--json")
    assert (done.code, done.json["final_answer"]) == (0, ANSWER)
    # The first proposal and the first critique were paid before.
    assert len(models.calls) == len(done.json["turns"]) - 2


LOADED = """
import sys
from contend.cli.main import run
code = run(sys.argv[1:])
print(code, *(name for name in ("alembic", "psycopg", "aiosqlite") if name in sys.modules))
"""


@pytest.mark.parametrize(
    ("kind", "loaded"),
    [("sqlite", "0"), ("postgres", "0 psycopg")],
)
def test_does_not_import_alembic_if_the_database_is_current(
    kind: str, loaded: str, request: pytest.FixtureRequest, tmp_path: Path, server: ModelServer
) -> None:
    contend = Command(tmp_path / "home", server)
    if kind == "postgres":
        contend.env["DATABASE_URL"] = request.getfixturevalue("postgres_url")
    open_repository().close()
    ran = subprocess.run(
        [sys.executable, "-c", LOADED, "list"],
        env=contend.env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines()[-1] == loaded
