"""Threads that a LangGraph server runs, kept as debates."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command

from contend.debates.leases import LeaseLost
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.threads import ThreadRunner
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.errors import BadInput
from contend.graph.runners import run_by
from contend.graph.settings import AdversarialSettings
from contend.service.runs import Runs
from tests.support.scripted import THREAD, Cast, full_cast, play

SERVER = "LangGraph server http://127.0.0.1:2024"


@pytest.fixture
async def saver() -> AsyncIterator[BaseCheckpointSaver[str]]:
    async with checkpointer() as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_runner() -> Iterator[None]:
    yield
    run_by(None)


@pytest.fixture
async def records() -> AsyncIterator[Repository]:
    opened = open_repository()
    run_by(ThreadRunner(lambda: opened, SERVER))
    yield opened
    opened.close()


async def test_a_thread_becomes_a_debate(records: Repository, saver: Any) -> None:
    played = await play(full_cast(), saver=saver)
    found = records.find(THREAD)
    assert (found.status, found.protocol, found.ran_on) == ("done", "adversarial", SERVER)
    assert found.turns == played.turns
    assert found.as_settings().model_dump(mode="json") == played.state["settings"]
    assert "settings" not in found.state
    assert found.as_record().final_answer == played.state["final_answer"]


async def test_a_thread_that_pauses_is_a_paused_debate(records: Repository, saver: Any) -> None:
    await play(full_cast(), saver=saver, pause="each_round")
    assert records.find(THREAD).status == "paused"
    records.acquire(THREAD).release()


async def test_changed_settings_reach_the_record(records: Repository, saver: Any) -> None:
    await play(full_cast(), saver=saver, pause="each_round")
    changed = AdversarialSettings(max_rounds=4, pause="before_synthesis")
    await play(full_cast(), Command(resume=""), saver=saver, settings=changed)
    found = records.find(THREAD)
    settings = found.as_settings()
    assert isinstance(settings, AdversarialSettings)
    assert (settings.max_rounds, settings.pause) == (4, "before_synthesis")
    assert settings.proposer_model == "scripted:proposer"
    assert found.ran_on == SERVER


async def test_a_lost_lease_changes_no_settings(records: Repository, saver: Any) -> None:
    await play(full_cast(), saver=saver, pause="each_round")
    lease = records.acquire(THREAD)
    lease.release()
    with pytest.raises(LeaseLost):
        records.save(lease, "paused", records.find(THREAD).as_state(), 0, settings={"budget": 1})
    assert "max_rounds" in records.find(THREAD).settings


async def test_a_thread_that_fails_is_a_failed_debate(records: Repository, saver: Any) -> None:
    def broken(_: object) -> str:
        raise RuntimeError("the key sk-0123456789abcdef is wrong")

    with pytest.raises(RuntimeError, match="is wrong"):
        await play(Cast(proposer=broken), saver=saver, max_retries=0)
    found = records.find(THREAD)
    assert found.status == "failed"
    assert "sk-0123456789abcdef" not in (found.error or "")


async def test_a_question_that_is_refused_is_no_debate(records: Repository, saver: Any) -> None:
    with pytest.raises(BadInput, match="question is empty"):
        await play(full_cast(), " ", saver=saver)
    assert records.ids() == []


async def test_a_debate_that_another_process_runs_is_refused(
    records: Repository, saver: Any
) -> None:
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


async def test_a_development_server_resumes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from contend.service import mounted  # as a server loads it, which makes it the runner

    async def resume(_: Runs) -> None:
        raise AssertionError

    monkeypatch.setattr(Runs, "resume_unfinished_once", resume)
    runs = Runs(mounted.app.state.runs.options)
    await runs.open()
    assert runs._resuming is None
    await runs.close()
