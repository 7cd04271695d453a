"""Following a debate on a LangGraph server that fails or repeats events."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from contend.debates import servers
from contend.debates.record import RAN_ON, SERVER, StoredDebate
from contend.debates.repository import Repository
from contend.debates.run import open_repository, run_debate
from contend.debates.server_graph import FailedOnServer, ServerGraph
from contend.debates.servers import ServerAddress, connected
from contend.debates.spending import why_not_asked
from contend.graph.errors import OUT_OF_BUDGET, BadInput
from tests.support.langgraph_server import LangGraphServer, Part
from tests.support.scripted import THREAD, scripted_settings

TASK = "a-task"
NOW = "2026-01-01T00:00:00+00:00"
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
    return {
        "question": "Why?",
        "protocol": "adversarial",
        "settings": settings.model_dump(mode="json"),
        "seats": [seat.model_dump(mode="json") for seat in settings.build_seats()],
        "retrieval": {"embedding_model": "", "started_at": NOW, "ended_at": NOW},
        "round": 1,
        "turns": [],
        **more,
    }


def state_of(state: dict[str, Any], checkpoint: str) -> dict[str, Any]:
    return {
        "values": state,
        "next": ["propose"],
        "tasks": [],
        "created_at": NOW,
        "checkpoint": {"checkpoint_id": checkpoint},
    }


def running_on(server: LangGraphServer, records: Repository) -> StoredDebate:
    """Store the record of an accepted debate that the server runs."""
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
async def test_a_server_error_does_not_fail_a_running_debate(
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
    assert not server.is_cancelled


@pytest.mark.parametrize("status", [401, 429])
async def test_a_server_error_at_the_start_leaves_the_record_unchanged(
    status: int, server: LangGraphServer, records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "_PATIENCE", 0.0)
    debate = running_on(server, records)
    server.refusals["state"] = deque([status])
    with pytest.raises(BadInput, match=r"token|cannot answer now"):
        await run_debate(records, debate, lambda _: None, RunControl())
    assert records.find(THREAD).status == "interrupted"
    assert records.debate_of(TASK) == THREAD


async def read(stream: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part async for part in stream]


async def test_reopens_a_stream_that_ends_immediately_with_backoff(
    server: LangGraphServer, graph: ServerGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.extend([seconds] if seconds else [])
        if len(pauses) == 6:
            server.end_runs("success")

    monkeypatch.setattr(asyncio, "sleep", pause)
    server.runs = [{"run_id": "run0", "status": "running"}]
    server.streams += [nothing, nothing, lambda _: iter([Part("1", "custom", {})]), nothing]
    await read(graph.follow("run0"))
    assert pauses == [0.5, 0.5, 1.5, 3.5, 7.5, 8]


async def test_gets_events_sent_before_connecting_and_no_duplicates(
    server: LangGraphServer, graph: ServerGraph
) -> None:
    """Without an event id, servers may send only new events."""
    early, late = Part("1", "custom", "early"), Part("2", "custom", "late")

    def first(last: str | None) -> Iterator[Part]:
        yield from [early] if last else []
        yield late
        yield late

    def again(_: str | None) -> Iterator[Part]:
        yield late
        server.end_runs("success")

    server.runs = [{"run_id": "run0", "status": "running"}]
    server.streams += [first, again]
    assert said_in(await read(graph.follow("run0"))) == ["early", "late"]


async def test_a_returning_client_gets_the_events_of_the_current_step(
    server: LangGraphServer, graph: ServerGraph
) -> None:
    turn = {"id": "t1", "round": 1, "seat": "proposer", "role": "proposer", "phase": "propose"}
    turn |= {"model": "m", "text": "Words.", "started_at": NOW, "ended_at": NOW}
    one_turn, two_turns = values(turns=[turn]), values(turns=[turn, {**turn, "id": "t2"}])

    def stream(last: str | None) -> Iterator[Part]:
        if last:
            yield Part("1", "values", values())
            yield Part("2", "custom", "seen before")
            yield Part("3", "values", one_turn)
            yield Part("4", "custom", "in progress")
        yield Part("5", "values", two_turns)
        server.end_runs("success")

    server.state = state_of(two_turns, "c2")
    server.runs = [{"run_id": "run0", "status": "running"}]
    server.streams.append(stream)
    parts = await read(graph.follow("run0", seen=1))
    assert said_in(parts) == ["in progress"]
    states = [part["data"] for part in parts if part["type"] == "values"]
    assert [len(state["turns"]) for state in states] == [1, 2, 2]


@pytest.mark.parametrize("begins", ["remark", "ctrl_c"])
async def test_a_run_is_stopped_only_after_its_current_step(
    begins: str, server: LangGraphServer, graph: ServerGraph
) -> None:
    """Repeated states of earlier steps do not stop the run."""
    cancelled: list[bool] = []

    def stream(_: str | None) -> Iterator[Part]:
        before = server.answers("state", "cancel")
        yield Part("1", "values", values())
        server.wait_for_more(before, "state", "cancel")
        cancelled.append(server.is_cancelled)
        server.state = state_of(values(round=2), "c2")
        yield Part("2", "values", values(round=2))
        server.wait_for_more(0, "cancel")
        cancelled.append(server.is_cancelled)

    server.runs = [{"run_id": "run0", "status": "running"}]
    server.streams += [stream, nothing]
    if begins == "remark":
        await graph._stop_after_step("run0")
    else:
        control = RunControl()
        control.request_drain("stopped by the user")
        with pytest.raises(GraphDrained):
            await read(graph.astream(None, {}, context=scripted_settings(), control=control))
    assert cancelled == [False, True]


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("status", ["running", "success"])
async def test_a_run_whose_start_response_was_lost_is_not_started_again(
    status: str, is_kept: bool, server: LangGraphServer, records: Repository
) -> None:
    running_on(server, records)
    server.runs = [{"run_id": "earlier", "status": "success"}] if is_kept else []
    server.lost_answers, server.status_of_new_runs = 1, status
    lease = records.acquire(THREAD) if is_kept else None
    async with connected(ServerAddress(server.url)) as connection:
        graph = ServerGraph(connection, "adversarial", THREAD, lease)
        started = await graph.start({"checkpoint": {}}, {})
    assert started == server.runs[0]["run_id"] != "earlier"
    assert len(server.runs) == 1 + is_kept
    if lease:
        lease.release()


def said_in(parts: list[dict[str, Any]]) -> list[Any]:
    return [part["data"] for part in parts if part["type"] == "custom"]


async def test_rating_again_starts_a_run_on_the_server(
    server: LangGraphServer, records: Repository
) -> None:
    """An edit does not name the record's owner, so a server sharing our database refused it."""
    answer = values(final_answer="The answer.")
    rating: dict[str, Any] = {"justification": "Clear.", "would_benefit_from_finetune": False}
    rating |= {"correctness": 8, "completeness": 7, "clarity": 9, "depth": 6, "score": 7.65}
    debate = running_on(server, records)
    server.state, server.runs = {**state_of(answer, "c1"), "next": []}, []

    def rates(_: str | None) -> Iterator[Part]:
        server.end_runs("success")
        rated = {**answer, "auto_score": {**rating, "judge_model": "openai:m"}}
        server.state = {**state_of(rated, "c2"), "next": []}
        yield from ()

    server.streams.append(rates)
    ended = await run_debate(records, debate, lambda _: None, RunControl(), rate_again=True)
    assert [run["command"] for run in server.runs] == [{"goto": "score"}]
    assert ended.status == "done"
    assert ended.as_record().quality_score == 7.65


@pytest.mark.parametrize(
    ("failed", "who"),
    [("Skeptic (openai:m): ", ", so Skeptic was not asked"), ("", "")],
)
def test_budget_error_from_a_server_names_the_seat(failed: str, who: str) -> None:
    stopped = FailedOnServer(f"{failed}{OUT_OF_BUDGET}")
    said = why_not_asked(stopped, scripted_settings(budget=10_000))
    assert said == f"{OUT_OF_BUDGET} of 10,000 tokens{who}"
