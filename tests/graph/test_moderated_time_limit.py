"""A statement over its time limit is cut off at a sentence and marked."""

from itertools import count

import pytest

from contend.cli.view.turns import ShownTurn, about
from contend.graph.events import turn_event
from tests.support.floor import asked_for, debate, floor_cast
from tests.support.scripted import Cast, Played

SAID = "The first reason is short. The second one takes its time. The third is never heard at all."


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock by one second per chunk of text."""
    ticks = count()
    monkeypatch.setattr("contend.nodes.calls.stream.seconds_now", lambda: float(next(ticks)))


def talking() -> Cast:
    return floor_cast(ann={"opening": SAID})


async def opened(seconds: float | None) -> Played:
    return await debate(talking(), round_count=0, statement_max_seconds=seconds)


async def test_overlong_statement_is_cut_off_at_a_sentence() -> None:
    played = await opened(9)  # ten pieces of seven characters: into the third sentence
    opening = next(turn for turn in played.turns if turn.phase == "opening")
    assert opening.text == "The first reason is short. The second one takes its time."
    assert opening.length is not None
    assert opening.length.cut_after == 9
    assert opening.status == "ok"
    assert played.degraded == []


async def test_cut_off_is_in_the_event_the_terminal_and_the_record() -> None:
    played = await opened(9)
    (sent,) = (
        each
        for each in played.named("seat_complete")
        if each["metadata"]["phase"] == "opening" and each["metadata"]["seat"] == "ann"
    )
    assert sent["metadata"]["length"]["cut_after"] == 9
    opening = next(turn for turn in played.turns if turn.phase == "opening")
    shown = about(ShownTurn.of_event(turn_event(opening)))
    assert "cut off after 9 s" in shown[0].text
    recorded = played.state["trace"]["rounds"][0]["turns"]
    assert [turn.get("cut_after") for turn in recorded if turn["phase"] == "opening"] == [9, None]


async def test_later_speakers_see_what_was_said_in_time() -> None:
    played = await opened(9)
    (bens,) = (s for s in played.cast.sent_to("ben") if asked_for(s) == "opening")
    assert "takes its time." in bens.user
    assert "never heard" not in bens.user
    assert "Your turn is cut off after 9 seconds, so put what matters most first." in bens.user


@pytest.mark.parametrize("seconds", [None, 60])
async def test_statement_within_its_time_limit_is_not_cut(seconds: float | None) -> None:
    played = await opened(seconds)
    opening = next(turn for turn in played.turns if turn.phase == "opening")
    assert opening.text == SAID
    assert opening.length is not None
    assert opening.length.cut_after is None


async def test_a_text_without_a_whole_sentence_is_cut_at_a_word() -> None:
    played = await opened(1)
    opening = next(turn for turn in played.turns if turn.phase == "opening")
    assert opening.text == "The first reason is…"
