"""Recording LangGraph server threads as debates."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from contend.debates import leases
from contend.debates.adoption import adopt_new_threads
from contend.debates.history import graph_of
from contend.debates.leases import RUN, Lease, LeaseLost
from contend.debates.record import SERVER as SERVER_SETTING
from contend.debates.replay import replay_strictly
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.tables import calls
from contend.debates.threads import ThreadRunner, ending_of
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import BUDGET, BadInput, ModelFailed
from contend.graph.runners import RECORDED_BY, set_runner
from contend.graph.settings import AdversarialSettings, DebateSettings
from contend.graph.state import DebateState
from contend.graph.values import Retrieval
from contend.models import recording
from contend.service.runs import Runs
from tests.support.scripted import THREAD, Cast, full_cast, play, scripted_settings

SERVER = "LangGraph server http://127.0.0.1:2024"


@pytest.fixture
async def saver() -> AsyncIterator[BaseCheckpointSaver[str]]:
    async with checkpointer() as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_runner() -> Iterator[None]:
    yield
    set_runner(None)


@pytest.fixture
async def records() -> AsyncIterator[Repository]:
    opened = open_repository()
    set_runner(ThreadRunner(lambda: opened, SERVER))
    yield opened
    opened.close()


async def test_a_thread_is_recorded_as_a_debate(records: Repository, saver: Any) -> None:
    played = await play(full_cast(), saver=saver)
    found = records.find(THREAD)
    assert (found.status, found.protocol, found.ran_on) == ("done", "adversarial", SERVER)
    assert found.turns == played.turns
    assert found.as_settings().model_dump(mode="json") == played.state["settings"]
    assert "settings" not in found.state
    assert found.as_record().final_answer == played.state["final_answer"]


async def test_a_paused_thread_is_recorded_as_a_paused_debate(
    records: Repository, saver: Any
) -> None:
    await play(full_cast(), saver=saver, pause="each_round")
    assert records.find(THREAD).status == "paused"
    records.acquire(THREAD).release()


async def test_a_thread_is_replayed_from_its_recording(records: Repository, saver: Any) -> None:
    cast = full_cast()
    await play(cast, saver=saver, pause="each_round")
    while records.find(THREAD).status == "paused":
        await play(cast, Command(resume=""), saver=saver, pause="each_round")
    replayed = await replay_strictly(records, records.find(THREAD))
    assert replayed.differences == []
    assert replayed.calls == len(cast.sent) > 4
    assert not recording._on_servers


async def test_a_thread_without_a_recording_names_its_server(
    records: Repository, saver: Any
) -> None:
    await play(full_cast(), saver=saver)
    with records._engine.begin() as connection:
        connection.execute(calls.delete())
    with pytest.raises(BadInput, match=f"{SERVER} made its calls"):
        await replay_strictly(records, records.find(THREAD))


@pytest.mark.parametrize("copied", [False, True])
async def test_a_fork_from_before_the_first_node_has_the_settings_of_its_thread(
    copied: bool, records: Repository, saver: Any
) -> None:
    await play(full_cast(), saver=saver, min_rounds=2, max_rounds=2)
    graph, thread = graph_of("adversarial", saver), THREAD
    if copied:
        thread = str(uuid4())
        for each in reversed([each async for each in saver.alist(config_of(THREAD))]):
            versions = each.checkpoint["channel_versions"]
            await saver.aput(with_parent(each, thread), each.checkpoint, each.metadata, versions)
    steps = [step async for step in graph.aget_state_history(config_of(thread))]
    (first,) = [step for step in steps if step.next == ("retrieve",)]
    cast = full_cast()
    with cast.on_stage():
        await graph.ainvoke(None, first.config, context=AdversarialSettings(pause="each_round"))
    found = records.find(thread)
    assert (found.status, found.settings["max_rounds"]) == ("paused", 2)
    assert found.settings["proposer_model"] == "scripted:proposer"


def with_parent(saved: Any, thread: str) -> Any:
    parent = saved.parent_config and saved.parent_config["configurable"]["checkpoint_id"]
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": parent}}


async def test_changed_settings_are_stored_in_the_record(records: Repository, saver: Any) -> None:
    await play(full_cast(), saver=saver, pause="each_round")
    changed = AdversarialSettings(max_rounds=4, pause="before_synthesis")
    await play(full_cast(), Command(resume=""), saver=saver, settings=changed)
    found = records.find(THREAD)
    settings = found.as_settings()
    assert isinstance(settings, AdversarialSettings)
    assert (settings.max_rounds, settings.pause) == (4, "before_synthesis")
    assert settings.proposer_model == "scripted:proposer"
    assert found.ran_on == SERVER


async def test_a_thread_state_cannot_set_internal_settings(
    records: Repository, saver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may write any state, and our token is sent to the server."""
    internal = {"server": "http://elsewhere:1", "from_cassette": True, "ran_on": "elsewhere"}
    await play(full_cast(), saver=saver, pause="each_round")
    own = records.find(THREAD).settings
    graph, config = graph_of("adversarial", saver), config_of(THREAD)
    about: Any = {"settings": {**own, **internal, "max_rounds": 4}}
    with pytest.raises(BadInput, match="A debate has no setting"):
        await graph.aupdate_state(config, about)
    monkeypatch.setattr("contend.graph.debate_graph.checked_edits", lambda edits, *_: [*edits])
    await graph.aupdate_state(config, about)
    assert records.find(THREAD).settings == {**own, "max_rounds": 4}
    records.delete(THREAD)
    fresh = str(uuid4())
    state = {**adopted_state(), **about}
    await graph.aupdate_state(config_of(fresh), state, as_node="retrieve")
    assert records.find(fresh).settings.keys() == own.keys()


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def adopted_state() -> dict[str, Any]:
    seats, now = scripted_settings().build_seats(), datetime.now(UTC)
    retrieval = Retrieval(embedding_model="", started_at=now, ended_at=now)
    return {"question": "Why?", "protocol": "adversarial", "seats": seats, "retrieval": retrieval}


async def test_a_thread_of_an_earlier_release_uses_its_recorded_settings(
    records: Repository, saver: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = scripted_settings(pause="each_round", min_rounds=2, max_rounds=2)
    await begin_as_before(saver, monkeypatch, settings)
    about = settings.model_dump(mode="json")
    asked: DebateState = {"question": "Why?", "seats": settings.build_seats()}
    records.start(THREAD, "adversarial", asked, about, demonstration=False)
    set_runner(ThreadRunner(lambda: records, SERVER))
    go_on: Any = {"saver": saver, "settings": AdversarialSettings()}
    played = await play(full_cast(), Command(resume=""), **go_on)
    assert records.find(THREAD).status == "paused"
    assert played.state["settings"] == about
    ended = await play(full_cast(), Command(resume=""), **go_on)
    assert (ended.stop_reason, ended.state["round"]) == ("max_rounds", 2)
    assert records.find(THREAD).settings == about


async def begin_as_before(
    saver: Any, monkeypatch: pytest.MonkeyPatch, settings: DebateSettings
) -> None:
    """Begin a thread as releases 0.1 and 0.2 did, which stored no settings in the state."""
    set_runner(None)
    with monkeypatch.context() as patched:
        patched.setattr("contend.nodes.retrieve._settings", lambda *_: {})
        played = await play(full_cast(), saver=saver, settings=settings)
    assert not played.state["settings"]


def test_computes_the_ending_of_a_state_without_a_protocol() -> None:
    failure = ModelFailed("Ann", "openai:m", BUDGET, "too dear")
    state: DebateState = {"settings": scripted_settings(budget=5_000).model_dump(mode="json")}
    ending = ending_of(state, "adversarial", failure, is_done=False)
    assert ending.status == "paused"
    assert "5,000 tokens, so Ann was not asked" in (ending.error or "")


@pytest.mark.parametrize("fails", [True, False])
async def test_a_save_error_does_not_hide_the_error_of_the_run(
    fails: bool,
    records: Repository,
    saver: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_: object) -> str:
        raise RuntimeError("the model is broken")

    async def unsaved(*_: object) -> None:
        raise OSError("the disk of sk-0123456789abcdef is full")

    monkeypatch.setattr(ThreadRunner, "_end", unsaved)
    cast = full_cast(proposer=broken) if fails else full_cast()
    error, said = (RuntimeError, "is broken") if fails else (OSError, "is full")
    with pytest.raises(error, match=said):
        await play(cast, saver=saver, max_retries=0)
    logged = [each for each in caplog.messages if "is full" in each]
    assert len(logged) == fails
    assert "sk-0123456789abcdef" not in caplog.text


async def test_a_lost_lease_changes_no_settings(records: Repository, saver: Any) -> None:
    await play(full_cast(), saver=saver, pause="each_round")
    lease = records.acquire(THREAD)
    lease.release()
    with pytest.raises(LeaseLost):
        records.save(lease, "paused", records.find(THREAD).as_state(), 0, settings={"budget": 1})
    assert "max_rounds" in records.find(THREAD).settings


async def test_a_failed_thread_is_recorded_as_a_failed_debate(
    records: Repository, saver: Any
) -> None:
    def broken(_: object) -> str:
        raise RuntimeError("the key sk-0123456789abcdef is wrong")

    with pytest.raises(RuntimeError, match="is wrong"):
        await play(Cast(proposer=broken), saver=saver, max_retries=0)
    found = records.find(THREAD)
    assert found.status == "failed"
    assert "sk-0123456789abcdef" not in (found.error or "")


async def test_a_refused_question_is_not_recorded(records: Repository, saver: Any) -> None:
    with pytest.raises(BadInput, match="question is empty"):
        await play(full_cast(), " ", saver=saver)
    assert records.ids() == []


async def test_refuses_a_debate_that_another_process_runs(records: Repository, saver: Any) -> None:
    await play(full_cast(), saver=saver, pause="each_round")
    lease, cast = records.acquire(THREAD), full_cast()
    with pytest.raises(BadInput, match="is being run by another process"):
        await play(cast, Command(resume=""), saver=saver)
    lease.release()
    assert cast.sent == []


async def test_a_running_thread_holds_its_lease(records: Repository, saver: Any) -> None:
    cast, refused = full_cast(), []

    async def look() -> None:
        if len(cast.sent) == 1:
            with pytest.raises(BadInput, match="is being run by another process"):
                await asyncio.to_thread(records.acquire, THREAD)
            refused.append(records.find(THREAD).status)

    cast.before = lambda _: look()
    await play(cast, saver=saver)
    assert refused == ["running"]


class AnyGraph:
    checkpointer, name = object(), "adversarial"


@pytest.fixture
def kept(records: Repository) -> Iterator[dict[str, Any]]:
    """Return the run config of a debate whose client keeps the record in this database."""
    settings = scripted_settings()
    asked: DebateState = {"question": "Why?", "seats": settings.build_seats()}
    about = settings.model_dump(mode="json")
    records.start(THREAD, "adversarial", asked, about, demonstration=False)
    lease = records.acquire(THREAD)
    yield {"configurable": {"thread_id": THREAD}, "metadata": {RECORDED_BY: lease.owner}}
    lease.release()


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_client_recorded_thread_has_one_run_at_a_time(
    workers: int, records: Repository, kept: dict[str, Any]
) -> None:
    first = ThreadRunner(lambda: records, SERVER)
    second = ThreadRunner(lambda: records, SERVER) if workers == 2 else first
    async with first.hold_lease(AnyGraph, kept):
        with pytest.raises(BadInput, match="is being run by another process"):
            async with second.hold_lease(AnyGraph, kept):
                pass
    async with second.hold_lease(AnyGraph, kept):
        pass


async def test_a_run_of_a_crashed_worker_is_taken_over(
    records: Repository, kept: dict[str, Any]
) -> None:
    crashed = records.acquire(THREAD, RUN)
    leases._held.discard(crashed.owner)
    async with ThreadRunner(lambda: records, SERVER).hold_lease(AnyGraph, kept):
        pass


@pytest.fixture
def client(records: Repository) -> Iterator[Lease]:
    """Return the lease of a client that shares the database and whose debate this server runs."""
    settings = scripted_settings()
    asked: DebateState = {"question": "Why?", "seats": settings.build_seats()}
    about = {**settings.model_dump(mode="json"), SERVER_SETTING: "http://127.0.0.1:2024"}
    records.start(THREAD, "adversarial", asked, about, demonstration=False)
    lease = records.acquire(THREAD)
    yield lease
    lease.release()


@pytest.mark.parametrize("has_successor", [True, False])
async def test_the_next_client_or_the_run_takes_over_the_record(
    has_successor: bool, records: Repository, saver: Any, client: Lease
) -> None:
    cast, successors = full_cast(), list[Lease]()

    async def replace_client(_: object) -> None:
        if len(cast.sent) == 1:
            client.release()
            successors.extend([records.acquire(THREAD)] if has_successor else [])

    cast.before = replace_client
    graph, config = graph_of("adversarial", saver), config_of(THREAD)
    config["metadata"] = {RECORDED_BY: client.owner}
    with cast.on_stage():
        await graph.ainvoke({"question": "Why?"}, config, context=scripted_settings())
    assert "final_answer" in (await graph.aget_state(config)).values
    assert records.find(THREAD).status == ("running" if has_successor else "done")
    for each in successors:
        assert each.renew()
        each.release()


async def test_another_worker_takes_over_a_run_whose_client_was_replaced(
    records: Repository, client: Lease
) -> None:
    client.release()
    successor = records.acquire(THREAD)
    config = {**config_of(THREAD), "metadata": {RECORDED_BY: client.owner}}
    async with ThreadRunner(lambda: records, SERVER).hold_lease(AnyGraph, config):
        with pytest.raises(BadInput, match="is being run by another process"):
            records.acquire(THREAD, RUN)
    assert successor.renew()
    successor.release()


async def test_adopting_again_keeps_the_ending_recorded_by_the_runner(
    records: Repository, saver: Any
) -> None:
    set_runner(None)
    about = {"graph_id": "adversarial", "langgraph_api_url": "http://elsewhere:8123"}
    config: Any = {"configurable": {"thread_id": THREAD, **about}}
    graph, context = graph_of("adversarial", saver), scripted_settings(pause="each_round")
    with full_cast().on_stage():
        await graph.ainvoke({"question": "Why?"}, config, context=context)
    await adopt_new_threads(records)

    def broken(_: object) -> str:
        raise RuntimeError("the model is broken")

    set_runner(ThreadRunner(lambda: records, SERVER))
    go_on: Command[Any] = Command(resume="")
    broken_cast = full_cast(proposer=broken, skeptic=broken, synthesizer=broken)
    with broken_cast.on_stage(), pytest.raises(ModelFailed):
        await graph.ainvoke(go_on, config, context=scripted_settings(max_retries=0))
    assert records.find(THREAD).status == "failed"
    await adopt_new_threads(records)
    assert records.find(THREAD).status == "failed"
    set_runner(None)
    with full_cast().on_stage():
        await graph.ainvoke(None, config, context=context)
    await adopt_new_threads(records)
    assert records.find(THREAD).status == "paused"


async def test_two_runs_of_a_new_thread_end_without_an_error(
    records: Repository, saver: Any
) -> None:
    runner, config = ThreadRunner(lambda: records, SERVER), config_of(THREAD)
    graph = graph_of("adversarial", saver)
    async with runner.hold_lease(graph, config), runner.hold_lease(graph, config):
        pass


async def test_a_development_server_does_not_resume_debates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from contend.service import mounted  # as a server loads it, which makes it the runner

    async def resume(_: Runs) -> None:
        raise AssertionError

    monkeypatch.setattr(Runs, "resume_unfinished_once", resume)
    runs = Runs(mounted.app.state.runs.options)
    await runs.open()
    assert runs._resuming is None
    await runs.close()
