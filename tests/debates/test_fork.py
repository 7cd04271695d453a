"""Forks of a debate that runs on a server with our database."""

from collections import deque
from collections.abc import Iterator

import pytest

from contend.debates.fork import FollowUp, ForkPoint, fork_debate
from contend.debates.record import SERVER, StoredDebate
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.threads import ThreadRunner
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import BadInput
from contend.graph.runners import set_runner
from tests.support.langgraph_server import LangGraphServer
from tests.support.scripted import THREAD, full_cast, play


@pytest.fixture
def records() -> Iterator[Repository]:
    opened = open_repository()
    set_runner(ThreadRunner(lambda: opened, "a LangGraph server"))
    yield opened
    set_runner(None)
    opened.close()


@pytest.fixture
def server() -> Iterator[LangGraphServer]:
    with LangGraphServer() as running:
        running.threads.add(THREAD)
        yield running


@pytest.fixture
async def parent(records: Repository, server: LangGraphServer) -> StoredDebate:
    async with checkpointer() as saver:
        await play(full_cast(), saver=saver)
    about = {**records.find(THREAD).settings, SERVER: server.url}
    records.change_settings(THREAD, about)
    return records.find(THREAD)


@pytest.mark.parametrize("where", [ForkPoint(1), FollowUp()])
async def test_a_fork_runs_on_the_server_of_its_parent(
    where: ForkPoint | FollowUp, records: Repository, server: LangGraphServer, parent: StoredDebate
) -> None:
    fork = await fork_debate(records, parent, where, {}, "And the cost?", fetch=False)
    assert (fork.server, fork.ran_on) == (server.url, parent.ran_on)
    assert server.threads == {THREAD, fork.id}


async def test_a_fork_refused_by_its_server_is_not_stored(
    records: Repository, server: LangGraphServer, parent: StoredDebate
) -> None:
    server.refusals["threads"] = deque([503])
    with pytest.raises(BadInput, match="cannot answer now"):
        await fork_debate(records, parent, ForkPoint(1), {}, fetch=False)
    assert records.ids() == [THREAD]
    assert server.threads == {THREAD}
