import asyncio
import logging
from bisect import bisect_right
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from contend.debates.events import END_EVENTS
from contend.debates.journal import Group, Journal
from contend.debates.live_html import EventPage, HtmlEvents, read_without_finished_chunks
from contend.debates.repository import Repository
from contend.debates.stored_events import StoredEvent
from contend.debates.waiting import wait_for_event
from contend.graph.errors import DamagedDebate, DatabaseUnavailable
from contend.models.failures import scrub

_PAGE = 500
# Older events are read from the database.
_MOST_IN_MEMORY = 2_000
# The interval between checks of another process's debate; it grows while nothing happens.
_SHORTEST_WAIT = 0.25
_LONGEST_WAIT = 2.0
_SECONDS_BETWEEN_RENDERINGS = 0.25
_SECONDS_BETWEEN_CLEANUPS = 3600.0

_log = logging.getLogger("contend.debates")


@dataclass(frozen=True)
class Viewing:
    after: int = 0
    html: bool = False
    open_chunks_only: bool = False
    follow: bool = True
    idle_seconds: float = 15.0


_EVERYTHING = Viewing()


class LiveEvents:
    def __init__(self, records: Repository) -> None:
        self._records = records
        self._channels: dict[str, _Channel] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    async def follow(
        self, debate_id: str, viewing: Viewing = _EVERYTHING
    ) -> AsyncGenerator[list[StoredEvent]]:
        """Yield events until the debate ends or is deleted; yield an empty list when idle."""
        if not await asyncio.to_thread(self._records.journal.last_seq, debate_id):
            with suppress(DamagedDebate):
                await asyncio.to_thread(self._records.store_missing_events, debate_id)
        if self._closing.is_set():
            return
        after = viewing.after
        channel = self._enter(debate_id, html=viewing.html)
        try:
            found = await channel.read(after, viewing, is_first=True)
            while found:
                if found.reached > after:
                    after = found.reached
                    if found.stored:
                        yield found.stored
                elif not viewing.follow and after >= channel.last:
                    return
                elif not await channel.wait(after, viewing):
                    yield []
                found = await channel.read(after, viewing)
        finally:
            self._leave(debate_id, channel)

    def forget_old_chunks_hourly(self) -> None:
        self._start(self._forget_old_chunks())

    async def close(self) -> None:
        self._closing.set()
        for channel in self._channels.values():
            channel.end()
        await asyncio.gather(*self._tasks)

    def _enter(self, debate_id: str, *, html: bool) -> "_Channel":
        channel = self._channels.get(debate_id)
        if channel is None or channel.has_ended:
            channel = self._channels[debate_id] = _Channel(self._records, debate_id)
            self._start(channel.follow_journal())
        if html and channel.shown is None:
            channel.shown = _RecentEvents()
            self._start(channel.render())
        channel.viewers += 1
        return channel

    def _leave(self, debate_id: str, channel: "_Channel") -> None:
        channel.viewers -= 1
        if not channel.viewers:
            if self._channels.get(debate_id) is channel:
                del self._channels[debate_id]
            channel.end()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # Never cancelled, because a read in progress would leak its connection.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forget_old_chunks(self) -> None:
        while not self._closing.is_set():
            try:
                await asyncio.to_thread(self._records.journal.forget_old_chunks)
            except DatabaseUnavailable:
                pass
            except Exception as error:  # noqa: BLE001 - the next cleanup may succeed
                _log_error("Old events could not be deleted", error)
            await wait_for_event(_SECONDS_BETWEEN_CLEANUPS, self._closing)


class _RecentEvents:
    def __init__(self) -> None:
        self._events: list[StoredEvent] = []
        self._since: int | None = None  # number of the event before these, once known
        self._changed = asyncio.Event()

    @property
    def is_started(self) -> bool:
        return self._since is not None

    @property
    def newest(self) -> StoredEvent | None:
        return self._events[-1] if self._events else None

    @property
    def last(self) -> int:
        return self._events[-1].seq if self._events else self._since or 0

    def start(self, since: int) -> None:
        self._since = since
        self.notify()

    def after(self, seq: int) -> list[StoredEvent] | None:
        """Return the events after `seq`, or None if the next one is not in memory."""
        if self._since is None or seq < self._since:
            return None
        if seq >= self.last:
            return []
        first = bisect_right(self._events, seq, key=lambda each: each.seq)
        return self._events[first : first + _PAGE]

    def append(self, stored: list[StoredEvent]) -> None:
        self._events += stored
        surplus = len(self._events) - _MOST_IN_MEMORY
        if surplus > 0:
            self._since = self._events[surplus - 1].seq
            del self._events[:surplus]
        self.notify()

    def notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, after: int, seconds: float) -> bool:
        return self.last > after or await wait_for_event(seconds, self._changed)


class _Channel:
    def __init__(self, records: Repository, debate_id: str) -> None:
        self._records, self._id = records, debate_id
        self._journal: Journal = records.journal
        self._html = HtmlEvents(self._journal, debate_id)
        self._recent = _RecentEvents()
        self.shown: _RecentEvents | None = None
        """The recent events with HTML, if any viewer wants HTML."""
        self.viewers = 0
        self.has_ended = False
        self._ending = asyncio.Event()
        self._wake_up = asyncio.Event()
        # One reader at a time, so that many new viewers do not use up the threads for debates.
        self._read_lock = asyncio.Lock()
        self._journal.listen(debate_id, self._receive)

    @property
    def last(self) -> int:
        return self._recent.last

    def end(self) -> None:
        self.has_ended = True
        self._journal.stop_listening(self._id, self._receive)
        self._ending.set()
        self._wake_up.set()
        self._notify()

    async def read(
        self, after: int, viewing: Viewing, *, is_first: bool = False
    ) -> EventPage | None:
        return None if self._is_over(after) else await self._read(after, viewing, is_first=is_first)

    async def _read(self, after: int, viewing: Viewing, *, is_first: bool = False) -> EventPage:
        # Only a database read leaves out the chunks of turns that have finished by now.
        known = None
        if not (is_first and viewing.open_chunks_only):
            known = self._recent_for(viewing).after(after)
        if known is not None:
            return EventPage(known, known[-1].seq if known else after)
        if viewing.html:
            async with self._read_lock:
                return await asyncio.to_thread(self._read_stored, after, viewing)
        return await asyncio.to_thread(self._read_stored, after, viewing)

    async def wait(self, after: int, viewing: Viewing) -> bool:
        if self._is_over(after):
            return True
        return await self._recent_for(viewing).wait(after, viewing.idle_seconds)

    def _recent_for(self, viewing: Viewing) -> _RecentEvents:
        return self.shown if viewing.html and self.shown else self._recent

    def _is_over(self, after: int) -> bool:
        newest = self._recent.newest
        is_done = newest is not None and newest.name == END_EVENTS["done"]
        return self.has_ended or (is_done and after >= self._recent.last)

    def _notify(self) -> None:
        self._recent.notify()
        if self.shown:
            self.shown.notify()

    def _read_stored(self, after: int, viewing: Viewing) -> EventPage:
        if viewing.html:
            return self._html.read(after, open_chunks_only=viewing.open_chunks_only)
        if viewing.open_chunks_only:
            return read_without_finished_chunks(self._journal, self._id, after)
        stored = self._journal.read(self._id, after, _PAGE)
        return EventPage(stored, stored[-1].seq if stored else after)

    def _receive(self, group: Group) -> None:
        """Append events stored by this process; if events are missing, wake the reader instead."""
        if self._recent.is_started and group.stored and group.previous == self._recent.last:
            self._recent.append(group.stored)
        else:
            self._wake_up.set()

    async def follow_journal(self) -> None:
        """Read new events when notified; also poll while another process is running the debate."""
        wait = _SHORTEST_WAIT
        try:
            while not self.has_ended:
                wait = _SHORTEST_WAIT if await self._read_new() else min(2 * wait, _LONGEST_WAIT)
                if self._journal.is_run_here(self._id):
                    await self._wake_up.wait()
                else:
                    await wait_for_event(wait, self._wake_up)
                self._wake_up.clear()
        except Exception as error:  # noqa: BLE001 - the viewers must not wait for ever
            _log_error(f"The events of debate {self._id} cannot be followed", error)
            self.end()

    async def _read_new(self) -> bool:
        try:
            if not self._recent.is_started:
                newest = await asyncio.to_thread(self._journal.newest, self._id)
                self._recent.start(newest.seq - 1 if newest else 0)
            update = await asyncio.to_thread(
                self._journal.read_update, self._id, self._recent.last, _PAGE
            )
            if update is None:  # the debate was deleted
                self.end()
                return False
            # This process may have added events during the read.
            new = [each for each in update.stored if each.seq > self._recent.last]
            if new:
                self._recent.append(new)
                if len(update.stored) == _PAGE:
                    self._wake_up.set()
            elif not update.stored and not self._journal.is_run_here(self._id):
                await self._check_end(update.status)
        except DatabaseUnavailable:  # try again later
            return False
        return bool(new)

    async def _check_end(self, status: str) -> None:
        end, newest = END_EVENTS.get(status), self._recent.newest
        if end is None or (newest and newest.name == end):
            return
        try:
            if await asyncio.to_thread(self._records.store_missing_events, self._id):
                self._wake_up.set()
        except DamagedDebate:
            self.end()

    async def render(self) -> None:
        """Render new events as HTML, in batches at intervals."""
        shown = self._recent_for(Viewing(html=True))
        try:
            after = await asyncio.to_thread(self._html.start)
            shown.start(after)
            while not self.has_ended:
                found = await self._read(after, _EVERYTHING)
                if found.stored:
                    after = found.reached
                    shown.append(await asyncio.to_thread(self._html.add, found.stored))
                    await wait_for_event(_SECONDS_BETWEEN_RENDERINGS, self._ending)
                elif not self.has_ended:
                    await self._recent.wait(after, _EVERYTHING.idle_seconds)
        except DatabaseUnavailable:
            self.end()  # viewers reconnect
        except Exception as error:  # noqa: BLE001 - the viewers must not wait for ever
            _log_error(f"The events of debate {self._id} cannot be shown", error)
            self.end()


def _log_error(what: str, error: Exception) -> None:
    _log.error("%s: %s", what, scrub(f"{type(error).__name__}: {error}"))
