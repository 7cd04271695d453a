"""Parses forecasts from control blocks and labeled text, and builds structured output schemas."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from contend.graph.forecast_contract.terms import ROLES, Impact, point_prefixes
from contend.graph.readings import (
    ArgumentReading,
    Dispute,
    Insight,
    PastEvent,
    ScoreReading,
    StatedProbabilities,
    VerdictReading,
)
from contend.models.replies.fields import (
    LONGEST_ITEM,
    MOST_ITEMS,
    NUMBER,
    Outcomes,
    find_outcome,
    line_in,
    lines_in,
    number_in,
    one_of,
    percentage_or_share,
    share_in,
    written_number,
)
from contend.models.replies.signals import labelled_value

_LONGEST_POINT = 300
_MOST_SPLITS = 3
_STEP = 10
# What separates the outcomes in a line of probabilities.
_BETWEEN_OUTCOMES = re.compile(r"[,;|/]|\band\b")
_ZERO_COMMA = re.compile(r"(?<![\w.,])0,(?=\d)")
_POINT_ID = re.compile(r"\b([A-Z][A-Z_]*)(\d{1,2})\b")
_PREFIXES = point_prefixes(ROLES)
_IN_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


# Each field is parsed separately; an unreadable value is left out, never corrected.
class ArgumentBlock(BaseModel):
    """An argument's control block with unparsed fields."""

    outcome: Any = None
    probabilities: Any = None
    confidence: Any = None
    point: Any = None
    evidence: Any = None
    rebuts: Any = None
    refers_to: Any = None
    precedents: Any = None


class VerdictBlock(BaseModel):
    """The verdict's control block with unparsed fields."""

    probabilities: Any = None
    confidence: Any = None
    insights: Any = None
    disagreements: Any = None


class ScoreBlock(BaseModel):
    """A control block with an argument's unparsed scores."""

    model_config = ConfigDict(extra="allow")  # a field for each criterion

    reason: Any = None


def argument_from_block(
    block: ArgumentBlock,
    outcomes: Outcomes,
    prefixes: Mapping[str, str] = _PREFIXES,  # of the point ids of each role
) -> ArgumentReading:
    return ArgumentReading(
        stated=_stated(block.probabilities, block.confidence, outcomes),
        outcome=find_outcome(block.outcome, outcomes),
        point=line_in(block.point)[:_LONGEST_POINT],
        evidence=lines_in(block.evidence),
        rebuts=_roles(block.rebuts, prefixes),
        refers_to=tuple(dict.fromkeys(_ids_in(block.refers_to))),
        precedents=_precedents(block.precedents),
        read_from="block",
    )


def verdict_from_block(
    block: VerdictBlock, outcomes: Outcomes, points: Sequence[str]
) -> VerdictReading:
    insights = (_insight(each, outcomes, points) for each in _dicts(block.insights))
    disputes = (_dispute(each, points) for each in _dicts(block.disagreements))
    return VerdictReading(
        stated=_stated(block.probabilities, block.confidence, outcomes),
        insights=tuple(each for each in insights if each)[:MOST_ITEMS],
        disputes=tuple(each for each in disputes if each)[:MOST_ITEMS],
        read_from="block",
    )


def score_from_block(
    block: ScoreBlock, argument: str, criteria: Sequence[str]
) -> ScoreReading | None:
    scores = {name: share_in((block.model_extra or {}).get(name)) for name in criteria}
    return _score(scores, argument, line_in(block.reason), "block")


def argument_from_text(speech: str, outcomes: Outcomes) -> ArgumentReading | None:
    """Parse a line like `Probabilities: yes 70 %, no 30 %`. Return None if it lacks an outcome."""
    stated = _stated_in_words(speech, outcomes)
    if stated is None:
        return None
    return ArgumentReading(
        stated=stated,
        outcome=find_outcome(_labelled(speech, r"(?:supports?|outcome)"), outcomes),
        read_from="words",
    )


def verdict_from_text(speech: str, outcomes: Outcomes) -> VerdictReading | None:
    stated = _stated_in_words(speech, outcomes)
    return VerdictReading(stated=stated, read_from="words") if stated else None


def score_from_text(speech: str, argument: str, criteria: Sequence[str]) -> ScoreReading | None:
    """Parse lines like `Logical strength: 0.7`. Return None unless each criterion appears once."""
    scores: dict[str, float | None] = {}
    for name in criteria:
        stated = _labelled(speech, name.replace("_", r"[ _-]"))
        found = re.fullmatch(r"(0(?:\.\d+)?|1(?:\.0+)?)", stated)
        scores[name] = float(found[1]) if found else None
    return _score(scores, argument, "", "words")


def point_ids(text: str) -> tuple[str, ...]:
    """Return the ids cited in brackets, such as [O1]. A bare H1 may be a half-year."""
    cited = " ".join(_IN_BRACKETS.findall(text))
    return tuple(dict.fromkeys("".join(each) for each in _POINT_ID.findall(cited)))


def numbers_form(outcomes: Sequence[str], *, small: bool) -> type[BaseModel]:
    """Return a schema for probabilities. If `small`, the model picks a predefined distribution."""
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


def scores_form(criteria: Sequence[str], *, small: bool) -> type[BaseModel]:
    # Small models give whole numbers, because llama.cpp does not enforce ranges for floats.
    share: Any = (
        Annotated[int, Field(ge=0, le=10)] if small else Annotated[float, Field(ge=0, le=1)]
    )
    reason = Annotated[str, StringConstraints(max_length=200)]
    fields: dict[str, Any] = dict.fromkeys(criteria, (share, ...))
    return create_model("Scores", **fields, reason=(reason, ""))


def score_from_form(
    form: dict[str, Any], argument: str, criteria: Sequence[str], *, small: bool
) -> ScoreReading | None:
    unit = 10 if small else 1
    scores = {name: share_in(form[name] / unit) for name in criteria}
    return _score(scores, argument, line_in(form.get("reason")), "extraction")


def points_form(points: Sequence[str]) -> type[BaseModel]:
    point: Any = Literal[tuple(points)]
    return create_model("Points", refers_to=(list[point], ...))


class _PrecedentEntry(BaseModel):
    event: str
    date: str
    outcome: str
    relevance: str
    similarity: float


class PrecedentsForm(BaseModel):
    """Past events similar to the event being forecast."""

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
        number, outcome = number_in(value), find_outcome(key, outcomes)
        if number is None or outcome is None:
            continue
        if raw.setdefault(outcome, number) != number:
            unclear.add(outcome)
    raw = {outcome: number for outcome, number in raw.items() if outcome not in unclear}
    return StatedProbabilities(raw=raw, confidence=share_in(confidence))


def _ids_in(value: Any) -> list[str]:
    return ["".join(each) for each in _POINT_ID.findall(" ".join(lines_in(value)).upper())]


def _roles(value: Any, prefixes: Mapping[str, str]) -> tuple[str, ...]:
    text = " ".join(lines_in(value))
    words, ids = re.findall(r"[a-z_]+", text.lower()), _POINT_ID.findall(text.upper())
    named = {prefix for prefix, _ in ids}
    return tuple(role for role, prefix in prefixes.items() if role in words or prefix in named)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _precedents(value: Any) -> tuple[PastEvent, ...]:
    read = (
        PastEvent(
            event=line_in(each.get("event"))[:LONGEST_ITEM],
            date=line_in(str(each.get("date") or ""))[:100],
            outcome=line_in(each.get("outcome"))[:LONGEST_ITEM],
            relevance=line_in(each.get("relevance"))[:LONGEST_ITEM],
            similarity=percentage_or_share(each.get("similarity")),
        )
        for each in _dicts(value)
    )
    return tuple(e for e in read if e.event and e.date and e.outcome)[:MOST_ITEMS]


def _insight(given: dict[str, Any], outcomes: Outcomes, points: Sequence[str]) -> Insight | None:
    text, point = line_in(given.get("insight")), one_of(given.get("point"), points)
    impact = one_of(given.get("impact"), get_args(Impact))
    if not text or point is None or impact is None:
        return None
    named = (find_outcome(each, outcomes) for each in lines_in(given.get("outcomes")))
    affected = tuple(outcome for outcome in named if outcome)
    return Insight(insight=text[:LONGEST_ITEM], point=point, impact=impact, outcomes=affected)


def _dispute(given: dict[str, Any], points: Sequence[str]) -> Dispute | None:
    topic, named = line_in(given.get("topic")), dict.fromkeys(_ids_in(given.get("points")))
    known = tuple(point for point in named if point in points)
    if not topic or not known:
        return None
    return Dispute(topic=topic[:LONGEST_ITEM], points=known, resolved=given.get("resolved") is True)


def _score(
    scores: dict[str, float | None],
    argument: str,
    reason: str,
    read_from: Literal["block", "words", "extraction"],
) -> ScoreReading | None:
    known = {name: score for name, score in scores.items() if score is not None}
    if len(known) < len(scores):
        return None
    reason = reason[:LONGEST_ITEM]
    return ScoreReading(argument=argument, scores=known, reason=reason, read_from=read_from)


def _stated_in_words(speech: str, outcomes: Outcomes) -> StatedProbabilities | None:
    stated = _with_decimal_points(_labelled(speech, r"probabilit(?:y|ies)"), outcomes)
    raw = _numbers_by_id(stated, outcomes) or _numbers_by_part(stated, outcomes)
    # A number may be infinite if a model repeats a digit.
    if len(raw) < len(outcomes) or not all(map(math.isfinite, raw.values())):
        return None
    confidence = share_in(_labelled(speech, "confidence"))
    return StatedProbabilities(raw=raw, confidence=confidence)


def _with_decimal_points(stated: str, outcomes: Outcomes) -> str:
    """Change 0,7 to 0.7, unless the comma may separate outcomes that start with digits."""
    if any(name.strip()[:1].isdigit() for name in (*outcomes, *outcomes.values())):
        return stated
    return _ZERO_COMMA.sub("0.", stated)


def _numbers_by_id(stated: str, outcomes: Outcomes) -> dict[str, float]:
    """Parse the number after each id. Return an empty dict unless each id has exactly one."""
    raw: dict[str, float] = {}
    for outcome in outcomes:
        pattern = rf"(?<![\w.-]){re.escape(outcome)}(?![\w-])\W{{0,4}}?{NUMBER}(?![\w.])"
        found = re.findall(pattern, stated, re.IGNORECASE)
        if len(found) != 1:
            return {}
        raw[outcome] = written_number(*found[0])
    return raw


def _numbers_by_part(stated: str, outcomes: Outcomes) -> dict[str, float]:
    """Parse comma-separated `NAME NUMBER` pairs. Return an empty dict if an outcome repeats."""
    raw: dict[str, float] = {}
    for part in _BETWEEN_OUTCOMES.split(stated):
        written = re.fullmatch(rf"\W*(\w.*?)\W{{0,4}}?{NUMBER}\W*", part, re.IGNORECASE)
        outcome = find_outcome(written[1], outcomes) if written else None
        if written and outcome:
            if outcome in raw:
                return {}
            raw[outcome] = written_number(written[2], written[3])
    return raw


def _labelled(speech: str, label: str) -> str:
    return labelled_value(speech, label).rstrip("*_. \t")
