from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

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
MOST_OWN = 5  # the most roles, and the most criteria, that a caller may add
MAX_REQUEST_BYTES = 262_144
DECIMALS = 4


def check_roles(roles: Sequence[str], own: Sequence[str]) -> None:
    if repeated := first_repeated((*roles, *own)):
        raise ValueError(f"roles and own_roles name the {repeated} twice")
    if "judge" not in roles or len((*roles, *own)) == 1:
        raise ValueError("roles needs the judge, who gives the verdict, and at least one other")
    if taken := next((name for name in own if name in {*ROLES, *_TAKEN_ROLES}), None):
        raise ValueError(f"own_roles: the name {taken} is taken; choose another")


def check_criteria(criteria: Sequence[str], own: Sequence[str]) -> None:
    if repeated := first_repeated((*criteria, *own)):
        raise ValueError(f"scoring_criteria and own_criteria name {repeated} twice")
    if not criteria and not own:
        raise ValueError("scoring_criteria is empty")
    # Each criterion becomes a field of a pydantic model, so these names are not available.
    taken = {*CRITERIA, "composite", "reason", "nonce", *dir(BaseModel)}
    if name := next((name for name in own if name in taken), None):
        raise ValueError(f"own_criteria: the name {name} is taken; choose another")


def point_prefixes(roles: Iterable[str]) -> dict[str, str]:
    """Map each role to a short, unique prefix for its point ids."""
    prefixes: dict[str, str] = {}
    for role in sorted(roles, key=lambda name: name not in ROLES):
        beginnings = (role.ljust(length, "x")[:length].upper() for length in count(1))
        prefixes[role] = next(each for each in beginnings if each not in prefixes.values())
    return prefixes


def refuse_unstorable(text: str) -> str:
    if "\x00" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError("has characters that cannot be stored")
    return text


def first_repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


# Roles in other protocols, and other names used for turns or files in a record.
_TAKEN_ROLES = (
    *("proposer", "skeptic", "synthesizer", "debater", "moderator", "position_advocate"),
    *("fact_checker", "user", "embedding", "index"),
)
OWN_NAME = r"^[a-z][a-z_]{1,30}[a-z]$"
OwnName = Annotated[str, StringConstraints(pattern=OWN_NAME)]
"""The name of a role or criterion: 3 to 32 lower-case letters or inner underscores."""
Description = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500, strip_whitespace=True),
    AfterValidator(refuse_unstorable),
]
OUTCOME_ID = r"^[A-Za-z0-9](?:[A-Za-z0-9_. -]{0,62}[A-Za-z0-9_.-])?$"
OutcomeId = Annotated[str, StringConstraints(pattern=OUTCOME_ID)]
Share = Annotated[float, Field(ge=0, le=1)]


class Contract(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class OwnRole(Contract):
    """A role that the caller adds to `roles`."""

    name: OwnName
    description: Description = Field(description="The role's viewpoint.")


class OwnCriterion(Contract):
    """A criterion that the caller adds to `scoring_criteria`."""

    name: OwnName
    description: Description = Field(
        description="What makes an argument good or bad by this criterion."
    )
    weight: float = Field(
        0.4, gt=0, le=2, description="Its weight; logic has 0.4, evidence 0.4 and novelty 0.2."
    )
