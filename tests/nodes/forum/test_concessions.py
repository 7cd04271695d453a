"""Elimination of seats that concede."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.graph.readings import Conviction
from contend.nodes.forum.concessions import seats_that_stay, upheld_concession

ABC = ("a", "b", "c")


def leaving(
    concessions: Mapping[str, str], active: Sequence[str], credit: Mapping[str, int]
) -> list[str]:
    kept = seats_that_stay(concessions, active, credit)
    return [seat for seat in active if seat in concessions and seat not in kept]


@pytest.mark.parametrize(
    ("what", "concessions", "active", "credit", "gone"),
    [
        ("nobody concedes", {}, ABC, {}, []),
        ("one concedes", {"a": "b"}, ABC, {}, ["a"]),
        ("two concede to the third", {"a": "c", "b": "c"}, ABC, {}, ["a", "b"]),
        ("a chain: whoever concedes leaves", {"a": "b", "b": "c"}, ABC, {}, ["a", "b"]),
        ("of two in a circle, the first stays", {"a": "b", "b": "a"}, "ab", {}, ["b"]),
        ("or the one conceded to before", {"a": "b", "b": "a"}, "ab", {"b": 1}, ["a"]),
        ("a pair's circle beside a third", {"a": "b", "b": "a"}, ABC, {}, ["b"]),
        ("who is conceded to most stays", {"a": "b", "b": "a", "c": "b"}, ABC, {}, ["a", "c"]),
        ("now counts before earlier", {"a": "b", "b": "a", "c": "b"}, ABC, {"a": 5}, ["a", "c"]),
        ("three in a circle", {"a": "b", "b": "c", "c": "a"}, ABC, {}, ["b", "c"]),
        ("three in a circle, one with credit", {"a": "b", "b": "c", "c": "a"}, ABC, {"c": 1},
         ["a", "b"]),
        ("a circle and one that leads into it", {"a": "b", "b": "a", "c": "a"}, "abcd", {},
         ["b", "c"]),
        ("two circles beside a fifth", {"a": "b", "b": "a", "c": "d", "d": "c"}, "abcde", {},
         ["b", "d"]),
        ("two circles and nobody else", {"a": "b", "b": "a", "c": "d", "d": "c"}, "abcd", {},
         ["b", "c", "d"]),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else "",
)  # fmt: skip
def test_eliminates_seats_that_concede(
    what: str,
    concessions: Mapping[str, str],
    active: Sequence[str],
    credit: Mapping[str, int],
    gone: list[str],
) -> None:
    assert leaving(concessions, active, credit) == gone


@pytest.mark.parametrize(
    ("concessions", "credit", "stays", "rule"),
    [
        (
            {"a": "b", "b": "a", "c": "b"},
            {"a": 2},
            "b",
            "more conceded to it than to any other of them",
        ),
        ({"a": "b", "b": "c", "c": "a"}, {"c": 1}, "c", "it had convinced more before"),
        ({"a": "b", "b": "c", "c": "a"}, {}, "a", "it sits first at the table"),
        ({"a": "b", "b": "c", "c": "a"}, {"b": 1, "c": 1}, "b", "it sits first at the table"),
    ],
)
def test_the_rule_that_kept_a_seat_is_named(
    concessions: Mapping[str, str], credit: Mapping[str, int], stays: str, rule: str
) -> None:
    kept = seats_that_stay(concessions, ABC, credit)
    assert list(kept) == [stays]
    assert rule in kept[stays]


@given(st.data())
def test_never_eliminates_all_seats_or_one_that_did_not_concede(data: st.DataObject) -> None:
    active = list("abcdefgh")[: data.draw(st.integers(2, 8))]
    concessions = {
        seat: data.draw(st.sampled_from([other for other in active if other != seat]))
        for seat in active
        if data.draw(st.booleans())
    }
    gone = leaving(concessions, active, {})
    assert set(gone) <= set(concessions)
    assert len(gone) < len(active)
    if len(concessions) == len(active):
        assert len(gone) == len(active) - 1
    elif concessions and len(concessions) == 1:
        assert gone == list(concessions)


def said(to: str | None, *, supported: bool) -> Conviction:
    return Conviction(convinced=True, convinced_by=to, argument="x", quote_found=supported)


@pytest.mark.parametrize(
    ("answers", "verify", "upheld"),
    [
        ([], True, None),
        ([None], True, None),
        ([said("b", supported=True)], True, "b"),
        ([said("b", supported=False)], True, None),
        ([said("b", supported=False)], False, "b"),
        ([said("b", supported=False), said("b", supported=False)], True, "b"),
        ([said("b", supported=False), said("c", supported=True)], True, None),
        ([said("b", supported=False), None], True, None),
    ],
)
def test_a_concession_counts_only_if_it_is_upheld(
    answers: list[Conviction | None], verify: bool, upheld: str | None
) -> None:
    assert upheld_concession(answers, verify=verify) == upheld
