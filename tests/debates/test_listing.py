"""Listing debates: pages, filters and damaged records."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa

from contend.debates import tables
from contend.debates.listing import Filter
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from tests.debates.test_repository import NOT_JSON, WRONG_SHAPES, begin, damage, state


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    with closing(open_repository()) as opened:
        yield opened


def read_all(records: Repository, limit: int = 2, **wanted: Any) -> tuple[list[str], list[str]]:
    """Return the ids of all readable and of all damaged debates, page by page."""
    readable: list[str] = []
    damaged: list[str] = []
    before = None
    while True:
        page = records.search(Filter(before=before, **wanted), limit)
        assert len(page.debates) + len(page.damaged) <= limit
        readable += [each.id for each in page.debates]
        damaged += page.damaged
        before = page.following
        if before is None:
            return readable, damaged


def set_columns(records: Repository, debate: str, **values: Any) -> None:
    with tables.write(records._engine) as connection:
        row = tables.debates.update().where(tables.debates.c.id == debate)
        connection.execute(row.values(**values))


@pytest.mark.parametrize("value", [*WRONG_SHAPES, *NOT_JSON], ids=repr)
def test_paging_continues_past_damaged_debates(value: str | bytes, records: Repository) -> None:
    if value in NOT_JSON and records._engine.dialect.name == "postgresql":
        pytest.skip("PostgreSQL refuses it")
    ids = [begin(records) for _ in range(7)]
    broken = [ids[1], ids[4], ids[5]]
    for each in broken:
        damage(records, "state", value, each)
    good = [each for each in ids if each not in broken]
    assert read_all(records) == (good[::-1], broken[::-1])
    assert read_all(records, words="why") == (good[::-1], broken[::-1])
    assert read_all(records, words="nothing like it") == ([], [])


def test_filters_by_status_including_running_and_interrupted(records: Repository) -> None:
    done, failed, cut_off, held, ours = (begin(records) for _ in range(5))
    set_columns(records, done, status="done")
    set_columns(records, failed, status="failed")
    records.acquire(held)
    assert read_all(records, status="done") == ([done], [])
    assert read_all(records, status="failed") == ([failed], [])
    assert read_all(records, status="interrupted", ours=(ours,)) == ([cut_off], [])
    assert read_all(records, status="running", ours=(ours,)) == ([ours, held], [])
    assert read_all(records, status="interrupted") == ([ours, cut_off], [])
    assert read_all(records, status="paused") == ([], [])


def test_a_listing_reads_only_the_columns_it_shows(records: Repository) -> None:
    debate = begin(records, {"max_rounds": 3})
    more: Any = {**state(), "round": 2, "final_answer": "Because.", "finish": True}
    lease = records.acquire(debate)
    records.save(lease, "running", more, 5)
    statements: list[str] = []
    sa.event.listen(
        records._engine, "before_cursor_execute", lambda *given: statements.append(given[2])
    )
    (found,) = records.search(Filter(words="because"), 10).debates
    assert (found.state["round"], found.state["final_answer"]) == (2, "Because.")
    assert set(found.state) == {"seats", "round", "final_answer"}
    assert found.settings == {}
    assert not any("settings" in each for each in statements)
    lease.release()
