"""Settings of a forecast."""

import json
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, PositiveFloat, ValidationError

from contend.graph.errors import BadInput
from contend.graph.forecast_contract import terms
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.settings.base import DebateSettings, fallbacks_of, temperature_of
from contend.graph.state import DebateState
from contend.graph.values import Seat

# Fitted by `python -m contend.evals.extremising` on market prices of resolved questions, for want
# of enough resolved debates. The fit is loose (bootstrap: 0.95-1.21) and gains 0.0002 of log loss;
# `contend scoreboard` fits it to the user's own forecasts.
EXTREMISING_FACTOR = 1.1
_AS_SETTING = {"rounds": "max_rounds"}


class ForecastSettings(DebateSettings):
    """Five roles argue over outcomes for three rounds; numbers give a distribution."""

    protocol: ClassVar[str] = "forecast"
    use_when = "You want probabilities for what will happen."

    max_rounds: int = Field(
        terms.ROUNDS, ge=1, le=terms.MOST_ROUNDS, description="Rounds of argument; all are held."
    )
    roles: Annotated[tuple[terms.Role, ...], AfterValidator(terms.check_roles)] = Field(
        terms.ROLES, description="Who debates: the judge and at least one other."
    )
    max_argument_length: int = Field(
        terms.MAX_ARGUMENT_LENGTH, ge=100, le=4000, description="Tokens of an argument at the most."
    )
    argument_input_tokens: int = Field(
        600, ge=300, le=32_000, description="Tokens the prompt of an argument should take."
    )
    scoring_criteria: Annotated[
        tuple[terms.Criterion, ...], AfterValidator(terms.check_criteria)
    ] = Field(terms.CRITERIA, description="What arguments are scored on.")
    judge_weight: float = Field(
        terms.JUDGE_WEIGHT,
        ge=0,
        le=1,
        description="Weight of the judge against the role consensus.",
    )
    extremising_factor: PositiveFloat = Field(
        EXTREMISING_FACTOR, le=10, description="Power of the odds in the extremised pool."
    )
    overall_timeout: PositiveFloat = Field(
        120, description="Seconds for the whole debate; what is missing then is named."
    )
    templates: bool = Field(False, description="Give reasoning templates to the first speakers.")
    optimist_model: str = Field("ollama:qwen3:32b", description="Model of the Optimist.")
    pessimist_model: str = Field("ollama:llama3.3:70b", description="Model of the Pessimist.")
    contrarian_model: str = Field("ollama:qwen3:32b", description="Model of the Contrarian.")
    historian_model: str = Field("ollama:llama3.3:70b", description="Model of the Historian.")
    judge_model: str = Field(
        "ollama:gemma3:27b", description="Model that judges, and scores every argument."
    )
    optimist_temperature: float = temperature_of(0.7, "Optimist")
    pessimist_temperature: float = temperature_of(0.7, "Pessimist")
    contrarian_temperature: float = temperature_of(0.9, "Contrarian")
    historian_temperature: float = temperature_of(0.5, "Historian")
    optimist_fallbacks: tuple[str, ...] = fallbacks_of("Optimist")
    pessimist_fallbacks: tuple[str, ...] = fallbacks_of("Pessimist")
    contrarian_fallbacks: tuple[str, ...] = fallbacks_of("Contrarian")
    historian_fallbacks: tuple[str, ...] = fallbacks_of("Historian")

    @property
    def opening_seats(self) -> tuple[str, ...]:
        return self.roles

    def build_seats(self) -> list[Seat]:
        return [self._seat(role) for role in self.roles]


def request_of(state: DebateState) -> DebateRequest:
    """Parse the request of a forecast; clients of a server may have sent anything."""
    try:
        return DebateRequest.model_validate_json(json.dumps(state["request"]))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise BadInput(f"The request is not well-formed: {where}: {first['msg']}.") from error
    except (TypeError, ValueError) as error:
        raise BadInput("The request is not JSON.") from error


def settings_of(request: DebateRequest) -> dict[str, object]:
    config = request.config.model_dump(mode="json", exclude_unset=True)
    return {_AS_SETTING.get(name, name): value for name, value in config.items()}
