import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import chain
from typing import Annotated, Any, Literal, Self
from uuid import uuid4

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)
from pydantic.config import JsonDict

from contend.graph.forecast_contract import terms

# How much the sum of a given distribution may differ from 1.
_ROUNDING = 0.01


def _refuse_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _tuple(value: object) -> object:
    """Convert a list to a tuple, because strict validation refuses lists."""
    return tuple(value) if isinstance(value, list) else value


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from chain.from_iterable(map(_texts_in, (*value, *value.values())))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_texts_in, value))


def _date(value: object) -> object:
    try:
        return datetime.fromisoformat(value).date() if isinstance(value, str) else value
    except ValueError:
        return value


def _importance(value: object) -> object:
    return _IMPORTANCE.get(value.strip().lower(), value) if isinstance(value, str) else value


_IMPORTANCE = {"low": 0.25, "medium": 0.5, "high": 0.75, "critical": 1.0}
_STORABLE, _NOT_EMPTY = AfterValidator(terms.refuse_unstorable), AfterValidator(_refuse_empty)
_Value = Annotated[str, StringConstraints(max_length=2_000), _STORABLE]
_Words = Annotated[
    _Value,
    BeforeValidator(
        lambda value: "" if value is None else value, json_schema_input_type=_Value | None
    ),
]
_Date = Annotated[date, BeforeValidator(_date, json_schema_input_type=date | datetime)]
_Importance = Annotated[
    terms.Share,
    BeforeValidator(
        _importance,
        json_schema_input_type=terms.Share | Literal["low", "medium", "high", "critical"],
    ),
]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=2_000), _STORABLE, _NOT_EMPTY]
_Question = Annotated[
    str, StringConstraints(min_length=1, max_length=10_000), _STORABLE, _NOT_EMPTY
]
_Id = Annotated[str, StringConstraints(min_length=1, max_length=200), _STORABLE, _NOT_EMPTY]
_Items = Annotated[tuple[_Text, ...], Field(max_length=50), BeforeValidator(_tuple)]


class PredictionTask(terms.Contract):
    """The original prediction task; any fields you add are shown to the roles that argue."""

    model_config = ConfigDict(extra="allow")

    question: _Question = Field(description="The question to predict an answer to.")
    description: _Words = Field("", description="Background for the roles that argue.")
    resolution_criteria: _Words = Field("", description="What decides which outcome came true.")

    @property
    def further_fields(self) -> dict[str, str]:
        given = self.model_extra or {}
        return {
            name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for name, value in given.items()
        }

    @model_validator(mode="after")
    def _check_further_fields(self) -> Self:
        json.dumps(self.model_extra, allow_nan=False)
        for text in _texts_in(self.model_extra):
            terms.refuse_unstorable(text)
        return self


class Outcome(terms.Contract):
    """One of the mutually exclusive outcomes."""

    id: terms.OutcomeId
    label: _Text
    description: _Words = ""


class KeyVariable(terms.Contract):
    """A factor that influences the outcome."""

    name: _Text
    category: _Words = ""
    importance: _Importance
    current_value: _Value | float | None = Field(None, union_mode="left_to_right")


class OutcomeProbability(terms.Contract):
    """The estimated probability of one outcome."""

    outcome_id: terms.OutcomeId
    probability: terms.Share


class SimulationSummary(terms.Contract):
    """The findings of a simulation run before the debate."""

    final_distribution: Annotated[
        tuple[OutcomeProbability, ...],
        Field(max_length=terms.MOST_OUTCOMES),
        BeforeValidator(_tuple),
    ] = ()
    key_findings: _Items = ()


class Timeframe(terms.Contract):
    """The period that the forecast covers. The outcome can be determined when the period ends."""

    start: _Date | None = None
    end: _Date | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.start and self.end and self.start > self.end:
            raise ValueError("start is later than end")
        return self


class DataSummary(terms.Contract):
    """A summary of the available data."""

    region: _Words = ""
    timeframe: Timeframe = Timeframe()
    economic_highlights: _Items = ()
    sentiment_highlights: _Items = ()
    data_gaps: _Items = ()


class PredictionContext(terms.Contract):
    """The subject of the debate, and the available data."""

    task: PredictionTask
    outcomes: Annotated[
        tuple[Outcome, ...],
        Field(min_length=terms.FEWEST_OUTCOMES, max_length=terms.MOST_OUTCOMES),
        BeforeValidator(_tuple),
    ]
    key_variables: Annotated[
        tuple[KeyVariable, ...], Field(max_length=50), BeforeValidator(_tuple)
    ] = ()
    simulation_summary: SimulationSummary = SimulationSummary()
    data_summary: DataSummary = DataSummary()

    @property
    def outcome_ids(self) -> tuple[str, ...]:
        return tuple(outcome.id for outcome in self.outcomes)

    @property
    def outcome_labels(self) -> dict[str, str]:
        return {outcome.id: outcome.label for outcome in self.outcomes}

    @model_validator(mode="after")
    def _check_outcomes(self) -> Self:
        repeated = terms.first_repeated(each.casefold() for each in self.outcome_ids)
        if repeated:
            raise ValueError(f"two outcomes have the id '{repeated}'")
        simulated = self.simulation_summary.final_distribution
        repeated = terms.first_repeated(each.outcome_id for each in simulated)
        if repeated:
            raise ValueError(f"the simulation gives outcome '{repeated}' twice")
        strange = [e.outcome_id for e in simulated if e.outcome_id not in self.outcome_ids]
        if strange:
            raise ValueError(f"the simulation has an outcome '{strange[0]}' that is not given")
        total = sum(each.probability for each in simulated)
        whole = len(simulated) == len(self.outcomes)
        if total > 1 + _ROUNDING or (whole and total < 1 - _ROUNDING):
            raise ValueError(f"the simulation's probabilities sum to {total:g}, not to 1")
        return self


class DebateConfig(terms.Contract):
    """The configuration of the debate."""

    rounds: int = Field(
        terms.ROUNDS, ge=1, le=terms.MOST_ROUNDS, description="Number of debate rounds."
    )
    roles: Annotated[
        tuple[terms.Role, ...],
        Field(min_length=1, max_length=len(terms.ROLES)),
        BeforeValidator(_tuple),
    ] = Field(
        terms.ROLES,
        description="Who debates: the judge and at least one other role.",
        json_schema_extra={"uniqueItems": True},
    )
    own_roles: Annotated[
        tuple[terms.OwnRole, ...], Field(max_length=terms.MOST_OWN), BeforeValidator(_tuple)
    ] = Field((), description="Your own roles, which debate too.")
    max_argument_length: int = Field(
        terms.MAX_ARGUMENT_LENGTH, ge=100, le=4000, description="Max tokens per argument."
    )
    scoring_criteria: Annotated[
        tuple[terms.Criterion, ...],
        Field(max_length=len(terms.CRITERIA)),
        BeforeValidator(_tuple),
    ] = Field(
        terms.CRITERIA,
        description="What arguments are scored on.",
        json_schema_extra={"uniqueItems": True},
    )
    own_criteria: Annotated[
        tuple[terms.OwnCriterion, ...], Field(max_length=terms.MOST_OWN), BeforeValidator(_tuple)
    ] = Field((), description="Your own criteria, which count too.")
    judge_weight: terms.Share = Field(
        terms.JUDGE_WEIGHT,
        description="Weight of the judge's assessment against the role consensus.",
    )

    @model_validator(mode="after")
    def _check_config(self) -> Self:
        terms.check_roles(self.roles, [each.name for each in self.own_roles])
        terms.check_criteria(self.scoring_criteria, [each.name for each in self.own_criteria])
        return self


# The shortest useful request; the README shows it too.
_EXAMPLE: JsonDict = {
    "task_id": "bridge-1",
    "prediction_context": {
        "task": {"question": "Will the bridge open before May?"},
        "outcomes": [{"id": "yes", "label": "It opens"}, {"id": "no", "label": "It does not"}],
        "data_summary": {"timeframe": {"end": "2027-05-01"}},
    },
}


class DebateRequest(terms.Contract):
    """A request to the debate engine."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    task_id: _Id
    prediction_context: PredictionContext
    config: DebateConfig = DebateConfig()


def request_of_outcomes(
    question: str, outcomes: Sequence[Mapping[str, str]], due: str | None = None
) -> dict[str, Any]:
    context: dict[str, Any] = {"task": {"question": question}, "outcomes": list(outcomes)}
    if due:
        context["data_summary"] = {"timeframe": {"end": due}}
    return {"task_id": f"ask-{uuid4()}", "prediction_context": context}
