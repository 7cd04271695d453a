"""Terms and types that the request and the result of a forecast share."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

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
DECIMALS = 4


def check_roles(roles: tuple[Role, ...]) -> tuple[Role, ...]:
    """Refuse repeated roles, a missing judge, and a judge on its own."""
    if twice := first_repeated(roles):
        raise ValueError(f"roles names the {twice} twice")
    if "judge" not in roles or len(roles) == 1:
        raise ValueError("roles needs the judge, who gives the verdict, and at least one other")
    return roles


def check_criteria(criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
    if twice := first_repeated(criteria):
        raise ValueError(f"scoring_criteria names {twice} twice")
    if not criteria:
        raise ValueError("scoring_criteria is empty")
    return criteria


def first_repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


OUTCOME_ID = r"^[A-Za-z0-9](?:[A-Za-z0-9_. -]{0,62}[A-Za-z0-9_.-])?$"
OutcomeId = Annotated[str, StringConstraints(pattern=OUTCOME_ID)]
Share = Annotated[float, Field(ge=0, le=1)]


class Contract(BaseModel):
    """Base of all contract models: frozen, strict about types and names, finite numbers only."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)
