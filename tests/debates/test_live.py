"""Viewers of a debate: all see every event once and in order, whenever they come and go."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from contend.debates import live as module
from contend.debates.events import Announcer, Event
from contend.debates.leases import Lease
from contend.debates.live import LiveEvents
from contend.debates.repository import Repository
from contend.debates.run import open_repository

ID = "0" * 36


@pytest.fixture
def records(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setenv("CONTEND_HOME", str(tmp_path))
    opened = open_repository()
    opened.start(ID, "adversarial", {"question": "Why?", "seats": []}, {}, demonstration=False)
    yield opened
    opened.close()


class Speaker:
    """Runs the debate, in this process or with another connection."""

    def __init__(self, records: Repository, last: int = 0) -> None:
        self.records, self.lease = records, Lease(records._engine, ID)
        self.announcer = Announcer(ID, self._send, last)

    def _send(self, event: Event) -> None:
        self.records.journal.add(event, self.lease)

    async def speak(self, *words: str) -> None:
        for each in words:
            self.announcer.say("seat_complete", 1, each)
        await self.records.journal.flush()

    async def end(self) -> None:
        self.announcer.say("complete", 1, "the answer")
        await self.records.journal.flush()

    def __enter__(self) -> "Speaker":
        self.lease.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.lease.release()


async def watch(live: LiveEvents, after: int = 0) -> list[int]:
    seen: list[int] = []
    async with aclosing(live.follow(ID, after)) as groups:
        async for group in groups:
            seen += [each.seq for each in group]
    return seen


async def first(groups: AsyncIterator[Any]) -> list[int]:
    return [each.seq for each in await anext(groups)]


async def test_viewers_before_during_and_after_the_run_see_the_same(records: Repository) -> None:
    live = LiveEvents(records)
    early = asyncio.create_task(watch(live))
    with Speaker(records) as speaker:
        await speaker.speak("a", "b")
        middle = asyncio.create_task(watch(live))
        await speaker.speak("c")
        await speaker.end()
    late = await watch(live)
    assert await early == await middle == late == [1, 2, 3, 4]
    assert await watch(live, after=2) == [3, 4]


async def test_a_debate_run_by_another_process_is_followed_too(records: Repository) -> None:
    elsewhere = open_repository()
    try:
        live = LiveEvents(records)
        viewer = asyncio.create_task(watch(live))
        with Speaker(elsewhere) as speaker:
            await speaker.speak("a")
        # It is resumed here: what the other one said last must not be missed.
        with Speaker(records, last=1_000_000) as speaker:
            await speaker.speak("b")
            await speaker.end()
        assert await viewer == [1, 1_000_001, 1_000_002]
    finally:
        elsewhere.close()


async def test_a_viewer_that_falls_behind_reads_from_the_database(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_IN_MEMORY", 3)
    monkeypatch.setattr(module, "_PAGE", 2)
    live = LiveEvents(records)
    async with aclosing(live.follow(ID)) as slow:
        with Speaker(records) as speaker:
            await speaker.speak("a")
            seen = await first(slow)
            for number in range(20):
                await speaker.speak(str(number))
            await speaker.end()
        async for group in slow:
            seen += [each.seq for each in group]
    assert seen == list(range(1, 23))


async def test_an_idle_viewer_is_told_so(records: Repository) -> None:
    live = LiveEvents(records)
    async with aclosing(live.follow(ID, idle_seconds=0.01)) as viewer:
        assert await first(viewer) == []
        with Speaker(records) as speaker:
            await speaker.speak("a")
        async for group in viewer:
            if group:
                break
        assert [each.seq for each in group] == [1]


async def test_a_deleted_debate_ends_the_stream(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveEvents(records)
    viewer = asyncio.create_task(watch(live))
    await asyncio.sleep(0)
    monkeypatch.setattr(Repository, "has", lambda *_: False)
    assert await viewer == []


async def test_nothing_is_read_when_the_last_viewer_has_left(records: Repository) -> None:
    live = LiveEvents(records)
    async with aclosing(live.follow(ID, idle_seconds=0.01)) as viewer:
        await anext(viewer)
        assert live._channels
    assert not live._channels
    assert not records.journal._listeners
