"""A debate that runs on a LangGraph server, followed while that server misbehaves."""

from collections import deque
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.runtime import RunControl

from contend.debates import servers
from contend.debates.record import RAN_ON, SERVER, StoredDebate
from contend.debates.repository import Repository
from contend.debates.run import open_repository, run_debate
from contend.debates.server_graph import ServerGraph
from contend.debates.servers import ServerAddress, connected
from contend.graph.errors import BadInput
from contend.graph.values import Retrieval
from tests.support.langgraph_server import LangGraphServer, Part
from tests.support.scripted import THREAD, scripted_settings

TASK = "a-task"
REFUSALS = [401, 408, 409, 422, 425, 429, 503]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_PAUSE", 0.0)


@pytest.fixture
def server() -> Iterator[LangGraphServer]:
    with LangGraphServer() as running:
        running.state = state_of(values(), "c1")
        yield running


@pytest.fixture
async def graph(server: LangGraphServer) -> AsyncIterator[ServerGraph]:
    async with connected(ServerAddress(server.url)) as connection:
        yield ServerGraph(connection, "adversarial", THREAD)


@pytest.fixture
def records() -> Iterator[Repository]:
    opened = open_repository()
    yield opened
    opened.close()


def values(**more: Any) -> dict[str, Any]:
    settings = scripted_settings()
    now = datetime.now(UTC)
    retrieval = Retrieval(embedding_model="", started_at=now, ended_at=now)
    return {
        "question": "Why?",
        "protocol": "adversarial",
        "settings": settings.model_dump(mode="json"),
        "seats": [seat.model_dump(mode="json") for seat in settings.build_seats()],
        "retrieval": retrieval.model_dump(mode="json"),
        "round": 1,
        "turns": [],
        **more,
    }


def state_of(state: dict[str, Any], checkpoint: str) -> dict[str, Any]:
    return {
        "values": state,
        "next": ["propose"],
        "tasks": [],
        "created_at": "2026-01-01T00:00:00+00:00",
        "checkpoint": {"checkpoint_id": checkpoint},
    }


def running_on(server: LangGraphServer, records: Repository) -> StoredDebate:
    """The record of an accepted debate that the server runs."""
    settings = scripted_settings()
    about = {**settings.model_dump(mode="json"), RAN_ON: "a server", SERVER: server.url}
    asked: Any = {"question": "Why?", "seats": settings.build_seats()}
    records.start(THREAD, "adversarial", asked, about, demonstration=False, task_id=TASK)
    server.runs = [{"run_id": "run0", "status": "running"}]
    return records.find(THREAD)


def nothing(_: str | None) -> Iterator[Part]:
    yield from ()


@pytest.mark.parametrize("refused", ["stream", "run"])
@pytest.mark.parametrize("status", REFUSALS)
async def test_a_refusal_fails_no_debate_that_runs_there(
    status: int, refused: str, server: LangGraphServer, records: Repository
) -> None:
    debate = running_on(server, records)

    def ends(_: str | None) -> Iterator[Part]:
        server.end_runs("interrupted")
        yield from ()

    server.streams.append(ends)
    server.refusals[refused] = deque([status])
    await run_debate(records, debate, lambda _: None, RunControl())
    found = records.find(THREAD)
    assert (found.status, found.error) == ("paused", None)
    assert records.debate_of(TASK) == THREAD
    assert not server.is_cancelled.is_set()


@pytest.mark.parametrize("status", [401, 429])
async def test_a_server_that_refuses_at_first_changes_no_record(
    status: int, server: LangGraphServer, records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_PATIENCE", 0.0)
    debate = running_on(server, records)
    server.refusals["state"] = deque([status])
    with pytest.raises(BadInput, match=r"token|cannot answer now"):
        await run_debate(records, debate, lambda _: None, RunControl())
    assert records.find(THREAD).status == "interrupted"
    assert records.debate_of(TASK) == THREAD
