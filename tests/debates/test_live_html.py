"""HTML of unfinished turns shows every viewer the text so far."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contend.debates import live_html as module
from contend.debates.events import Announcer, Event
from contend.debates.exports.safe_html import to_html
from contend.debates.live_html import HtmlEvents, read_without_finished_chunks
from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.stored_events import StoredEvent, encode, insert_events
from contend.graph.events import EventName
from tests.debates.exports.test_safe_html import split_blocks

ID = "0" * 36
TEXT = (
    "# Plan\n\nKeep *it*,\nfor now.\n\n- one\n- two\n\n```python\nx = 1\n\ny = 2\n```\n\nThe end."
)


@pytest.fixture
def records() -> Iterator[Repository]:
    with closing(open_repository()) as opened:
        opened.start(ID, "adversarial", {"question": "Why?", "seats": []}, {}, demonstration=False)
        yield opened


class Debate:
    """Store events immediately."""

    def __init__(self, records: Repository) -> None:
        self.records, self.events = records, list[StoredEvent]()
        self._announcer = Announcer(ID, self._store)

    def _store(self, event: Event) -> None:
        self.events += encode([event])
        with self.records._engine.begin() as connection:
            insert_events(connection, {ID: self.events[-1:]})

    def say(self, name: EventName, content: str = "", seat: str = "ann", **more: Any) -> None:
        self._announcer.say(name, 1, content, seat=seat, phase="propose", **more)

    def chunks(self, *texts: str, seat: str = "ann") -> None:
        for each in texts:
            self.say("seat_chunk", each, seat)

    def since(self, seq: int) -> list[StoredEvent]:
        return [each for each in self.events if each.seq > seq]


class Screen:
    """Apply events to the displayed turns as the web page does."""

    def __init__(self) -> None:
        self.last = 0
        self.blocks: dict[str, list[str]] = {}

    def show(self, events: list[StoredEvent]) -> None:
        for stored in events:
            assert stored.seq > self.last
            self.last = stored.seq
            event = stored.as_event()
            about = event["metadata"]
            seat = str(about.get("seat"))
            if about.get("restart") or (stored.is_chunk and not event["content"]):
                self.blocks[seat] = []
            elif stored.is_chunk and "html" in about:
                shown = self.blocks.setdefault(seat, [])
                assert about["block"] <= len(shown)
                shown[about["block"] :] = split_blocks(about["html"])
            elif stored.name == "seat_complete":
                self.blocks[seat] = split_blocks(about["html"])


def blocks_of(text: str) -> list[str]:
    return split_blocks(to_html(text))


def test_all_viewers_see_the_text_so_far(records: Repository) -> None:
    debate, html = Debate(records), HtmlEvents(records.journal, ID)
    always = Screen()
    assert html.start() == 0
    debate.chunks("")
    for at in range(0, len(TEXT), 7):
        debate.chunks(*filter(None, (TEXT[at : at + 3], TEXT[at + 3 : at + 7])))
        always.show(html.add(debate.since(always.last)))
        expected = blocks_of(TEXT[: at + 7])
        assert always.blocks["ann"] == expected
        for open_chunks_only in (False, True):
            late = Screen()
            late.show(html.read(0, open_chunks_only=open_chunks_only).stored)
            assert late.blocks["ann"] == expected
        returned = Screen()
        returned.show(HtmlEvents(records.journal, ID).read(0, open_chunks_only=True).stored)
        assert returned.blocks["ann"] == expected


@settings(max_examples=40)
@given(
    pieces=st.lists(
        st.sampled_from(["", "a", "b\n\n", "- x\n", "```\n", "**c**", "\n"]), max_size=30
    ),
    moves=st.lists(st.sampled_from(["stay", "drop", "restart"]), min_size=30, max_size=30),
)
def test_a_reconnecting_viewer_sees_the_whole_text(pieces: list[str], moves: list[str]) -> None:
    """Includes the case where all viewers left, so rendering restarts."""
    journal, shown = FakeJournal(), Screen()
    html, text = HtmlEvents(journal, ID), ""  # type: ignore[arg-type]
    reached = html.start()
    for seq, (piece, move) in enumerate(zip(["", *pieces], moves, strict=False), 1):
        text = text + piece if piece else ""
        journal.say(seq, piece)
        if move == "restart":
            html = HtmlEvents(journal, ID)  # type: ignore[arg-type]
            reached = html.start()
        else:
            added = html.add(journal.read(ID, reached))
            reached = seq
            if move == "stay" and added[0].seq == shown.last + 1:
                shown.show(added)
    shown.show(html.read(shown.last, open_chunks_only=True).stored)
    assert shown.blocks.get("ann", []) == blocks_of(text)


class FakeJournal:
    def __init__(self) -> None:
        self._stored: list[StoredEvent] = []

    def say(self, seq: int, content: str) -> None:
        events: list[Event] = []
        Announcer(ID, events.append, seq - 1).say("seat_chunk", 1, content, seat="ann")
        self._stored += encode(events)

    def newest(self, _: str) -> StoredEvent | None:
        return self._stored[-1] if self._stored else None

    def read(self, _: str, after: int, __: int = 0, *, until: int = 999) -> list[StoredEvent]:
        return [each for each in self._stored if after < each.seq <= until]

    def read_without_chunks(self, *_: Any) -> list[StoredEvent]:
        return []

    def last_resumed(self, _: str) -> int:
        return 0


@pytest.mark.parametrize("is_new", [False, True])
@pytest.mark.parametrize("again", ["resumed", "degraded", "empty chunk"])
def test_a_restarted_turn_discards_its_earlier_text(
    records: Repository, again: str, is_new: bool
) -> None:
    debate, html = Debate(records), HtmlEvents(records.journal, ID)
    html.start()
    debate.chunks("", "Half a ```sentence", "\n\nand more")
    if not is_new:
        html.add(debate.events)
    if again == "resumed":
        debate.say("resumed")
    elif again == "degraded":
        debate.say("degraded", restart=True)
    if again != "degraded":
        debate.chunks("")
    debate.chunks("Another ", "beginning")
    html = HtmlEvents(records.journal, ID) if is_new else html
    new = html.read(0, open_chunks_only=False).stored if is_new else html.add(debate.since(3))
    screen = Screen()
    screen.show(new)
    assert screen.blocks["ann"] == ["<p>Another beginning</p>"]


def test_only_the_last_chunk_of_each_turn_carries_html(records: Repository) -> None:
    debate, html = Debate(records), HtmlEvents(records.journal, ID)
    html.start()
    debate.chunks("", "a", "b")
    debate.chunks("x", seat="ben")
    debate.chunks("c")
    debate.chunks("d", seat="eve")
    debate.say("seat_complete", "d", seat="eve")
    rendered = [
        each.seq for each in html.add(debate.events) if "html" in each.as_event()["metadata"]
    ]
    assert rendered == [4, 5, 7]


def test_renders_only_events_the_viewer_has_not_seen(
    records: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []

    def note(text: str) -> str:
        rendered.append(text)
        return text

    monkeypatch.setattr(module, "to_html", note)
    debate, html = Debate(records), HtmlEvents(records.journal, ID)
    for each in "abc":
        debate.say("seat_complete", each)
    for _ in range(2):
        assert [each.seq for each in html.read(2, open_chunks_only=False).stored] == [3]
    assert rendered == ["c"]


def test_reads_older_events_in_pages(records: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAGE", 2)
    debate, html = Debate(records), HtmlEvents(records.journal, ID)
    debate.chunks("", "a", "b", "c", "d")
    screen = Screen()
    while (page := html.read(screen.last, open_chunks_only=False)).stored:
        screen.show(page.stored)
        assert page.reached == screen.last
    assert screen.blocks["ann"] == ["<p>abcd</p>"]


def test_chunks_of_complete_turns_are_left_out(records: Repository) -> None:
    debate = Debate(records)
    debate.chunks("", "a")
    debate.chunks("", "x", seat="ben")
    debate.say("seat_complete", "a")
    debate.chunks("y", seat="ben")
    expected = [3, 4, 5, 6]
    plain = read_without_finished_chunks(records.journal, ID, 0)
    html = HtmlEvents(records.journal, ID).read(0, open_chunks_only=True)
    for page in (plain, html):
        assert ([each.seq for each in page.stored], page.reached) == (expected, 6)
    assert read_without_finished_chunks(records.journal, ID, 6).reached == 6
