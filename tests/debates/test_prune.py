"""Deleting debates and their files."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from contend.debates import tables
from contend.debates.prune import delete_debates, parse_age
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.graph.checkpoints.outages import unsaved_folder
from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.graph.state import DebateState
from contend.graph.values import Document, Image
from contend.retrieval.documents import corpus_id
from tests.cli.support import debaters
from tests.debates.test_repository import begin as begin_record
from tests.debates.test_repository import damage, state
from tests.debates.test_run import begin, run
from tests.support.model_server import ModelServer

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    with closing(open_repository()) as opened:
        yield opened


def rows_of(records: Repository, debate: str) -> dict[str, int]:
    """Count the rows of each table that belong to the debate."""
    with records._engine.connect() as connection:
        found = sa.inspect(connection)
        columns = {t: {c["name"] for c in found.get_columns(t)} for t in found.get_table_names()}
        keys = {t: {"thread_id", "debate_id"} & columns[t] or {"id"} & columns[t] for t in columns}
        return {
            table: connection.execute(
                sa.text(f"SELECT count(*) FROM {table} WHERE {key} = :id"),  # noqa: S608
                {"id": debate},
            ).scalar_one()
            for table, (key,) in ((t, k) for t, k in keys.items() if k)
        }


def age(records: Repository, debate: str) -> None:
    with tables.write(records._engine) as connection:
        old = tables.debates.update().where(tables.debates.c.id == debate)
        connection.execute(old.values(updated_at=LONG_AGO.isoformat(timespec="microseconds")))


def old(records: Repository, *, keep_rated: bool = False) -> list[str]:
    return records.untouched_since(datetime.now(UTC) - timedelta(days=90), keep_rated=keep_rated)


async def test_deletes_all_data_of_a_debate_and_nothing_of_others(
    records: Repository, server: ModelServer
) -> None:
    server.script = debaters()
    gone, kept = [await run(records, await begin(records)) for _ in range(2)]
    records.resolve(gone.id, "yes")
    (unsaved_folder(gone.id)).mkdir(parents=True)
    before = rows_of(records, kept.id)
    assert before["checkpoints"] > 1
    assert any(rows_of(records, gone.id).values())
    pruned = await asyncio.to_thread(delete_debates, records, [gone.id], compact=True)
    assert pruned.debates == (gone.id,)
    assert pruned.freed_bytes > 10_000
    assert not any(rows_of(records, gone.id).values())
    assert not unsaved_folder(gone.id).exists()
    assert rows_of(records, kept.id) == before
    assert records.find(kept.id) == kept


def test_skips_new_running_and_optionally_rated_debates(records: Repository) -> None:
    new, plain, rated, resolved, held = (begin_record(records) for _ in range(5))
    for each in (plain, rated, resolved, held):
        age(records, each)
    records.rate(rated, 8)
    records.resolve(resolved, "yes")
    records.acquire(held)
    assert set(old(records)) == {plain, rated, resolved}
    assert old(records, keep_rated=True) == [plain]
    assert delete_debates(records, [held, plain]).debates == (plain,)
    assert set(records.ids()) == {new, rated, resolved, held}


def test_the_database_is_compacted_only_on_request(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    compacted: list[str] = []
    monkeypatch.setattr(Repository, "compact", lambda _: compacted.append("once"))
    first, second = begin_record(records), begin_record(records)
    assert not delete_debates(records, [first]).is_compacted
    assert compacted == []
    delete_debates(records, [second], compact=True)
    assert compacted == ["once"]


def test_a_deleted_debate_cannot_be_run(records: Repository) -> None:
    debate = begin_record(records)
    delete_debates(records, [debate])
    with pytest.raises(BadInput, match="was deleted"):
        records.acquire(debate)


def test_damaged_debates_can_be_deleted(records: Repository) -> None:
    good, bad = begin_record(records), begin_record(records)
    damage(records, "state", "[]", bad)
    assert records.damaged() == [bad]
    assert delete_debates(records, [bad]).debates == (bad,)
    assert records.ids() == [good]


def _document(name: str) -> Document:
    return Document(id=name, name=name, sha256=name, pages=1, passages=1)


def _with_files(records: Repository, document: str, image: str) -> str:
    debate = str(uuid4())
    picture = Image(name=image, sha256=image * 64, media_type="image/png")
    given: DebateState = {**state(), "documents": [_document(document)], "images": [picture]}
    records.start(debate, "adversarial", given, {}, demonstration=False)
    for file in _files(document, image):
        file.mkdir(parents=True, exist_ok=True)
    return debate


def _files(document: str, image: str) -> list[Path]:
    corpus, home = corpus_id([_document(document)]), data_home()
    shown = home / "images" / (image * 64)
    return [home / "documents" / corpus, home / "index" / "documents" / corpus, shown]


def test_files_are_deleted_with_the_last_debate_that_uses_them(records: Repository) -> None:
    first, second = _with_files(records, "shared", "a"), _with_files(records, "shared", "b")
    delete_debates(records, [first])
    assert [each.exists() for each in _files("shared", "a")] == [True, True, False]
    assert all(each.exists() for each in _files("shared", "b"))
    delete_debates(records, [second])
    assert not any(each.exists() for each in _files("shared", "b"))


@pytest.mark.parametrize(
    ("text", "age"),
    [("90d", timedelta(days=90)), ("2W", timedelta(weeks=2)), ("36h", timedelta(hours=36))],
)
def test_parses_an_age(text: str, age: timedelta) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "0d", "90", "d", "-1d", "1.5d", "90days", "999999w"])
def test_refuses_an_invalid_age(text: str) -> None:
    with pytest.raises(BadInput, match="90d"):
        parse_age(text)
