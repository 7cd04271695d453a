from collections.abc import Callable, Iterable, Sequence

from contend.graph.readings import (
    SEVERITY_MARKS,
    Assessment,
    Point,
    PointReply,
    PointReview,
    TrackedPoint,
)
from contend.graph.state import DebateState, Turn
from contend.models.replies.critique import note_on
from contend.models.replies.point_replies import find_replies

_STATUS_WORDS = {"partial": "partly resolved", "dropped": "not raised again"}
_REPLYING = ("propose", "remark")


def points_of(state: DebateState) -> list[TrackedPoint]:
    return track_points(state.get("turns", []))


def track_points(turns: Iterable[Turn]) -> list[TrackedPoint]:
    ledger: dict[str, TrackedPoint] = {}
    for turn in turns:
        if isinstance(turn.assessment, Assessment):
            _review(ledger, turn, turn.assessment)
        elif turn.phase in _REPLYING and turn.status not in ("kept_previous", "failed"):
            _add_replies(ledger, turn)
    return sorted(ledger.values(), key=lambda point: int(point.id[1:]))


def _review(ledger: dict[str, TrackedPoint], turn: Turn, assessment: Assessment) -> None:
    for point in assessment.points:
        before = ledger.get(point.id)
        ledger[point.id] = _reviewed(before, turn, point) if before else _raised(turn, point)
    named = {point.id for point in assessment.points}
    for before in [*ledger.values()]:
        if before.id not in named and before.status in ("open", "partial"):
            dropped = before.model_copy(update={"status": "dropped", "note": ""})
            ledger[before.id] = _reviewed(before, turn, dropped)


def _raised(turn: Turn, point: Point) -> TrackedPoint:
    raised = TrackedPoint(
        **point.model_dump(exclude={"note"}), round_raised=turn.round, raised_by=turn.seat
    )
    return _settled(raised, turn)


def _reviewed(before: TrackedPoint, turn: Turn, point: Point) -> TrackedPoint:
    if before.status == point.status == "resolved":  # it is only repeated
        return before
    # Release 0.2 and earlier stored the note as the text.
    note = point.note or note_on(before.text, point.text)
    review = PointReview(
        round=turn.round,
        seat=turn.seat,
        turn=turn.id,
        severity=point.severity,
        status=point.status,
        note=note,
    )
    update = {
        "severity": point.severity,
        "status": point.status,
        "text": before.text or point.text,
        "note": note or before.note,
        "reviews": (*before.reviews, review),
    }
    return _settled(before.model_copy(update=update), turn)


def _settled(point: TrackedPoint, turn: Turn) -> TrackedPoint:
    is_resolved = point.status == "resolved"
    number, seat = (turn.round, turn.seat) if is_resolved else (None, None)
    return point.model_copy(update={"round_settled": number, "settled_by": seat})


def _add_replies(ledger: dict[str, TrackedPoint], turn: Turn) -> None:
    for point_id, text in find_replies(turn.text, ledger).items():
        reply = PointReply(round=turn.round, seat=turn.seat, turn=turn.id, text=text)
        point = ledger[point_id]
        ledger[point_id] = point.model_copy(update={"replies": (*point.replies, reply)})


def list_points(points: Sequence[Point], fenced: Callable[[str, str], str]) -> str:
    if not points:
        return "None on record."
    return fenced("points", "\n".join(map(_line, points)))


def _line(point: Point) -> str:
    status = _STATUS_WORDS.get(point.status, point.status)
    note = f" Latest note: {point.note}" if point.note else ""
    return f"{point.id} {SEVERITY_MARKS[point.severity]} ({status}) {point.text}{note}"
