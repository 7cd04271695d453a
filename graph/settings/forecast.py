import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from pydantic import Field, PositiveFloat, ValidationError, model_validator

from contend.graph.errors import BadInput
from contend.graph.forecast_contract import terms
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.settings.base import DebateSettings, fallbacks_of, temperature_of
from contend.graph.state import DebateState
from contend.graph.values import Seat

# Fitted by `python -m contend.evals.extremising` to market prices of resolved questions, because
# too few debates are resolved. The fit is loose (bootstrap: 0.95-1.21) and improves the log loss by
# only 0.0002; `contend scoreboard` fits it to the user's own forecasts.
EXTREMISING_FACTOR = 1.1
_AS_SETTING = {"rounds": "max_rounds"}


class ForecastSettings(DebateSettings):
    """Five roles argue over the possible outcomes and give each a probability."""

    protocol: ClassVar[str] = "forecast"
    use_when = "You want probabilities for what will happen."
    used_by = MappingProxyType(
        {
            "find_outcomes": ("judge",),
            "propose": (
                "optimist",
                "pessimist",
                "contrarian",
                "historian",
                "own_role",
                "judge",
                "roles",
                "own_roles",
                "max_argument_length",
                "argument_input_tokens",
                "scoring_criteria",
                "own_criteria",
            ),
            "critique": ("judge", "scoring_criteria", "own_criteria"),
            "judge_continue": ("judge", "max_rounds"),
            "synthesize": ("judge", "judge_weight", "extremising_factor"),
        }
    )

    max_rounds: int = Field(
        terms.ROUNDS,
        ge=1,
        le=terms.MOST_ROUNDS,
        description="Exact number of rounds.",
    )
    roles: tuple[terms.Role, ...] = Field(
        terms.ROLES, description="Who debates: the judge and at least one other role."
    )
    own_roles: tuple[terms.OwnRole, ...] = Field(
        (),
        max_length=terms.MOST_OWN,
        description="Your own roles, which debate too: each with a name and its viewpoint.",
    )
    max_argument_length: int = Field(
        terms.MAX_ARGUMENT_LENGTH, ge=100, le=4000, description="Maximum tokens in an argument."
    )
    argument_input_tokens: int = Field(
        600, ge=300, le=32_000, description="Intended tokens in the prompt for an argument."
    )
    scoring_criteria: tuple[terms.Criterion, ...] = Field(
        terms.CRITERIA, description="Criteria for scoring arguments."
    )
    own_criteria: tuple[terms.OwnCriterion, ...] = Field(
        (),
        max_length=terms.MOST_OWN,
        description="Your own criteria, which count too: each a name, a description and a weight.",
    )
    judge_weight: float = Field(
        terms.JUDGE_WEIGHT,
        ge=0,
        le=1,
        description="Weight of the judge against the role consensus.",
    )
    extremising_factor: PositiveFloat = Field(
        EXTREMISING_FACTOR, le=10, description="Power to which the extremized pool raises the odds."
    )
    overall_timeout: PositiveFloat = Field(
        120,
        description="Maximum seconds for the debate; the result lists what is missing by then.",
    )
    templates: bool = Field(False, description="Give reasoning templates to the first speakers.")
    optimist_model: str = Field("ollama:qwen3:32b", description="Model for the Optimist.")
    pessimist_model: str = Field("ollama:llama3.3:70b", description="Model for the Pessimist.")
    contrarian_model: str = Field("ollama:qwen3:32b", description="Model for the Contrarian.")
    historian_model: str = Field("ollama:llama3.3:70b", description="Model for the Historian.")
    judge_model: str = Field(
        "ollama:gemma3:27b", description="Model that judges, and scores every argument."
    )
    own_role_model: str = Field("ollama:qwen3:32b", description="Model for your own roles.")
    optimist_temperature: float = temperature_of(0.7, "Optimist")
    pessimist_temperature: float = temperature_of(0.7, "Pessimist")
    contrarian_temperature: float = temperature_of(0.9, "Contrarian")
    historian_temperature: float = temperature_of(0.5, "Historian")
    own_role_temperature: float = temperature_of(0.7, "roles of your own")
    optimist_fallbacks: tuple[str, ...] = fallbacks_of("Optimist")
    pessimist_fallbacks: tuple[str, ...] = fallbacks_of("Pessimist")
    contrarian_fallbacks: tuple[str, ...] = fallbacks_of("Contrarian")
    historian_fallbacks: tuple[str, ...] = fallbacks_of("Historian")
    own_role_fallbacks: tuple[str, ...] = fallbacks_of("roles of your own")

    @model_validator(mode="after")
    def _check_own(self) -> Self:
        terms.check_roles(self.roles, [each.name for each in self.own_roles])
        terms.check_criteria(self.scoring_criteria, [each.name for each in self.own_criteria])
        return self

    @property
    def role_names(self) -> tuple[str, ...]:
        own = [each.name for each in self.own_roles]
        return tuple(sorted((*self.roles, *own), key=lambda role: role == "judge"))

    @property
    def criteria_weights(self) -> dict[str, float]:
        built_in = {name: terms.COMPOSITE_WEIGHTS[name] for name in self.scoring_criteria}
        return built_in | {each.name: each.weight for each in self.own_criteria}

    @property
    def opening_seats(self) -> tuple[str, ...]:
        return self.role_names

    def build_seats(self) -> list[Seat]:
        return [
            self._seat(role) if role in terms.ROLES else self._own_seat(role)
            for role in self.role_names
        ]

    def _own_seat(self, role: str) -> Seat:
        name = role.replace("_", " ").capitalize()
        return self._seat("own_role").model_copy(update={"id": role, "name": name, "role": role})

    def has_chosen_model(self, seat: Seat) -> bool:
        return f"{self._model_of(seat.id)}_model" in self.model_fields_set

    def with_models(self, models: Mapping[str, str]) -> Self:
        return super().with_models({self._model_of(seat): name for seat, name in models.items()})

    @classmethod
    def settings_for_model(cls, model: str) -> dict[str, Any]:
        return super().settings_for_model(model) | {"own_role_model": model}

    def model_option(self, seat: Seat) -> str:
        return f"--set {self._model_of(seat.id)}_model=PROVIDER:NAME"

    def _model_of(self, seat: str) -> str:
        return seat if seat in terms.ROLES else "own_role"


def request_of(state: DebateState) -> DebateRequest:
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
