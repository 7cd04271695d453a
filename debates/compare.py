import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from contend.debates.exports import wording
from contend.models.replies.short_answer import brief_answer
from contend.models.text import shorten

Record = Mapping[str, Any]
Words = tuple[Literal["both", "first", "second"], str]

_MOST_CHARACTERS = 200
_WORD = re.compile(r"\S+\s*")


@dataclass(frozen=True)
class TurnChange:
    turn: str
    change: Literal["differs", "only in the first", "only in the second"]


@dataclass(frozen=True)
class Fact:
    name: str
    first: str
    second: str


@dataclass(frozen=True)
class Comparison:
    shared_turns: int  # from the beginning
    turns: list[TurnChange]
    facts: list[Fact]
    answer: list[Words]


def compare(first: Record, second: Record) -> Comparison:
    return Comparison(
        shared_turns=_shared_turns(first, second),
        turns=list(_turn_changes(first, second)),
        facts=[
            Fact(name, *values) for name, values in _facts(first, second) if values[0] != values[1]
        ],
        answer=word_changes(first["final_answer"] or "", second["final_answer"] or ""),
    )


def _shared_turns(first: Record, second: Record) -> int:
    pairs = zip(first["turns"], second["turns"], strict=False)
    return next(
        (at for at, pair in enumerate(pairs) if _said(pair[0]) != _said(pair[1])),
        min(len(first["turns"]), len(second["turns"])),
    )


def _said(turn: Record) -> tuple[str, str, str]:
    return turn["id"], turn["text"], turn["model"]


def _turn_changes(first: Record, second: Record) -> Iterator[TurnChange]:
    old, new = ({turn["id"]: _said(turn) for turn in each["turns"]} for each in (first, second))
    for turn in dict.fromkeys([*old, *new]):
        if turn not in new:
            yield TurnChange(turn, "only in the first")
        elif turn not in old:
            yield TurnChange(turn, "only in the second")
        elif old[turn] != new[turn]:
            yield TurnChange(turn, "differs")


def _facts(first: Record, second: Record) -> Iterator[tuple[str, tuple[str, str]]]:
    both = (first, second)
    yield "Question", (first["query"], second["query"])
    yield "Protocol", (first["protocol"], second["protocol"])
    for name in dict.fromkeys([*first["models"], *second["models"]]):
        yield f"Model of {name}", _pair(each["models"].get(name, "-") for each in both)
    for name in dict.fromkeys([*first["settings"], *second["settings"]]):
        if not name.endswith(("_model", "seats", "positions")):
            yield f"Setting {name}", _pair(str(each["settings"].get(name, "-")) for each in both)
    positions = [_positions(each) for each in both]
    for name in dict.fromkeys(name for each in positions for name in each):
        yield f"Position of {name}", _pair(each.get(name, "-") for each in positions)
    yield "Rounds", _pair(str(each["total_rounds"]) for each in both)
    yield "Stopped", _pair(wording.why_it_stopped(each) for each in both)
    yield "Open objections", _pair(_open_points(each) for each in both)
    yield "Winner", _pair(str(each.get("winner") or "-") for each in both)
    yield "Probabilities", _pair(_probabilities(each) for each in both)
    yield "Score", _pair(_score(each) for each in both)
    yield "Tokens", _pair(wording.usage_words(each["usage"]) for each in both)
    yield "Cost", _pair(wording.dollars(each["usage"]["cost_usd"]) for each in both)


def _pair(values: Iterator[str]) -> tuple[str, str]:
    first, second = values
    return first, second


def _open_points(record: Record) -> str:
    points = wording.point_groups(record["points"])["open"]
    return "; ".join(f"{point['id']} {point['text']}" for point in points) or "none"


def _positions(record: Record) -> dict[str, str]:
    """Return each seat's assigned position, or else its last stated position, by seat name."""
    names = {seat["id"]: seat["name"] for seat in record["seats"]}
    assigned = {seat["name"]: seat["position"] for seat in record["seats"] if seat["position"]}
    if "active" not in record:  # only seats that may concede have positions of their own
        return assigned
    last = {turn["seat"]: turn["text"] for turn in record["turns"] if turn["phase"] == "propose"}
    gone = {each["seat"]: each for each in record["eliminations"]}
    said = {
        names.get(seat, seat): _position(text) + _concession(gone.get(seat), names)
        for seat, text in last.items()
        if text
    }
    return said | assigned


def _position(text: str) -> str:
    return brief_answer(text) or shorten(text, _MOST_CHARACTERS)


def _concession(elimination: Record | None, names: Mapping[str, str]) -> str:
    if elimination is None:
        return ""
    whom = elimination["convinced_by"]
    return f" (conceded to {names.get(whom, whom)}, round {elimination['round']})"


def _probabilities(record: Record) -> str:
    found = (record.get("forecast") or {}).get("probability_distribution") or []
    return ", ".join(f"{each['outcome_id']} {each['probability']}" for each in found) or "-"


def _score(record: Record) -> str:
    return "-" if record["quality_score"] is None else f"{record['quality_score']:g}"


def word_changes(first: str, second: str) -> list[Words]:
    """Return the words of both texts in order, each marked `first`, `second` or `both`."""
    old, new = _WORD.findall(first), _WORD.findall(second)
    changes: list[Words] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if kind == "equal":
            changes.append(("both", "".join(old[old_from:old_to])))
            continue
        if old_to > old_from:
            changes.append(("first", "".join(old[old_from:old_to])))
        if new_to > new_from:
            changes.append(("second", "".join(new[new_from:new_to])))
    return changes
