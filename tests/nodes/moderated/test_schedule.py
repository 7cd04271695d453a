"""The order of speakers."""

from collections.abc import Sequence

import pytest

from contend.graph.state import Step, Turn
from contend.nodes.moderated.schedule import (
    argument_round,
    closings,
    openings,
    schedule_for,
    stages,
    unreviewed_statement,
    with_sides_reversed,
)
from tests.support.floor import HELD, moderated_settings
from tests.support.scripted import as_state
from tests.support.states import turn

SIDES = [seat for seat in moderated_settings().build_seats() if seat.role == "position_advocate"]


def short(steps: Sequence[Step]) -> list[str]:
    """Return the steps in short form; `>` marks a statement with a request."""
    shown = []
    for before, step in zip([None, *steps], steps, strict=False):
        if step.phase == "request":
            continue
        called = isinstance(before, Step) and before.to == step.seat and before.asks == step.phase
        shown.append(f"{'> ' * called}{step.seat} {step.phase}{f' of {step.to}' * bool(step.to)}")
    return shown


def test_each_side_gives_an_opening_and_a_closing() -> None:
    assert short(openings(["a", "b"])) == ["> a opening", "> b opening"]
    assert short(closings(["a", "b"])) == ["> a closing", "> b closing", "moderator end"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_two_sides_argue_and_rebut_in_both_directions_in_every_round(number: int) -> None:
    assert short(argument_round(["a", "b"], number)) == [
        "> a argument",
        "> b rebuttal of a",
        "> b argument",
        "> a rebuttal of b",
        "moderator summary",
    ]


@pytest.mark.parametrize(("number", "order"), [(1, "abc"), (2, "bca"), (3, "cab"), (4, "abc")])
def test_three_sides_argue_and_rebut_in_rotating_order(number: int, order: str) -> None:
    assert short(argument_round(["a", "b", "c"], number)) == [
        *(f"> {side} argument" for side in order),
        *(f"> {side} rebuttal" for side in order),
        "moderator summary",
    ]


def test_every_statement_has_its_request() -> None:
    steps = [*openings(["a", "b"]), *argument_round(["a", "b"], 1), *closings(["a", "b"])]
    statements = [step for step in steps if step.seat != "moderator"]
    requests = [step for step in steps if step.phase == "request"]
    assert [(r.to, r.asks) for r in requests] == [(s.seat, s.phase) for s in statements]


def test_schedule_depends_on_the_round_and_the_stop() -> None:
    undecided = [side.model_copy(update={"position": ""}) for side in SIDES]
    assert schedule_for(as_state({"round": 0}), SIDES) == openings(["ann", "ben"])
    assert [s.phase for s in schedule_for(as_state({"round": 0}), undecided)][:2] == [
        "positions",
        "request",
    ]
    assert schedule_for(as_state({"round": 2}), SIDES) == argument_round(["ann", "ben"], 2)
    stopped = as_state({"round": 2, "stop": object()})
    assert schedule_for(stopped, SIDES) == closings(["ann", "ben"])
    assert HELD["Ann"] == SIDES[0].position


def said(seat: str, phase: str, number: int = 1, replies_to: str | None = None) -> Turn:
    role = seat if seat in ("moderator", "fact_checker") else "position_advocate"
    made = turn("propose", number, seat=seat)
    return made.model_copy(
        update={
            "id": f"r{number}.{phase}.{seat}",
            "phase": phase,
            "role": role,
            "replies_to": replies_to,
        }
    )


def test_stages_are_openings_rounds_and_closings() -> None:
    turns = [
        said("a", "opening", 0),
        said("b", "opening", 0),
        said("moderator", "request"),
        said("a", "argument"),
        said("b", "rebuttal"),
        said("a", "correction"),
        said("a", "argument", 2),
        said("a", "closing", 2),
    ]
    found = [[t.id for t in stage] for stage in stages(turns)]
    assert found == [
        ["r0.opening.a", "r0.opening.b"],
        ["r1.argument.a", "r1.rebuttal.b"],
        ["r2.argument.a"],
        ["r2.closing.a"],
    ]


def test_reversed_order_keeps_each_rebuttal_after_its_argument() -> None:
    two = [
        said("a", "argument"),
        said("b", "rebuttal", replies_to="r1.argument.a"),
        said("b", "argument"),
        said("a", "rebuttal", replies_to="r1.argument.b"),
    ]
    assert [(t.seat, t.phase) for t in with_sides_reversed(two)] == [
        ("b", "argument"),
        ("a", "rebuttal"),
        ("a", "argument"),
        ("b", "rebuttal"),
    ]
    three = [said(s, "argument") for s in "abc"] + [
        said("a", "rebuttal", replies_to="r1.argument.c"),
        said("b", "rebuttal", replies_to="r1.argument.a"),
        said("c", "rebuttal", replies_to=None),
    ]
    order = [(t.seat, t.phase) for t in with_sides_reversed(three)]
    assert order == [
        ("c", "argument"),
        ("b", "argument"),
        ("a", "argument"),
        ("c", "rebuttal"),
        ("b", "rebuttal"),
        ("a", "rebuttal"),
    ]


def test_the_moderator_reviews_each_statement_once() -> None:
    statement, check = said("a", "argument"), said("fact_checker", "fact_check")
    asked = said("moderator", "request")
    assert unreviewed_statement([]) is None
    assert unreviewed_statement([asked]) is None
    assert unreviewed_statement([asked, statement]) == statement
    assert unreviewed_statement([statement, check, said("a", "correction")]) == statement
    assert unreviewed_statement([statement, asked]) is None
