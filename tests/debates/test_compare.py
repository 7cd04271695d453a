"""Positions of seats in a comparison of two debates."""

from typing import Any

from contend.debates.compare import compare
from contend.nodes.record import build_record
from tests.support.scripted import (
    THREAD,
    Line,
    concedes,
    forum_cast,
    forum_settings,
    play,
    refine_settings,
    refining_cast,
)

CONVERGE: dict[str, Any] = {"judge_mode": "self_convergence", "max_rounds": 3}


def as_record(played: Any, protocol: str) -> dict[str, Any]:
    record = build_record(played.state, THREAD).as_json()
    about = {"protocol": protocol, "settings": played.state["settings"]}
    turns = [turn.model_dump(mode="json") for turn in played.state["turns"]]
    return {**record, **about, "turns": turns, "stop_reason": None}


def positions(first: Any, second: Any, protocol: str = "forum") -> dict[str, tuple[str, str]]:
    found = compare(as_record(first, protocol), as_record(second, protocol)).facts
    return {fact.name: (fact.first, fact.second) for fact in found if "osition" in fact.name}


async def test_position_is_the_last_speech_or_the_concession() -> None:
    settings = forum_settings(**CONVERGE)
    first = await play(forum_cast(), settings=settings)
    quote = "Ann argues in round 1"
    ben: dict[str, Line] = {
        "conviction": concedes("Ann", quote=quote),
        "speech": "We wait.\n\nAnswer: in May",
    }
    second = await play(forum_cast(ben=ben), settings=settings)
    assert positions(first, second) == {
        "Position of Ben": ("Ben argues in round 3.", "in May (conceded to Ann, round 2)"),
    }
    assert positions(second, second) == {}


async def test_a_long_position_is_shortened() -> None:
    settings = forum_settings(max_rounds=1)
    other = forum_cast(ann={"speech": "We split it. " * 60})
    found = positions(
        await play(forum_cast(), settings=settings), await play(other, settings=settings)
    )
    (name, (_, second)), *more = found.items()
    assert (name, more) == ("Position of Ann", [])
    assert second.startswith("We split it. We")
    assert second.endswith("…")
    assert len(second) <= 200


async def test_refine_debates_have_no_positions() -> None:
    settings = refine_settings()
    first = await play(refining_cast(), settings=settings)
    second = await play(refining_cast(ann="Another answer."), settings=settings)
    assert positions(first, second, "refine") == {}
