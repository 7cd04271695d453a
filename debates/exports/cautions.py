from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from contend.debates.exports import wording
from contend.graph.values import NOT_DEBATING

Data = Mapping[str, Any]

# These problems mean that a seat's turn is missing or was replaced.
_MISSING = frozenset(
    {"failed", "sat_out", "kept_previous", "generic_feedback", "judge_silent", "not_merged"}
)


def cautions_of(record: Data) -> list[str]:
    given = record["points"]["open"], record["seats"], record["degraded"]
    return answer_cautions(*given, demonstration=record["demonstration"])


def answer_cautions(
    points: Iterable[Data], seats: Sequence[Data], degraded: Iterable[Data], *, demonstration: bool
) -> list[str]:
    found = [_open_words(points), _missing_words(seats, list(degraded))]
    if not demonstration:  # the notice about the demo model already covers its judge
        found.append(_judge_words(seats))
    return [each for each in found if each]


def _open_words(points: Iterable[Data]) -> str:
    left = [
        point["id"]
        for point in points
        if point["severity"] == "critical" and point["status"] in ("open", "partial")
    ]
    if not left:
        return ""
    many = "1 critical objection is" if len(left) == 1 else f"{len(left)} critical objections are"
    return f"{many} still open: {wording.listed(left)}."


def _missing_words(seats: Sequence[Data], degraded: Sequence[Data]) -> str:
    # A judge that could not score the answer affects only the score, not the answer.
    unrated = {_place(each) for each in degraded if each["what"] == "not_rated"}
    rounds: dict[str, set[int]] = {}
    for each in degraded:
        seat, number = _place(each)
        if seat and each["what"] in _MISSING and (seat, number) not in unrated:
            rounds.setdefault(seat, set()).add(number)
    names = wording.seat_names(seats)
    who = [f"{names.get(seat, seat)} ({_rounds(numbers)})" for seat, numbers in rounds.items()]
    return f"Turns are missing or were replaced: {', '.join(who)}." if who else ""


def _place(entry: Data) -> tuple[str, int]:
    return str(entry.get("seat") or ""), int(entry.get("round") or 0)


def _rounds(numbers: Iterable[int]) -> str:
    shown = ["start" if number == 0 else f"round {number}" for number in sorted(numbers)]
    return wording.listed(shown)


def _judge_words(seats: Sequence[Data]) -> str:
    judging = {seat["model"] for seat in seats if seat["role"] == "judge"}
    debating = [seat for seat in seats if seat["role"] not in NOT_DEBATING]
    sharing = [seat["name"] for seat in debating if seat["model"] in judging]
    if not sharing:
        return ""
    return (
        f"The judge uses the same model as {wording.listed(sharing)}, "
        "so treat its judgment with caution."
    )
