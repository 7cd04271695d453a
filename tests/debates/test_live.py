"""Each viewer of a debate gets every event once and in order."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, closing
from typing import Any

import pytest

from contend.debates import live as module
from contend.debates.events import Announcer, Event
from contend.debates.exports import safe_html
from contend.debates.journal import Journal
from contend.debates.leases import Lease
from contend.debates.live import LiveEvents, Viewing
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.stored_events import encode
from contend.debates.waiting import wait_for_event
from contend.graph.errors import DatabaseUnavailable
from contend.graph.events import EventName
from contend.graph.record import Status
from tests.debates.exports.test_safe_html import split_blocks
from tests.debates.test_live_html import Screen
from tests.support.states import turn

ID = "0" * 36
PLAIN = Viewing()


@pytest.fixture
def records() -> Iterator[Repository]:
    with closing(open_repository()) as opened:
        opened.start(ID, "adversarial", {"question": "Why?", "seats": []}, {}, demonstration=False)
        yield opened


@pytest.fixture
async def live(records: Repository) -> AsyncIterator[LiveEvents]:
    opened = LiveEvents(records)
    yield opened
    await opened.close()
    assert not opened._tasks
    assert not records.journal._listeners


class Speaker:
    """Run the debate, in this process or over another connection."""

    def __init__(self, records: Repository, last: int = 0) -> None:
        self.records, self.lease = records, Lease(records._engine, ID)
        self.announcer = Announcer(ID, self._send, last)

    def _send(self, event: Event) -> None:
        self.records.journal.add(event, self.lease)

    async def speak(self, *words: str, name: EventName = "seat_complete") -> None:
        for each in words:
            self.announcer.say(name, 1, each, seat="ann", phase="propose")
        await self.records.journal.flush(self.lease)

    async def end(self) -> None:
        await self.speak("the answer", name="complete")

    def save(self, status: Status) -> None:
        written = turn("synthesize", text="the answer", model="m", role="synthesizer")
        state: Any = {"question": "Why?", "seats": [], "final_answer": "the answer"}
        state |= {"turns": [written]}
        self.records.save(self.lease, status, state, self.announcer.seq, "It broke.")

    def __enter__(self) -> "Speaker":
        self.lease.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.lease.release()
        self.records.journal.end(self.lease)


async def watch(live: LiveEvents, viewing: Viewing = PLAIN) -> list[int]:
    return [event["seq"] for event in await watch_events(live, viewing)]


async def watch_events(live: LiveEvents, viewing: Viewing = PLAIN) -> list[Event]:
    """Watch until the stream ends."""
    seen: list[Event] = []
    async with aclosing(live.follow(ID, viewing)) as groups:
        async for group in groups:
            seen += [each.as_event() for each in group]
    return seen


async def first(groups: AsyncIterator[Any]) -> list[int]:
    return [each.seq for each in await anext(groups)]


async def test_viewers_before_during_and_after_the_run_see_the_same(
    records: Repository, live: LiveEvents
) -> None:
    early = asyncio.create_task(watch(live))
    with Speaker(records) as speaker:
        await speaker.speak("a", "b")
        middle = asyncio.create_task(watch(live))
        await speaker.speak("c")
        await speaker.end()
    late = await watch(live)
    assert await early == await middle == late == [1, 2, 3, 4]
    assert await watch(live, Viewing(after=2)) == [3, 4]
    assert await watch(live, Viewing(after=4)) == []


async def test_viewers_follow_a_debate_run_by_another_process(
    records: Repository, live: LiveEvents
) -> None:
    with closing(open_repository()) as elsewhere:
        viewer = asyncio.create_task(watch(live))
        with Speaker(elsewhere) as speaker:
            await speaker.speak("a")
        # It is resumed here: what the other one said last must not be missed.
        with Speaker(records, last=1_000_000) as speaker:
            await speaker.speak("b")
            await speaker.end()
        assert await viewer == [1, 1_000_001, 1_000_002]


async def test_viewers_follow_a_debate_that_moves_to_another_process(
    records: Repository, live: LiveEvents
) -> None:
    with closing(open_repository()) as elsewhere:
        viewer = asyncio.create_task(watch(live))
        with Speaker(records) as speaker:
            await speaker.speak("a")
        with Speaker(elsewhere, last=1_000_000) as speaker:
            await speaker.speak("b")
            await speaker.end()
        assert await viewer == [1, 1_000_001, 1_000_002]


async def test_a_slow_viewer_reads_missed_events_from_the_database(
    records: Repository, live: LiveEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_IN_MEMORY", 3)
    monkeypatch.setattr(module, "_PAGE", 2)
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


async def test_a_long_gap_is_read_in_pages(
    records: Repository, live: LiveEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The debate runs here and sends no more events, so nothing else wakes the reader."""
    monkeypatch.setattr(module, "_PAGE", 2)
    with Speaker(records) as speaker:
        async with aclosing(live.follow(ID, Viewing(idle_seconds=0.01))) as viewer:
            assert await first(viewer) == []
            await speaker.speak(*"abcdefg")
            seen: list[int] = []
            while len(seen) < 7:
                seen += await first(viewer)
        assert seen == [1, 2, 3, 4, 5, 6, 7]


async def test_an_idle_viewer_gets_an_empty_group(records: Repository, live: LiveEvents) -> None:
    async with aclosing(live.follow(ID, Viewing(idle_seconds=0.01))) as viewer:
        assert await first(viewer) == []
        with Speaker(records) as speaker:
            await speaker.speak("a")
        async for group in viewer:
            if group:
                break
        assert [each.seq for each in group] == [1]


async def test_a_deleted_debate_ends_the_stream(records: Repository, live: LiveEvents) -> None:
    viewer = asyncio.create_task(watch(live))
    await asyncio.sleep(0)
    await asyncio.to_thread(records.delete, ID)
    assert await viewer == []


async def test_stops_reading_when_the_last_viewer_leaves(
    records: Repository, live: LiveEvents
) -> None:
    for html in (False, True):
        viewing = Viewing(html=html, idle_seconds=0.01)
        async with aclosing(live.follow(ID, viewing)) as viewer:
            await anext(viewer)
            assert live._channels
        assert not live._channels
        assert not records.journal._listeners
        await asyncio.gather(*live._tasks)


async def test_cancelling_a_viewer_closes_its_channel(
    live: LiveEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = asyncio.Event()

    async def note(*_: Any) -> bool:
        waiting.set()
        return await asyncio.Future()

    monkeypatch.setattr("contend.debates.live._Channel.wait", note)
    viewer = asyncio.create_task(watch(live))
    await waiting.wait()
    viewer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await viewer
    assert not live._channels


@pytest.mark.parametrize("html", [False, True])
async def test_viewer_gets_the_complete_event_that_a_crash_left_unstored(
    records: Repository, live: LiveEvents, html: bool
) -> None:
    viewer = asyncio.create_task(watch_events(live, Viewing(html=html)))
    with Speaker(records) as speaker:
        await speaker.speak("a")
        speaker.save("done")
    events = await viewer
    assert [event["event"] for event in events] == ["seat_complete", "complete"]
    assert events[-1]["content"] == "the answer"
    assert events[-1]["metadata"].items() >= {"model": "m", "role": "synthesizer"}.items()
    assert await watch(live) == [event["seq"] for event in events]


async def test_viewer_gets_the_error_event_that_a_crash_left_unstored(
    records: Repository, live: LiveEvents
) -> None:
    with Speaker(records) as speaker:
        await speaker.speak("a")
        speaker.save("failed")
    async with aclosing(live.follow(ID)) as viewer:
        seen = [each async for group in take_until(viewer, "error") for each in group]
    assert [each.name for each in seen] == ["seat_complete", "error"]
    assert seen[-1].as_event()["content"] == "It broke."


async def take_until(groups: AsyncIterator[Any], name: str) -> AsyncIterator[Any]:
    async for group in groups:
        yield group
        if group and group[-1].name == name:
            return


async def test_viewer_gets_the_error_of_a_debate_that_failed_at_the_start(
    records: Repository, live: LiveEvents
) -> None:
    async with aclosing(live.follow(ID, Viewing(idle_seconds=0.01))) as viewer:
        assert await first(viewer) == []
        await asyncio.to_thread(records.give_up, ID, "broken")
        seen = [each.name async for group in take_until(viewer, "error") for each in group]
    assert seen == ["debate_start", "error"]


async def test_viewer_follows_a_debate_recorded_before_events_were_stored(
    records: Repository, live: LiveEvents
) -> None:
    with Speaker(records) as speaker:
        state: Any = {"question": "Why?", "seats": []}
        records.save(speaker.lease, "paused", state, 90)
    async with aclosing(live.follow(ID, Viewing(html=True))) as viewer:
        assert [each.name for each in await anext(viewer)] == ["debate_start", "paused"]
        with Speaker(records, last=90) as speaker:
            await speaker.speak("a")
        assert await first(viewer) == [91]


async def test_a_read_error_ends_the_stream(
    records: Repository,
    live: LiveEvents,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken, key sk-canary-0123456789abcdef")

    monkeypatch.setattr(Journal, "read_update", broken)
    assert await watch(live) == []
    assert ID in caplog.text
    assert "canary" not in caplog.text


async def test_viewers_wait_until_a_database_outage_ends(
    records: Repository, live: LiveEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()
    loop = asyncio.get_running_loop()

    def away(*_: object) -> None:
        loop.call_soon_threadsafe(tried.set)
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "read_update", away)
        viewer = asyncio.create_task(watch(live))
        await tried.wait()
    with Speaker(records) as speaker:
        await speaker.speak("a")
        await speaker.end()
    assert await viewer == [1, 2]


async def count_reads(
    records: Repository, live: LiveEvents, monkeypatch: pytest.MonkeyPatch, speaker: Speaker
) -> tuple[int, float]:
    """Watch an idle debate; return the number of reads and the longest wait."""
    reads, waits = [0], list[float]()
    read = Journal.read_update

    def counted(*given: Any) -> Any:
        reads[0] += 1
        return read(*given)

    async def shortened(seconds: float, event: asyncio.Event) -> bool:
        waits.append(seconds)
        return await wait_for_event(seconds / 1000, event)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "read_update", counted)
        patch.setattr(module, "wait_for_event", shortened)
        viewing = Viewing(idle_seconds=10.0)
        async with aclosing(live.follow(ID, viewing)) as viewer:
            await speaker.speak("a")
            assert await first(viewer) == [1]
            for _ in range(3):
                assert await first(viewer) == []
    return reads[0], max((each for each in waits if each != viewing.idle_seconds), default=0)


async def test_a_debate_of_this_process_is_not_polled(
    records: Repository, live: LiveEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Speaker(records) as speaker:
        reads, _ = await count_reads(records, live, monkeypatch, speaker)
    assert reads <= 2


async def test_polls_an_idle_debate_of_another_process_less_often(
    records: Repository, live: LiveEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_repository()) as elsewhere, Speaker(elsewhere) as speaker:
        _, longest = await count_reads(records, live, monkeypatch, speaker)
    assert longest == 2.0


async def test_deletes_old_chunks_periodically_even_after_an_error(
    live: LiveEvents, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop, forgotten, troubles = asyncio.get_running_loop(), asyncio.Event(), iter([RuntimeError])

    def forget(_: Journal) -> None:
        for trouble in troubles:
            raise trouble("broken")
        loop.call_soon_threadsafe(forgotten.set)

    monkeypatch.setattr(Journal, "forget_old_chunks", forget)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_CLEANUPS", 0.0)
    live.forget_old_chunks_hourly()
    await forgotten.wait()
    assert "Old events could not be deleted" in caplog.text


CHUNKS = ["", "# Title\n\n", "One *", "two*.\n\n", "Three"]


@pytest.mark.parametrize("open_chunks_only", [False, True])
async def test_html_is_rendered_once_for_all_viewers(
    records: Repository,
    live: LiveEvents,
    monkeypatch: pytest.MonkeyPatch,
    open_chunks_only: bool,
) -> None:
    parsed: list[str] = []
    parse = safe_html._parser().parse

    def note(text: str) -> Any:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(safe_html._parser(), "parse", note)
    monkeypatch.setattr(module, "_SECONDS_BETWEEN_RENDERINGS", 0.0)
    viewing = Viewing(html=True, open_chunks_only=open_chunks_only)
    viewers = [asyncio.create_task(watch_events(live, viewing)) for _ in range(20)]
    with Speaker(records) as speaker:
        for each in CHUNKS:
            await speaker.speak(each, name="seat_chunk")
        await speaker.speak("".join(CHUNKS))
        await speaker.end()
    seen = await asyncio.gather(*viewers)
    for events in seen:
        screen = Screen()
        for stored in encode(events):
            screen.show([stored])
        assert screen.blocks["ann"] == split_blocks(safe_html.to_html("".join(CHUNKS)))
    assert len(parsed) <= len(CHUNKS) + 2


async def test_an_unreadable_debate_ends_the_stream(records: Repository, live: LiveEvents) -> None:
    records.give_up(ID, "broken")
    with records._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE debates SET settings = ''")
    async with aclosing(live.follow(ID)) as groups:
        assert [group async for group in groups] == []
