"""PostgreSQL: its address, the connection pool, the saver, and hidden passwords."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg_pool import PoolTimeout

from contend.graph.checkpoints import postgres as module
from contend.graph.checkpoints.location import database
from contend.graph.checkpoints.postgres import read_address
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import BadInput, DatabaseUnavailable
from contend.graph.settings import data_home
from contend.graph.values import Usage
from tests.support.postgres import PASSWORD, PostgresServer
from tests.support.scripted import THREAD, full_cast, play

CONFIG: Any = {"configurable": {"thread_id": "a/../thread", "checkpoint_ns": ""}}


@pytest.fixture
def empty_url(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    url = postgres.create()
    monkeypatch.setenv("DATABASE_URL", url)
    yield url
    postgres.drop(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@db.example.org/debates", "'debates' on db.example.org"),
        ("postgres://ann:secret@db.example.org:6543/debates", "'debates' on db.example.org:6543"),
        ("postgresql://ann:s%40cret%2F@one,two/debates", "'debates' on one,two"),
        ("postgresql://one:1,two:2/debates", "'debates' on one:1,two:2"),
        ("postgresql:///debates", "'debates' on this machine"),
        ("postgresql://ann:secret@db.example.org", "'ann' on db.example.org"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    where = read_address(url)
    assert str(where) == f"PostgreSQL database {shown}"
    assert "secret" not in repr(where)
    assert "cret/" not in repr(where)


def test_address_overrides_our_defaults() -> None:
    where = read_address("postgresql://h/d?connect_timeout=3&application_name=mine")
    assert where.parts()["connect_timeout"] == "3"
    assert where.parts()["application_name"] == "mine"
    assert where.parts()["client_encoding"] == "utf8"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hush@hush@db.example.org/debates",
        "postgresql://ann:hu/hush@db.example.org/debates",
        "postgresql://ann:hush%zz@db.example.org/debates",
        "postgresql://ann:hush hush@db.example.org/debates",
        "mysql://ann:hush@db.example.org/debates",
        "sqlite:///hush.db",
        "hush",
    ],
)
def test_invalid_address_is_refused_without_repeating_it(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(BadInput, match="DATABASE_URL") as refused:
        database()
    assert "hush" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("blank", ["", "  "])
def test_empty_address_selects_the_sqlite_file(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", blank)
    assert database() == data_home() / "contend.db"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((PASSWORD, "wrong-0123456789"), "password authentication failed"),
        (("/postgres", "/nowhere"), 'database "nowhere" does not exist'),
        (("contend:", "nobody:"), "password authentication failed"),
    ],
)
async def test_refused_connection_is_reported_with_its_reason(
    change: tuple[str, str], why: str, postgres: PostgresServer
) -> None:
    where = read_address(postgres.url().replace(*change))
    with pytest.raises(DatabaseUnavailable) as refused, where.outages_reported():
        await psycopg.AsyncConnection.connect(where.conninfo)
    assert why in str(refused.value)
    assert f"on 127.0.0.1:{postgres.port} cannot be used" in str(refused.value)
    assert PASSWORD not in str(refused.value)
    assert "wrong-0123456789" not in str(refused.value)


async def test_invalid_statement_is_not_an_outage(postgres_url: str) -> None:
    where = read_address(postgres_url)
    async with await psycopg.AsyncConnection.connect(where.conninfo) as connection:
        with pytest.raises(psycopg.ProgrammingError), where.outages_reported():
            await connection.execute("SELECT nonsense")


def test_concurrent_first_starts_create_the_checkpoint_tables(empty_url: str) -> None:
    async def start() -> Any:
        async with checkpointer() as saver:
            return await saver.aget_tuple(CONFIG)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda _: asyncio.run(start()), range(6))) == [None] * 6
    with psycopg.connect(empty_url) as connection:
        found = connection.execute("SELECT count(*), max(v) FROM checkpoint_migrations").fetchone()
        broken = "SELECT count(*) FROM pg_index WHERE NOT indisvalid"
        assert connection.execute(broken).fetchone() == (0,)
    assert found == (len(AsyncPostgresSaver.MIGRATIONS), len(AsyncPostgresSaver.MIGRATIONS) - 1)


async def test_debates_have_their_own_savers_on_a_shared_pool(postgres_url: str) -> None:
    async with checkpointer() as first:
        async with checkpointer() as second:
            assert isinstance(first, AsyncPostgresSaver)
            assert isinstance(second, AsyncPostgresSaver)
            assert first.conn is second.conn
            assert first.lock is not second.lock
        assert await first.aget_tuple(CONFIG) is None
    assert first.conn.closed
    assert not module._pools[asyncio.get_running_loop()]
    async with checkpointer() as third:
        assert await third.aget_tuple(CONFIG) is None


async def test_unsaved_results_are_private_and_saved_on_the_next_start(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        paid = [("turns", Usage(input_tokens=7)), ("round", 2)]
        with monkeypatch.context() as patch:
            patch.setattr(AsyncPostgresSaver, "aput_writes", _gone)
            await saver.aput_writes(at, paid, "task", "path")
        (file,) = [each for each in (data_home() / "unsaved").rglob("*") if each.is_file()]
        assert file.parent.parent == data_home() / "unsaved"
        assert _modes(file, file.parent, file.parent.parent) == [0o600, 0o700, 0o700]
    async with checkpointer() as saver:
        found = await saver.aget_tuple(CONFIG)
    assert found
    assert [(channel, value) for _, channel, value in found.pending_writes or []] == paid
    assert not file.exists()


async def test_concurrent_writes_during_an_outage_make_one_attempt(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def slowly_gone(*_: Any) -> None:
        asked.append("asked")
        await asyncio.sleep(0.1)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        with monkeypatch.context() as patch:
            patch.setattr(AsyncPostgresSaver, "aput_writes", slowly_gone)
            finished = (saver.aput_writes(at, [("round", n)], f"task{n}") for n in range(5))
            await asyncio.gather(*finished)
        assert len(asked) == 1
        found = await saver.aget_tuple(CONFIG)
    assert found
    assert sorted(value for _, _, value in found.pending_writes or []) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("aget_tuple", lambda saver: saver.aget_tuple(CONFIG)),
        (
            "aget_delta_channel_history",
            lambda saver: saver.aget_delta_channel_history(config=CONFIG, channels=["turns"]),
        ),
    ],
)
async def test_reads_are_retried_after_a_brief_outage(
    name: str, ask: Any, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([_gone, getattr(AsyncPostgresSaver, name)])

    async def gone_once(*given: Any, **named: Any) -> Any:
        return await next(answers)(*given, **named)

    monkeypatch.setattr("contend.graph.checkpoints.outages._PAUSE", 0)
    async with checkpointer() as saver:
        calm = await ask(saver)
        monkeypatch.setattr(AsyncPostgresSaver, name, gone_once)
        assert await ask(saver) == calm
    assert next(answers, None) is None


async def test_a_checkpoint_is_not_saved_before_the_writes_it_stands_on(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contend.graph.checkpoints.outages.PATIENCE", 0)
    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        with monkeypatch.context() as patch:
            patch.setattr(AsyncPostgresSaver, "aput_writes", _gone)
            await saver.aput_writes(at, [("round", 2)], "task")
            with pytest.raises(DatabaseUnavailable):
                await saver.aput(at, empty_checkpoint(), {"step": 2}, {})
        newest = await saver.aget_tuple(CONFIG)
    assert newest
    assert newest.config == at
    assert [value for _, _, value in newest.pending_writes or []] == [2]


async def test_an_outage_after_a_checkpoint_is_saved_does_not_fail_the_step(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The undeleted results of the finished step are never read again."""
    save = AsyncPostgresSaver.aput

    async def save_and_go(saver: Any, *given: Any) -> Any:
        saved = await save(saver, *given)
        broken.setattr(AsyncPostgresSaver, "_cursor", _no_cursor)
        return saved

    async with checkpointer() as saver:
        at = await saver.aput(CONFIG, empty_checkpoint(), {"step": 1}, {})
        with monkeypatch.context() as broken:
            broken.setattr(AsyncPostgresSaver, "aput", save_and_go)
            step: Any = {"source": "loop", "step": 2}
            saved = await saver.aput(at, empty_checkpoint(), step, {})
        newest = await saver.aget_tuple(CONFIG)
    assert newest
    assert newest.config == saved


async def test_question_with_invalid_characters_is_cleaned_and_stored(
    postgres_url: str,
) -> None:
    """A client of `langgraph dev` can send such a question."""
    async with checkpointer() as saver:
        played = await play(full_cast(), "nul \x00, half a pair \ud83d?", saver=saver, max_rounds=3)
        found = await saver.aget_tuple({"configurable": {"thread_id": THREAD}})
    assert played.state["question"] == "nul , half a pair ?"
    assert found
    assert found.checkpoint["channel_values"]["question"] == "nul , half a pair ?"


@asynccontextmanager
async def _no_cursor(_: AsyncPostgresSaver) -> AsyncIterator[None]:
    raise PoolTimeout("couldn't get a connection after 3.00 sec")
    yield


async def _gone(*_: Any, **__: Any) -> None:
    raise psycopg.OperationalError("server closed the connection unexpectedly")


def _modes(*paths: Path) -> list[int]:
    return [path.stat().st_mode & 0o777 for path in paths]
