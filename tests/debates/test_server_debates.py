"""Records of debates that start on a LangGraph server."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from pydantic import TypeAdapter

from contend.debates import server_debates
from contend.debates.adoption import adopt
from contend.debates.history import node_steps
from contend.debates.leases import LEASE, written
from contend.debates.prepare import draft_debate
from contend.debates.prune import delete_debates
from contend.debates.record import StoredDebate
from contend.debates.repository import DebateExists, Repository, TaskAccepted
from contend.debates.run import open_repository
from contend.debates.server_debates import begin_on_server, move_to_server, take_opening
from contend.debates.servers import ServerAddress, ServerConnection
from contend.graph.errors import BadInput
from contend.graph.record import Status
from contend.graph.state import DebateState
from tests.support.langgraph_server import LangGraphServer, Part
from tests.support.scripted import scripted_settings

ADDRESS = ServerAddress("http://a:1,http://b:1")
SETTINGS = scripted_settings()
TASK = "a-task"


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    opened = open_repository()
    yield opened
    opened.close()


@pytest.fixture(params=["own", "shared"])
def server(
    request: pytest.FixtureRequest, records: Repository, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Simulate a server with its own or our database; return its threads."""
    threads: list[str] = []

    async def prepared(_: Any, __: Any, ___: Any, debate_id: str) -> tuple[DebateState, list[Any]]:
        threads.append(debate_id)
        if request.param == "shared":
            await asyncio.to_thread(adopt, records, "adversarial", debate_id, state(), "a worker")
        return state(), []

    async def checked(*_: object) -> None:
        pass

    async def forget(_: object, debate_id: str) -> None:
        threads.remove(debate_id)

    monkeypatch.setattr(server_debates, "_prepared", prepared)
    monkeypatch.setattr(server_debates, "_delete_thread", forget)
    monkeypatch.setattr(ServerConnection, "check", checked)
    return threads


def state() -> DebateState:
    about = SETTINGS.model_dump(mode="json")
    about["from_cassette"] = True
    return {
        "question": "Why?",
        "protocol": "adversarial",
        "settings": about,
        "seats": SETTINGS.build_seats(),
    }


async def begin(records: Repository, debate_id: str, task_id: str | None = None) -> Any:
    draft = draft_debate("Why?", SETTINGS)
    return await begin_on_server(records, ADDRESS, draft, None, debate_id, task_id)


async def test_a_debate_on_a_server_stores_the_address(
    records: Repository, server: list[str]
) -> None:
    debate = await begin(records, str(uuid4()), TASK)
    assert debate.server == str(ADDRESS)
    assert debate.ran_on == f"LangGraph server {ADDRESS}"
    assert records.debate_of(TASK) == debate.id
    assert not debate.is_from_cassette  # what only our own records say is not the server's to say


async def test_a_task_accepted_by_another_service_starts_no_second_debate(
    records: Repository, server: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_debates, "_refuse_known", lambda *_: None)  # both were in time
    first = await begin(records, str(uuid4()), TASK)
    with pytest.raises(TaskAccepted):
        await begin(records, str(uuid4()), TASK)
    assert records.ids() == server == [first.id]
    assert records.debate_of(TASK) == first.id


@pytest.fixture
def running() -> Iterator[LangGraphServer]:
    with LangGraphServer() as running:
        running.state = {"values": {}}
        running.runs = [{"run_id": "run0", "status": "running"}]
        yield running


def begun_on(address: str, records: Repository) -> StoredDebate:
    given = ServerAddress(address), "adversarial", str(uuid4()), state(), None
    return server_debates._store_record(records, *given)


def test_a_deleted_debate_is_stopped_and_deleted_on_its_server(
    records: Repository, running: LangGraphServer
) -> None:
    debate = begun_on(running.url, records)
    pruned = delete_debates(records, [debate.id])
    assert (pruned.debates, pruned.problems) == ((debate.id,), ())
    assert running.is_cancelled
    assert running.state is None
    assert records.ids() == []


def test_a_debate_missing_on_its_server_can_be_deleted(
    records: Repository, running: LangGraphServer
) -> None:
    running.state = None
    debate = begun_on(running.url, records)
    assert delete_debates(records, [debate.id]).debates == (debate.id,)


def test_a_debate_is_kept_if_its_server_fails_to_delete_it(
    records: Repository, running: LangGraphServer
) -> None:
    refused, away = begun_on(running.url, records), begun_on("http://127.0.0.1:9", records)
    running.refusals["thread"] = deque([401])
    pruned = delete_debates(records, [refused.id, away.id])
    assert pruned.debates == ()
    first, second = pruned.problems
    assert first.startswith(f"Debate {refused.id[:8]} was not deleted: The server {running.url}")
    assert "cannot be reached" in second
    assert {*records.ids()} == {refused.id, away.id}


@pytest.mark.parametrize("status", ["done", "paused"])
def test_a_debate_on_an_unreachable_server_can_be_deleted_locally(
    status: Status, records: Repository
) -> None:
    debate = begun_on("http://127.0.0.1:9", records)
    lease = records.acquire(debate.id)
    records.save(lease, status, state(), 0)
    lease.release()
    pruned = delete_debates(records, [debate.id], here=status == "paused")
    assert pruned.debates == (debate.id,)
    (said,) = pruned.remaining
    assert said.startswith(f"Debate {debate.id[:8]} remains on its server: The server http://127")
    assert records.ids() == []


async def test_a_debate_can_be_moved_to_a_new_server_address(
    records: Repository, running: LangGraphServer
) -> None:
    debate = begun_on("http://127.0.0.1:9", records)
    moved = await move_to_server(records, debate, ServerAddress(running.url))
    assert moved.server == records.find(debate.id).server == running.url
    running.state = None
    with pytest.raises(BadInput, match="does not have debate"):
        await move_to_server(records, debate, ServerAddress(running.url))
    own = debate.model_copy(update={"settings": {}})
    with pytest.raises(BadInput, match="runs on this machine"):
        await move_to_server(records, own, ServerAddress(running.url))


async def test_error_names_the_server_that_stores_the_steps(records: Repository) -> None:
    debate = begun_on("http://127.0.0.1:9", records)
    with pytest.raises(BadInput, match=r"on its server, http://127\.0\.0\.1:9"):
        await node_steps(records, debate)


def prepares(server: LangGraphServer, *said: Part) -> None:
    """Make the server run the first step and stop."""

    def stream(_: str | None) -> Iterator[Part]:
        server.end_runs("interrupted")
        values = TypeAdapter(Any).dump_python({**state(), "turns": []}, mode="json")
        server.state = {"values": values, "next": ["propose"]}
        yield from said

    server.runs, server.state = [], None
    server.streams.append(stream)


async def begin_there(records: Repository, server: LangGraphServer, debate_id: str) -> StoredDebate:
    address, draft = ServerAddress(server.url), draft_debate("Why?", SETTINGS)
    return await begin_on_server(records, address, draft, None, debate_id, TASK)


async def test_events_from_the_first_step_on_the_server_come_first(
    records: Repository, running: LangGraphServer
) -> None:
    opened = {"type": "debate_event", "event": "round_start", "round": 1, "content": ""}
    prepares(running, Part("1", "custom", {**opened, "metadata": {}}))
    debate = await begin_there(records, running, str(uuid4()))
    assert await take_opening(records, debate, state()) == [{**opened, "metadata": {}}]
    assert "opening" not in records.find(debate.id).settings


async def test_a_start_whose_response_was_lost_can_be_retried(
    records: Repository, running: LangGraphServer
) -> None:
    prepares(running)
    running.lost_threads, debate_id = 1, str(uuid4())
    with pytest.raises(BadInput, match="cannot be reached"):
        await begin_there(records, running, debate_id)
    assert running.threads == set()
    assert (await begin_there(records, running, debate_id)).server == running.url


async def test_replaces_a_thread_left_by_a_killed_client(
    records: Repository, running: LangGraphServer
) -> None:
    prepares(running)
    debate_id = str(uuid4())
    running.threads.add(debate_id)
    running.state = {"values": {"question": "What else?"}, "next": ["propose"]}
    assert (await begin_there(records, running, debate_id)).question == "Why?"
    assert running.threads == {debate_id}


@pytest.mark.parametrize("used", ["run", "turns"])
async def test_refuses_a_thread_that_is_in_use(
    used: str, records: Repository, running: LangGraphServer
) -> None:
    prepares(running)
    debate_id = str(uuid4())
    running.threads.add(debate_id)
    turn = {"id": "t1", "round": 1, "seat": "proposer", "role": "proposer", "phase": "propose"}
    now = datetime.now(UTC).isoformat()
    turn |= {"model": "m", "text": "Words.", "started_at": now, "ended_at": now}
    running.state = {"values": {"turns": [turn] if used == "turns" else []}}
    running.runs = [{"run_id": "run0", "status": "running"}] if used == "run" else []
    with pytest.raises(DebateExists):
        await begin_there(records, running, debate_id)
    assert running.threads == {debate_id}
    assert running.state


@pytest.mark.parametrize("is_new", [True, False])
async def test_replaces_an_old_record_without_a_client(
    is_new: bool, records: Repository, running: LangGraphServer
) -> None:
    prepares(running)
    debate_id = str(uuid4())
    adopt(records, "adversarial", debate_id, {**state(), "question": "What else?"}, "a worker")
    if is_new:  # another service may be about to take it over
        with pytest.raises(DebateExists):
            await begin_there(records, running, debate_id)
        return
    before = written(datetime.now(UTC) - 2 * LEASE)
    records._set(debate_id, updated_at=before)
    assert (await begin_there(records, running, debate_id)).question == "Why?"
    assert records.debate_of(TASK) == debate_id


class Killed(BaseException):
    pass


@pytest.mark.parametrize("at", range(1, 4))
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_crash_leaves_no_record_without_its_server(
    at: int, is_shared: bool, records: Repository
) -> None:
    """After a crash before the n-th commit, each record names its server or is unchanged."""
    debate_id, commits = str(uuid4()), count(1)
    if is_shared:
        adopt(records, "adversarial", debate_id, state(), "a worker")

    def crash(_: object) -> None:
        if next(commits) == at:
            raise Killed

    sa.event.listen(records._engine, "commit", crash)
    with suppress(Killed):
        server_debates._store_record(records, ADDRESS, "adversarial", debate_id, state(), TASK)
    sa.event.remove(records._engine, "commit", crash)
    for found in [records.find(each) for each in records.ids()]:
        assert found.server == str(ADDRESS) or found.ran_on == "a worker"
        assert (records.debate_of(TASK) == found.id) is (found.server is not None)
