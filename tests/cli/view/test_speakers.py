"""Which seats speak alone or in parallel, read from the events."""

from collections.abc import Mapping
from typing import Any

import pytest

from contend.cli.view.speakers import Speakers

AT_ONCE = {"active": ["ann", "ben"], "at_once": True, "first": ["ann", "ben"]}
IN_TURN = AT_ONCE | {"at_once": False, "first": ["ann"]}
UNTOLD: dict[str, Any] = {}
CASES: dict[str, tuple[Mapping[str, Any], list[str], str, list[str]]] = {
    "a round spoken at once": (AT_ONCE, [], "ann", ["ann", "ben"]),
    "a judge before such a round": (AT_ONCE, ["judge"], "judge", []),
    "a round spoken in turn": (IN_TURN, [], "ben", []),
    "the same, once asked": (IN_TURN, ["ben"], "ben", []),
    "two asked at once, whatever was told": (IN_TURN, ["ben", "ann"], "ann", ["ben", "ann"]),
    "nothing told, one asked": (UNTOLD, ["ann"], "ann", []),
    "nothing told, two asked": (UNTOLD, ["ann", "ben"], "ben", ["ann", "ben"]),
    "nothing told, nobody asked": (UNTOLD, [], "ann", ["ann"]),
}


@pytest.mark.parametrize(("told", "asked", "seat", "speaking_with"), CASES.values(), ids=CASES)
def test_parallel_speakers_are_detected(
    told: Mapping[str, Any], asked: list[str], seat: str, speaking_with: list[str]
) -> None:
    floor = Speakers()
    floor.open_round(told)
    for each in asked:
        floor.ask(each, "propose")
    assert floor.speaking_with(seat, "propose") == speaking_with


@pytest.mark.parametrize(
    ("told", "first"),
    [
        (AT_ONCE, ["ann", "ben"]),
        (AT_ONCE | {"first": ["judge"]}, ["judge"]),
        ({"active": ["ann"]}, ["ann"]),
        (UNTOLD, []),
    ],
)
def test_first_speakers_of_a_round_are_returned(told: Mapping[str, Any], first: list[str]) -> None:
    assert Speakers().open_round(told) == first


def test_finished_seats_and_other_phases_are_not_counted() -> None:
    floor = Speakers()
    floor.ask("ann", "propose")
    floor.ask("ben", "conviction_check")
    assert floor.speaking_with("ben", "conviction_check") == []
    floor.ask("ann", "conviction_check")
    assert floor.speaking_with("ben", "conviction_check") == ["ann", "ben"]
    floor.leave("ann", "propose")
    assert floor.speaking_with("ben", "conviction_check") == ["ann", "ben"]
    floor.leave("ann", "conviction_check")
    assert floor.speaking_with("ben", "conviction_check") == []
    floor.open_round(UNTOLD)
    assert floor.speaking_with("ben", "conviction_check") == ["ben"]
