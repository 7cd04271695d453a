"""Finding and adopting server threads that have no debate record."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from langgraph.checkpoint.base import BaseCheckpointSaver

from contend.debates.adoption import adopt_threads
from contend.debates.history import graph_of
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.graph.checkpoints.saver import checkpointer
from tests.support.scripted import THREAD, full_cast, scripted_settings

OTHER = THREAD.replace("1", "2")
SERVER = {"graph_id": "adversarial", "langgraph_api_url": "http://elsewhere:8123"}


@pytest.fixture
async def saver(database: str) -> AsyncIterator[BaseCheckpointSaver[str]]:
    async with checkpointer() as opened:
        yield opened


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    opened = open_repository()
    yield opened
    opened.close()


async def run_elsewhere(
    saver: Any, thread: str = THREAD, given: Any = "Why?", about: Any = SERVER, **settings: Any
) -> None:
    config: Any = {"configurable": {"thread_id": thread, **about}}
    with full_cast().on_stage():
        await graph_of("adversarial", saver).ainvoke(
            {"question": given} if isinstance(given, str) else given,
            config,
            context=scripted_settings(**settings),
        )


def unread(records: Repository) -> list[str]:
    return [each.id for each in records.threads.unread()]


def test_a_database_without_checkpoints_has_no_threads(records: Repository) -> None:
    assert records.threads.unread() == []


async def test_a_thread_is_adopted_again_after_it_continues(
    records: Repository, saver: Any
) -> None:
    await run_elsewhere(saver, pause="before_synthesis")
    (found,) = records.threads.unread()
    assert (found.id, found.ran_on) == (THREAD, "LangGraph server http://elsewhere:8123")
    await adopt_threads(records, [found])
    assert unread(records) == []
    paused = records.find(THREAD)
    assert (paused.status, paused.ran_on) == ("paused", found.ran_on)
    await run_elsewhere(saver, given=None, pause="never")
    assert unread(records) == [THREAD]
    await adopt_threads(records, records.threads.unread())
    done = records.find(THREAD)
    assert (done.status, done.created_at) == ("done", paused.created_at)
    assert done.created_at < done.updated_at
    assert unread(records) == []


async def test_an_adopted_thread_cannot_set_its_server(
    records: Repository, saver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contend.graph.debate_graph.checked_edits", lambda edits, *_: [*edits])
    await run_elsewhere(saver, pause="before_synthesis")
    graph = graph_of("adversarial", saver)
    config: Any = {"configurable": {"thread_id": THREAD, **SERVER}}
    settings = scripted_settings().model_dump(mode="json")
    await graph.aupdate_state(config, {"settings": {**settings, "server": "http://elsewhere:1"}})
    await adopt_threads(records, records.threads.unread())
    assert records.find(THREAD).server is None


@pytest.mark.parametrize(
    ("about", "thread"),
    [({}, THREAD), ({"graph_id": "another_program"}, THREAD), (SERVER, "t" * 37)],
)
async def test_ignores_threads_that_are_not_debates_of_a_server(
    records: Repository, saver: Any, about: dict[str, str], thread: str
) -> None:
    await run_elsewhere(saver, thread=thread, about=about)
    assert unread(records) == []


async def test_query_count_does_not_grow_with_the_number_of_threads(
    records: Repository, saver: Any, request: pytest.FixtureRequest
) -> None:
    sent: list[str] = []
    event = (sa.Engine, "before_cursor_execute", lambda _, __, query, *___: sent.append(query))
    sa.event.listen(*event)
    request.addfinalizer(lambda: sa.event.remove(*event))
    counts = []
    for thread in (THREAD, OTHER, "another"):
        await run_elsewhere(saver, thread)
        sent.clear()
        records.threads.unread()
        counts.append(len(sent))
    assert counts[0] == counts[1] == counts[2] > 0


async def test_an_unreadable_thread_is_not_retried_until_it_changes(
    records: Repository,
    saver: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await run_elsewhere(saver, pause="before_synthesis")
    with monkeypatch.context() as patch:
        patch.setattr("contend.debates.adoption.read_history", broken_history)
        await adopt_threads(records, records.threads.unread())
    assert "cannot be read" in caplog.text
    assert unread(records) == []
    await run_elsewhere(saver, given=None, pause="never")
    assert unread(records) == [THREAD]


async def broken_history(*_: object) -> None:
    raise ValueError("damaged")


async def test_an_unreadable_thread_does_not_block_the_others(
    records: Repository, saver: Any, caplog: pytest.LogCaptureFixture
) -> None:
    for thread in (THREAD, OTHER):
        await run_elsewhere(saver, thread)
    broken, whole = records.threads.unread()
    await saver.adelete_thread(broken.id)
    await adopt_threads(records, [broken, whole])
    assert records.ids() == [whole.id]
    assert f"Thread {broken.id} cannot be read" in caplog.text


async def test_does_not_overwrite_a_debate_that_holds_a_lease(
    records: Repository, saver: Any
) -> None:
    await run_elsewhere(saver, pause="before_synthesis")
    await adopt_threads(records, records.threads.unread())
    lease = records.acquire(THREAD)
    await run_elsewhere(saver, given=None, pause="never")
    await adopt_threads(records, records.threads.unread())
    assert records.find(THREAD).status == "paused"
    lease.release()
    await adopt_threads(records, records.threads.unread())
    assert records.find(THREAD).status == "done"
