"""Objections with their replies, reviews and status."""

from contend.graph.readings import Assessment, Point
from contend.graph.state import Turn
from contend.nodes.prompting.points import list_points, track_points
from tests.support.states import assessed, turn

COST = Point(id="S1", severity="critical", status="open", text="The cost is guessed.")
PLAN = Point(id="S2", severity="major", status="open", text="No migration plan.")
FIRST_REPLY = "## Replies\n**S1** (critical): I cite a quote now.\n\n## Revised answer\nKeep it."


def _critiques(*assessments: Assessment) -> list[Turn]:
    return [turn("critique", at, assessment=each) for at, each in enumerate(assessments, 1)]


def _said(point: Point, status: str, note: str) -> Point:
    return point.model_copy(update={"status": status, "note": note})


def test_a_point_has_its_text_replies_reviews_and_who_settled_it() -> None:
    turns = [
        turn("propose", 1),
        turn("critique", 1, assessment=assessed(COST)),
        turn("propose", 2, FIRST_REPLY),
        turn("critique", 2, assessment=assessed(_said(COST, "partial", "One quote is too few."))),
        turn("propose", 3, "- S1: Three quotes now.\n- S7: nothing of ours."),
        turn("critique", 3, assessment=assessed(_said(COST, "resolved", "Now sourced."))),
        turn("critique", 4, assessment=assessed(_said(COST, "resolved", "Still fine."))),
    ]
    (point,) = track_points(turns)
    assert (point.text, point.severity, point.status) == (COST.text, "critical", "resolved")
    assert (point.round_raised, point.raised_by) == (1, "skeptic")
    assert [(each.round, each.seat, each.text) for each in point.replies] == [
        (2, "proposer", "I cite a quote now."),
        (3, "proposer", "Three quotes now."),
    ]
    assert [(each.round, each.status, each.note) for each in point.reviews] == [
        (2, "partial", "One quote is too few."),
        (3, "resolved", "Now sourced."),
    ]
    assert (point.round_settled, point.settled_by, point.note) == (3, "skeptic", "Now sourced.")


def test_a_point_raised_again_is_not_settled() -> None:
    settled = _said(COST, "resolved", "Sourced.")
    (point,) = track_points(_critiques(assessed(COST), assessed(settled), assessed(COST)))
    assert (point.status, point.round_settled, point.settled_by) == ("open", None, None)


def test_restores_the_text_of_a_stored_point_that_has_only_its_note() -> None:
    replaced = COST.model_copy(update={"status": "resolved", "text": "Now sourced."})
    (point,) = track_points(_critiques(assessed(COST), assessed(replaced)))
    assert (point.text, point.note) == ("The cost is guessed.", "Now sourced.")


def test_every_point_has_its_latest_status() -> None:
    new = Point(id="S10", severity="minor", status="open", text="A typo.")
    first, second = assessed(COST, PLAN), assessed(_said(COST, "resolved", ""), new)
    assert [(p.id, p.status) for p in track_points(_critiques(first, second))] == [
        ("S1", "resolved"),
        ("S2", "dropped"),
        ("S10", "open"),
    ]
    third = assessed(PLAN)
    assert [(p.id, p.status) for p in track_points(_critiques(first, second, third))] == [
        ("S1", "resolved"),
        ("S2", "open"),
        ("S10", "dropped"),
    ]


def test_speakers_see_the_objection_and_the_latest_note() -> None:
    partly = assessed(_said(COST, "partial", "One quote is too few."))
    points = track_points(_critiques(assessed(COST), partly))
    assert list_points(points, lambda _, text: text) == (
        "S1 🔴 (partly resolved) The cost is guessed. Latest note: One quote is too few."
    )
