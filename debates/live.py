"""Hands the events of debates to any number of viewers, whichever process runs the debates."""

import asyncio
import json
from bisect import bisect_right
from collections.abc import AsyncGenerator
from contextlib import suppress

from contend.debates.events import Announcer, Event, start_event
from contend.debates.journal import Group, Journal, StoredEvent
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.debates.waiting import wait_for_event
from contend.graph.errors import DatabaseUnavailable
from contend.graph.events import turn_event

_PAGE = 500
# Viewers that still need older events read them from the database.
_MOST_IN_MEMORY = 2_000
_SECONDS_BETWEEN_READS = 0.25
_LAST_EVENT = "complete"


class LiveEvents:
    def __init__(self, records: Repository) -> None:
        self._records = records
        self._channels: dict[str, _Channel] = {}

    async def follow(
        self, debate_id: str, after: int = 0, idle_seconds: float = 15.0
    ) -> AsyncGenerator[list[StoredEvent]]:
        """Yield all events after one, as they come; an empty list when nothing came for a while.

        Ends after the last event of a debate that is done, and when it is deleted.
        """
        channel = self._enter(debate_id)
        try:
            while True:
                found = await channel.read(after)
                if found is None:
                    return
                if found:
                    after = found[-1].seq
                    yield found
                    if found[-1].name == _LAST_EVENT:
                        return
                elif not await channel.wait(after, idle_seconds):
                    yield []
        finally:
            await self._leave(debate_id, channel)

    def close(self) -> None:
        """End all streams."""
        for channel in self._channels.values():
            channel.end()

    def _enter(self, debate_id: str) -> "_Channel":
        channel = self._channels.get(debate_id)
        if channel is None:
            channel = self._channels[debate_id] = _Channel(self._records, debate_id)
        channel.viewers += 1
        return channel

    async def _leave(self, debate_id: str, channel: "_Channel") -> None:
        channel.viewers -= 1
        if not channel.viewers and self._channels.get(debate_id) is channel:
            del self._channels[debate_id]
            await channel.close()


class _Channel:
    """The newest events of one debate, read once for all its viewers."""

    def __init__(self, records: Repository, debate_id: str) -> None:
        self._records, self._id = records, debate_id
        self._journal: Journal = records.journal
        self.viewers = 0
        self._recent: list[StoredEvent] = []
        self._since: int | None = None  # the event before the first recent one, once known
        self._ended = self._closing = False
        self._changed = asyncio.Event()
        self._gap = asyncio.Event()
        self._journal.listen(debate_id, self._receive)
        self._reading = asyncio.create_task(self._read_others())

    async def close(self) -> None:
        self._journal.stop_listening(self._id)
        self._closing = True
        self._gap.set()
        await self._reading  # not cancelled: a read in progress would leak its connection

    def end(self) -> None:
        self._ended = True
        self._notify()

    async def read(self, after: int) -> list[StoredEvent] | None:
        """Return events after one, from memory or the database; None if no more will come."""
        if self._ended:
            return None
        if self._since is not None and after >= self._since:
            first = bisect_right(self._recent, after, key=lambda each: each.seq)
            return self._recent[first : first + _PAGE]
        return await self._stored(after)

    async def wait(self, after: int, seconds: float) -> bool:
        """Wait for an event after the given one; return False if none came in time."""
        changed = self._changed
        if self._last > after or self._ended:
            return True
        return await wait_for_event(seconds, changed)

    @property
    def _last(self) -> int:
        return self._recent[-1].seq if self._recent else self._since or 0

    def _receive(self, group: Group) -> None:
        """Take events that this process stored, if none are missing before them."""
        if self._since is not None and group.previous == self._last:
            self._append(group.stored)
        else:
            self._gap.set()

    def _append(self, stored: list[StoredEvent]) -> None:
        self._recent += stored
        surplus = len(self._recent) - _MOST_IN_MEMORY
        if surplus > 0:
            self._since = self._recent[surplus - 1].seq
            del self._recent[:surplus]
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _read_others(self) -> None:
        """Read what other processes stored, at regular intervals."""
        while True:
            with suppress(DatabaseUnavailable):
                await self._read_new()
            if self._ended or self._closing:
                return
            await wait_for_event(_SECONDS_BETWEEN_READS, self._gap)
            self._gap.clear()

    async def _read_new(self) -> None:
        if self._since is None:
            self._since = await asyncio.to_thread(self._journal.last_seq, self._id)
            self._notify()
        stored = await self._stored(self._last)
        # The journal may have added events while the database was read.
        new = [each for each in stored if each.seq > self._last]
        if new:
            self._append(new)
        elif not stored and not await asyncio.to_thread(self._records.has, self._id):
            self.end()

    async def _stored(self, after: int) -> list[StoredEvent]:
        return await asyncio.to_thread(self._journal.read, self._id, after, _PAGE, chunks=True)


def events_of_record(debate: StoredDebate) -> list[StoredEvent]:
    """Return the main events of a debate from before events were stored."""
    events: list[Event] = []
    announcer = Announcer(debate.id, events.append)
    announcer.pass_on(start_event(debate))
    for turn in debate.turns:
        announcer.pass_on(turn_event(turn))
    if debate.status == "done":
        announcer.say("complete", debate.state.get("round"), debate.state.get("final_answer", ""))
    elif debate.status == "failed":
        announcer.say("error", debate.state.get("round"), debate.error or "")
    else:
        announcer.say("paused", debate.state.get("round"))
    return [StoredEvent(each["seq"], each["event"], json.dumps(each)) for each in events]
