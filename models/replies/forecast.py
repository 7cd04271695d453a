"""Parses the statements of a forecast: control blocks, labelled words, forms for a second try."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, Field, StringConstraints, create_model

from contend.graph.forecast_contract.terms import ROLES, Criterion, Impact, Role
from contend.graph.readings import (
    ArgumentReading,
    Insight,
    PastEvent,
    ScoreReading,
    StatedProbabilities,
    VerdictReading,
)
from contend.models.replies.signals import labelled_value

_LONGEST_POINT, _LONGEST_ITEM, _MOST_ITEMS = 300, 500, 12
_MOST_SPLITS = 3
_STEP = 10
_NUMBER = r"(\d+(?:\.\d+)?)\s*(%|percent|)"
_NUMBER_TEXT = re.compile(rf"[~≈]?\s*{_NUMBER}", re.IGNORECASE)
# What separates the outcomes in a line of probabilities.
_BETWEEN_OUTCOMES = re.compile(r"[,;|/]|\band\b")
_SHORTEST_MISSPELT = 3
_POINT_ID = re.compile(r"\b([OPCHJ]\d{1,2})\b")
_IN_BRACKETS = re.compile(r"\[([^\[\]]*)\]")

Outcomes = Mapping[str, str]
"""Labels of outcomes by id."""


# Every field is read on its own; what cannot be parsed is left out, never corrected.
class ArgumentBlock(BaseModel):
    """An argument's control block, before its fields are read one by one."""

    outcome: Any = None
    probabilities: Any = None
    confidence: Any = None
    point: Any = None
    evidence: Any = None
    rebuts: Any = None
    refers_to: Any = None
    precedents: Any = None


class VerdictBlock(BaseModel):
    """The verdict's control block, before its fields are read one by one."""

    probabilities: Any = None
    confidence: Any = None
    insights: Any = None


class ScoreBlock(BaseModel):
    """A scoring's control block, before its fields are read one by one."""

    logical_strength: Any = None
    evidence_quality: Any = None
    novelty: Any = None
    reason: Any = None


def argument_from_block(block: ArgumentBlock, outcomes: Outcomes) -> ArgumentReading:
    return ArgumentReading(
        stated=_stated(block.probabilities, block.confidence, outcomes),
        outcome=find_outcome(block.outcome, outcomes),
        point=_line(block.point)[:_LONGEST_POINT],
        evidence=_lines(block.evidence),
        rebuts=_roles(block.rebuts),
        refers_to=tuple(dict.fromkeys(_ids_in(block.refers_to))),
        precedents=_precedents(block.precedents),
        read_from="block",
    )


def verdict_from_block(
    block: VerdictBlock, outcomes: Outcomes, points: Sequence[str]
) -> VerdictReading:
    """Read the verdict's block; an insight counts only with the point it comes from."""
    given = block.insights if isinstance(block.insights, list) else []
    read = (_insight(each, outcomes, points) for each in given if isinstance(each, dict))
    return VerdictReading(
        stated=_stated(block.probabilities, block.confidence, outcomes),
        insights=tuple(each for each in read if each)[:_MOST_ITEMS],
        read_from="block",
    )


def score_from_block(
    block: ScoreBlock, argument: str, criteria: Sequence[Criterion]
) -> ScoreReading | None:
    scores = {name: _share(getattr(block, name)) for name in criteria}
    return _score(scores, argument, _line(block.reason), "block")


def argument_from_words(speech: str, outcomes: Outcomes) -> ArgumentReading | None:
    """Read `Probabilities: yes 70 %, no 30 %`; None unless one line states all of them."""
    stated = _stated_in_words(speech, outcomes)
    if stated is None:
        return None
    return ArgumentReading(
        stated=stated,
        outcome=find_outcome(_labelled(speech, r"(?:supports?|outcome)"), outcomes),
        read_from="words",
    )


def verdict_from_words(speech: str, outcomes: Outcomes) -> VerdictReading | None:
    stated = _stated_in_words(speech, outcomes)
    return VerdictReading(stated=stated, read_from="words") if stated else None


def score_from_words(
    speech: str, argument: str, criteria: Sequence[Criterion]
) -> ScoreReading | None:
    """Read `Logical strength: 0.7` and the other criteria; None unless each appears once."""
    scores: dict[Criterion, float | None] = {}
    for name in criteria:
        stated = _labelled(speech, name.replace("_", r"[ _-]"))
        found = re.fullmatch(r"(0(?:\.\d+)?|1(?:\.0+)?)", stated)
        scores[name] = float(found[1]) if found else None
    return _score(scores, argument, "", "words")


def point_ids(text: str) -> tuple[str, ...]:
    """Return the point ids a text cites, such as [O1]; a bare H1 may mean half a year."""
    cited = " ".join(_IN_BRACKETS.findall(text))
    return tuple(dict.fromkeys(_POINT_ID.findall(cited)))


def numbers_form(outcomes: Sequence[str], *, small: bool) -> type[BaseModel]:
    """Build a form for probabilities; the smallest models choose among whole distributions."""
    supported: Any = (Literal[tuple(outcomes)], ...)
    if small and len(outcomes) <= _MOST_SPLITS:
        split: Any = (Literal[tuple(_list_splits(outcomes))], ...)
        percent = Annotated[int, Field(ge=0, le=100)]
        return create_model("Numbers", outcome=supported, split=split, confidence=(percent, ...))
    entry = create_model("Entry", outcome=supported, probability=(float, ...))
    entries: Any = (list[entry], ...)
    return create_model(
        "Numbers", outcome=supported, probabilities=entries, confidence=(float, ...)
    )


def stated_from_form(
    form: dict[str, Any], outcomes: Outcomes
) -> tuple[StatedProbabilities, str | None]:
    if "split" in form:
        shares = [int(number) for number in re.findall(r"(\d+) %", form["split"])]
        given: Any = dict(zip(outcomes, shares, strict=True))
        confidence: Any = form["confidence"] / 100
    else:
        given = {each["outcome"]: each["probability"] for each in form["probabilities"]}
        confidence = form["confidence"]
    return _stated(given, confidence, outcomes), find_outcome(form["outcome"], outcomes)


def scores_form(criteria: Sequence[Criterion], *, small: bool) -> type[BaseModel]:
    """Build a form for scores; the smallest models get whole numbers up to ten."""
    # Ranges of fractions are not enforced by llama.cpp's schemas.
    share: Any = (
        Annotated[int, Field(ge=0, le=10)] if small else Annotated[float, Field(ge=0, le=1)]
    )
    reason = Annotated[str, StringConstraints(max_length=200)]
    fields: dict[str, Any] = dict.fromkeys(criteria, (share, ...))
    return create_model("Scores", **fields, reason=(reason, ""))


def score_from_form(
    form: dict[str, Any], argument: str, criteria: Sequence[Criterion], *, small: bool
) -> ScoreReading | None:
    unit = 10 if small else 1
    scores = {name: _share(form[name] / unit) for name in criteria}
    return _score(scores, argument, _line(form.get("reason")), "extraction")


def points_form(points: Sequence[str]) -> type[BaseModel]:
    """Build a form for the earlier points that an argument answers or builds on."""
    point: Any = Literal[tuple(points)]
    return create_model("Points", refers_to=(list[point], ...))


class _PrecedentEntry(BaseModel):
    event: str
    date: str
    outcome: str
    relevance: str
    similarity: float


class PrecedentsForm(BaseModel):
    """Past events like the one in question."""

    precedents: list[_PrecedentEntry]


def precedents_from_form(form: dict[str, Any]) -> tuple[PastEvent, ...]:
    return _precedents(form["precedents"])


def _list_splits(outcomes: Sequence[str]) -> list[str]:
    splits = product(range(0, 101, _STEP), repeat=len(outcomes))
    return [
        ", ".join(f"{outcome} {share} %" for outcome, share in zip(outcomes, split, strict=True))
        for split in splits
        if sum(split) == 100
    ]


def _stated(given: Any, confidence: Any, outcomes: Outcomes) -> StatedProbabilities:
    raw: dict[str, float] = {}
    unclear = set[str]()
    for key, value in given.items() if isinstance(given, dict) else ():
        number, outcome = _number(value), find_outcome(key, outcomes)
        if number is None or outcome is None:
            continue
        if raw.setdefault(outcome, number) != number:
            unclear.add(outcome)
    raw = {outcome: number for outcome, number in raw.items() if outcome not in unclear}
    return StatedProbabilities(raw=raw, confidence=_share(confidence))


def find_outcome(given: Any, outcomes: Outcomes) -> str | None:
    """Return the id of the outcome that is meant by an id or a label, or nothing if in doubt."""
    name = "" if given is None else str(given).strip().strip("`'\"*.")  # 0 may be an id
    by_name: dict[str, set[str]] = {}
    for outcome, label in outcomes.items():
        for known in (outcome, label, f"{outcome}: {label}", f"{outcome} ({label})"):
            by_name.setdefault(_plain(known), set()).add(outcome)
    exact = [outcome for outcome in outcomes if outcome.casefold() == name.casefold()]
    found = by_name.get(_plain(name), set()) if not exact else set(exact)
    if not found:
        alike = (ids for known, ids in by_name.items() if _is_misspelt(_plain(name), known))
        found = set().union(*alike)
    return found.pop() if len(found) == 1 else None


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()


def _is_misspelt(given: str, known: str) -> bool:
    """Whether the two differ by one letter; another digit is another name."""
    if abs(len(given) - len(known)) > 1 or min(len(given), len(known)) < _SHORTEST_MISSPELT:
        return False
    pairs = enumerate(zip(given, known, strict=False))
    at = next((at for at, (left, right) in pairs if left != right), min(len(given), len(known)))
    rests = {(given[at + 1 :], known[at + 1 :]), (given[at + 1 :], known[at:])}
    rests.add((given[at:], known[at + 1 :]))
    is_digit = given[at : at + 1].isdigit() or known[at : at + 1].isdigit()
    return not is_digit and any(left == right for left, right in rests)


def _number(value: Any) -> float | None:
    """Return a number, also if it is written as text: 0.7, 70%."""
    if isinstance(value, str):
        written = _NUMBER_TEXT.fullmatch(value.strip())
        value = _written_number(*written.groups()) if written else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _written_number(digits: str, sign: str) -> float:
    return float(f"{digits}e-2" if sign else digits)


def _share(value: Any) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _percentage_or_share(value: Any) -> float | None:
    number = _number(value)
    if number is None or not 0 <= number <= 100:
        return None
    return number / 100 if number > 1 else number


def _one_of(value: Any, names: Sequence[str]) -> str | None:
    known = {name.casefold(): name for name in names}
    given = "" if value is None else str(value)  # 0 may be the id of an outcome
    return known.get(given.strip().strip("`'\"*.").casefold())


def _line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _lines(value: Any) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    return tuple(line[:_LONGEST_ITEM] for each in given if (line := _line(each)))[:_MOST_ITEMS]


def _ids_in(value: Any) -> list[str]:
    return _POINT_ID.findall(" ".join(_lines(value)).upper())


def _roles(value: Any) -> tuple[Role, ...]:
    words = re.findall(r"[a-z]+", " ".join(_lines(value)).lower())
    initials = {point[0].lower() for point in _ids_in(value)}
    return tuple(role for role in ROLES if role in words or role[0] in initials)


def _precedents(value: Any) -> tuple[PastEvent, ...]:
    given = [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
    read = (
        PastEvent(
            event=_line(each.get("event"))[:_LONGEST_ITEM],
            date=_line(str(each.get("date") or ""))[:100],
            outcome=_line(each.get("outcome"))[:_LONGEST_ITEM],
            relevance=_line(each.get("relevance"))[:_LONGEST_ITEM],
            similarity=_percentage_or_share(each.get("similarity")),
        )
        for each in given
    )
    return tuple(e for e in read if e.event and e.date and e.outcome)[:_MOST_ITEMS]


def _insight(given: dict[str, Any], outcomes: Outcomes, points: Sequence[str]) -> Insight | None:
    text, point = _line(given.get("insight")), _one_of(given.get("point"), points)
    impact = _one_of(given.get("impact"), get_args(Impact))
    if not text or point is None or impact is None:
        return None
    named = (find_outcome(each, outcomes) for each in _lines(given.get("outcomes")))
    affected = tuple(outcome for outcome in named if outcome)
    return Insight(insight=text[:_LONGEST_ITEM], point=point, impact=impact, outcomes=affected)


def _score(
    scores: dict[Criterion, float | None],
    argument: str,
    reason: str,
    read_from: Literal["block", "words", "extraction"],
) -> ScoreReading | None:
    known = {name: score for name, score in scores.items() if score is not None}
    if len(known) < len(scores):
        return None
    reason = reason[:_LONGEST_ITEM]
    return ScoreReading(argument=argument, scores=known, reason=reason, read_from=read_from)


def _stated_in_words(speech: str, outcomes: Outcomes) -> StatedProbabilities | None:
    stated = _labelled(speech, r"probabilit(?:y|ies)")
    raw = _numbers_by_id(stated, outcomes) or _numbers_by_part(stated, outcomes)
    # A number may be infinite if a model repeats a digit.
    if len(raw) < len(outcomes) or not all(map(math.isfinite, raw.values())):
        return None
    confidence = _share(_labelled(speech, "confidence"))
    return StatedProbabilities(raw=raw, confidence=confidence)


def _numbers_by_id(stated: str, outcomes: Outcomes) -> dict[str, float]:
    """Read the number after each id; nothing unless each has exactly one."""
    raw: dict[str, float] = {}
    for outcome in outcomes:
        pattern = rf"(?<![\w.-]){re.escape(outcome)}(?![\w-])\W{{0,4}}?{_NUMBER}(?![\w.])"
        found = re.findall(pattern, stated, re.IGNORECASE)
        if len(found) != 1:
            return {}
        raw[outcome] = _written_number(*found[0])
    return raw


def _numbers_by_part(stated: str, outcomes: Outcomes) -> dict[str, float]:
    """Read `NAME NUMBER` between commas, whatever the name; nothing if one has two numbers."""
    raw: dict[str, float] = {}
    for part in _BETWEEN_OUTCOMES.split(stated):
        written = re.fullmatch(rf"\W*(\w.*?)\W{{0,4}}?{_NUMBER}\W*", part, re.IGNORECASE)
        outcome = find_outcome(written[1], outcomes) if written else None
        if written and outcome:
            if outcome in raw:
                return {}
            raw[outcome] = _written_number(written[2], written[3])
    return raw


def _labelled(speech: str, label: str) -> str:
    return labelled_value(speech, label).rstrip("*_. \t")
