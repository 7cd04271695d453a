import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from contend.debates.events import Event
from contend.debates.exports.safe_html import StreamedHtml, to_html
from contend.debates.journal import Journal
from contend.debates.stored_events import StoredEvent

_PAGE = 500
# The content of these events is Markdown written by a model.
_TEXTS = frozenset({"seat_complete", "final_complete", "complete", "fact_check", "scores"})

_Turn = tuple[Any, ...]


@dataclass(frozen=True)
class EventPage:
    stored: list[StoredEvent]
    reached: int
    """The number of the last event read."""


@dataclass
class _OpenTurn:
    chunks: list[StoredEvent] = field(default_factory=list)
    text: StreamedHtml = field(default_factory=StreamedHtml)
    is_shown: bool = False


class HtmlEvents:
    """Adds HTML to events. The last new chunk of a turn gets the HTML of all changed blocks."""

    def __init__(self, journal: Journal, debate_id: str) -> None:
        self._journal, self._id = journal, debate_id
        self._lock = Lock()
        self._last: int | None = None
        self._open: dict[_Turn, _OpenTurn] = {}
        self._rendered: dict[int, StoredEvent] = {}

    def start(self) -> int:
        with self._lock:
            return self._start()

    def add(self, stored: list[StoredEvent]) -> list[StoredEvent]:
        with self._lock:
            changed = {turn for each in stored if (turn := self._track(each))}
            turns = [self._open[turn] for turn in changed if turn in self._open]
            patches = {
                turn.chunks[-1].seq: _changed_html(turn) for turn in turns if turn.text.has_text
            }
            self._last = stored[-1].seq
            return [self._with_html(each, patches) for each in stored]

    def read(self, after: int, *, open_chunks_only: bool) -> EventPage:
        with self._lock:
            last = self._start()
            if open_chunks_only:
                chunks = [each for turn in self._open.values() for each in turn.chunks]
                stored = self._journal.read_without_chunks(self._id, after, last)
                stored += [each for each in chunks if each.seq > after]
                stored.sort(key=lambda each: each.seq)
            else:
                stored = self._journal.read(self._id, after, _PAGE, until=last)
                last = stored[-1].seq if len(stored) == _PAGE else last
            written = [turn for turn in self._open.values() if turn.text.has_text]
            whole = {turn.chunks[-1].seq: (0, turn.text.whole()) for turn in written}
            return EventPage([self._with_html(each, whole) for each in stored], max(last, after))

    def _start(self) -> int:
        if self._last is None:
            newest = self._journal.newest(self._id)
            self._last = newest.seq if newest else 0
            resumed = self._journal.last_resumed(self._id)  # unfinished turns restart here
            for each in self._journal.read(self._id, resumed, until=self._last):
                self._track(each)
        return self._last

    def _track(self, stored: StoredEvent) -> _Turn | None:
        if stored.is_chunk:
            event = stored.as_event()
            turn = _turn(event)
            if not event["content"]:  # the turn starts, possibly again
                self._open.pop(turn, None)
            written = self._open.setdefault(turn, _OpenTurn())
            written.chunks.append(stored)
            written.text.add(event["content"])
            return turn
        if stored.name == "seat_complete":
            self._open.pop(_turn(stored.as_event()), None)
        elif stored.name == "resumed":
            self._open.clear()
        elif stored.name == "degraded" and (about := stored.as_event()["metadata"]).get("restart"):
            seat = about.get("seat")
            self._open = {turn: text for turn, text in self._open.items() if turn[0] != seat}
        return None

    def _with_html(
        self, stored: StoredEvent, patches: Mapping[int, tuple[int, str]]
    ) -> StoredEvent:
        if not stored.is_chunk:
            if stored.seq not in self._rendered:
                self._rendered[stored.seq] = _add_html(stored)
            return self._rendered[stored.seq]
        if stored.seq not in patches:
            return stored
        event = stored.as_event()
        event["metadata"]["block"], event["metadata"]["html"] = patches[stored.seq]
        return _encode(event)


def _add_html(stored: StoredEvent) -> StoredEvent:
    if stored.name not in _TEXTS:
        return stored
    event = stored.as_event()
    event["metadata"]["html"] = to_html(event["content"])
    return _encode(event)


def read_without_finished_chunks(journal: Journal, debate_id: str, after: int) -> EventPage:
    stored = journal.read(debate_id, after)
    finished: set[_Turn] = set()
    kept: list[StoredEvent] = []
    for each in reversed(stored):
        if each.name == "seat_complete":
            finished.add(_turn(each.as_event()))
        if not each.is_chunk or _turn(each.as_event()) not in finished:
            kept.append(each)
    return EventPage(kept[::-1], stored[-1].seq if stored else after)


def _changed_html(turn: _OpenTurn) -> tuple[int, str]:
    patch = turn.text.render()
    if turn.is_shown:
        return patch
    turn.is_shown = True
    return 0, turn.text.whole()


def _turn(event: Event) -> _Turn:
    about = event["metadata"]
    return about.get("seat"), about.get("phase"), event["round"]


def _encode(event: Event) -> StoredEvent:
    text = json.dumps(event, separators=(",", ":"))
    return StoredEvent(event["seq"], event["event"], text)
