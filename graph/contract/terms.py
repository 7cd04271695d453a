"""Terms and types that the request and the result of a forecast share."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

Role = Literal["optimist", "pessimist", "contrarian", "historian", "judge"]
ROLES: tuple[Role, ...] = ("optimist", "pessimist", "contrarian", "historian", "judge")
Criterion = Literal["logical_strength", "evidence_quality", "novelty"]
CRITERIA: tuple[Criterion, ...] = ("logical_strength", "evidence_quality", "novelty")
COMPOSITE_WEIGHTS: dict[Criterion, float] = {
    "logical_strength": 0.4,
    "evidence_quality": 0.4,
    "novelty": 0.2,
}
Phase = Literal["opening", "rebuttal", "closing"]
Direction = Literal["toward", "away"]
Impact = Literal["high", "medium", "low"]

JUDGE_WEIGHT = 0.6
ROUNDS = 3
MAX_ARGUMENT_LENGTH = 500
FEWEST_OUTCOMES, MOST_OUTCOMES = 2, 20
MOST_ROUNDS = 10
MAX_REQUEST_BYTES = 262_144
# How far a distribution given in a request may be from 1 in all.
_ROUNDING = 0.01


def _storable(text: str) -> str:
    """No database keeps a NUL, and half a surrogate pair is no text."""
    if "\x00" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError("has characters that cannot be stored")
    return text


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _tuple(value: object) -> object:
    """Lists are what JSON and Python callers have; the contract keeps them unchangeable."""
    return tuple(value) if isinstance(value, list) else value


def check_roles(roles: Iterable[str]) -> None:
    """The judge sits at every table, with somebody to judge, and nobody sits there twice."""
    named = list(roles)
    twice = _repeated(named)
    if twice:
        raise ValueError(f"roles names the {twice} twice")
    if "judge" not in named or len(named) == 1:
        raise ValueError("roles needs the judge, who gives the verdict, and at least one other")


def check_criteria(criteria: Iterable[str]) -> None:
    """At least one criterion, each of them once."""
    named = list(criteria)
    twice = _repeated(named)
    if twice:
        raise ValueError(f"scoring_criteria names {twice} twice")
    if not named:
        raise ValueError("scoring_criteria is empty")


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


_Words = Annotated[str, StringConstraints(max_length=2_000), AfterValidator(_storable)]
_Text = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2_000),
    AfterValidator(_storable),
    AfterValidator(_said),
]
_Question = Annotated[
    str,
    StringConstraints(min_length=1, max_length=10_000),
    AfterValidator(_storable),
    AfterValidator(_said),
]
_Id = Annotated[
    str,
    StringConstraints(min_length=1, max_length=200),
    AfterValidator(_storable),
    AfterValidator(_said),
]
OUTCOME_ID = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
OutcomeId = Annotated[str, StringConstraints(pattern=OUTCOME_ID)]
Share = Annotated[float, Field(ge=0, le=1)]
_Items = Annotated[tuple[_Text, ...], Field(max_length=50), BeforeValidator(_tuple)]


class Contract(BaseModel):
    """Strict about types and names, frozen, and without a number that is none."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)
