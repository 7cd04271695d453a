"""Settings that every protocol has."""

import os
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self

import platformdirs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from contend.graph.values import Seat

MAX_QUESTION_CHARS = 100_000

PausePoint = Literal["never", "each_round", "before_synthesis"]
OutputFormat = Literal["markdown", "json", "text"]


class SeatFiles(NamedTuple):
    """The paths of the files of one seat."""

    docs: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class FolderPlan:
    """Where a debate's folder of files goes, and in which format."""

    base: Path
    form: OutputFormat
    transcript: bool


def snake_case(name: str) -> str:
    """Convert `roundCount` to `round_count`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def data_home() -> Path:
    """Return the folder of database, weights and outputs: CONTEND_HOME or the user's."""
    chosen = os.environ.get("CONTEND_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("contend")


def outputs_home() -> Path:
    return data_home() / "outputs"


def temperature_of(default: float, who: str) -> Any:
    return Field(default, ge=0, le=2, description=f"Sampling temperature of the {who}.")


def fallbacks_of(who: str) -> Any:
    return Field(default=(), description=f"Fallback models of the {who}, in order.")


class Settings(BaseModel):
    """Frozen, strict about names, and lenient about their spelling."""

    # Infinity is no JSON, which records and exports are made of.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _accept_camel_case(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {snake_case(str(name)): value for name, value in values.items()}


class DebateSettings(Settings):
    """The settings that every protocol has."""

    protocol: ClassVar[str]  # the protocol's name, which is also the folder of its prompts
    use_when: ClassVar[str] = ""  # what the protocol is good for, in a sentence
    small_rounds: ClassVar[Mapping[str, int]] = {}  # limits that suit small models

    pause: PausePoint = Field(
        "never", description="Where the debate waits for a person: nowhere, each round, or once."
    )
    judge_model: str = Field("ollama:gemma3:27b", description="Model that rates the answer.")
    judge_temperature: float = temperature_of(0.2, "judge")
    judge_fallbacks: tuple[str, ...] = fallbacks_of("judge")
    embedding_model: str = Field(
        "ollama:nomic-embed-text",
        description="Model that finds reasoning templates, and passages in documents.",
    )
    templates: bool = Field(True, description="Give reasoning templates to the first speakers.")
    top_k: int = Field(3, ge=1, le=10, description="Maximum number of reasoning templates.")
    min_similarity: float | None = Field(
        None,
        ge=-1,
        le=1,
        description="Least similarity of a template; by default as calibrated for the model.",
    )
    template_seats: tuple[str, ...] | None = Field(
        default=None, description="Seats that get the templates; all first speakers by default."
    )
    passages: int = Field(
        6, ge=1, le=50, description="Passages of the documents each turn is shown."
    )
    connect_timeout: PositiveFloat = Field(10, description="Seconds to reach a provider.")
    first_token_timeout: PositiveFloat = Field(
        300, description="Seconds until the first token; built-in models have no such limit."
    )
    idle_timeout: PositiveFloat = Field(
        120, description="Seconds without a token or a keep-alive, after the first token."
    )
    total_timeout: PositiveFloat = Field(900, description="Seconds for one whole call.")
    max_retries: NonNegativeInt = Field(
        3, le=10, description="Further tries of a call that failed for a passing reason."
    )
    retry_wait: PositiveFloat = Field(
        1.0, description="Seconds of the first wait between tries; doubled each time, with jitter."
    )
    rate_limit_patience: float = Field(
        120, ge=0, description="Seconds to wait out a provider's rate limit before giving up."
    )
    max_parallel_calls: PositiveInt | None = Field(
        None,
        description="Calls at once to one provider, by all debates of this process together; "
        "without it what the provider takes is learned.",
    )
    requests_per_minute: PositiveInt | None = Field(
        None,
        description="Calls a minute to one provider, by all debates of this process together; "
        "what its headers state is respected without it.",
    )
    tokens_per_minute: PositiveInt | None = Field(
        None, description="Tokens a minute to one provider, likewise."
    )
    context_tokens: int | None = Field(
        None, ge=512, description="Tokens a prompt may fill; by default what the model can take."
    )
    budget: PositiveInt | None = Field(
        None, description="Tokens that all calls of the debate may use together."
    )
    max_cost: PositiveFloat | None = Field(
        None, description="US dollars that all calls of the debate may cost together."
    )
    prices: dict[str, tuple[NonNegativeFloat, ...]] = Field(
        default_factory=dict,
        description="US dollars per million tokens of input, output and, if you like, cached "
        "input, by model spec; instead of the prices that ship.",
    )

    @model_validator(mode="after")
    def _check_prices(self) -> Self:
        for spec, amounts in self.prices.items():
            if len(amounts) not in (2, 3):
                raise ValueError(
                    f"the prices of '{spec}' must be [INPUT, OUTPUT] or [INPUT, OUTPUT, CACHED]"
                )
        return self

    @model_validator(mode="after")
    def _check_template_seats(self) -> Self:
        if self.template_seats == ():
            raise ValueError("template_seats is empty; use --no-templates to switch templates off")
        named = self.template_seats or ()
        strangers = [seat for seat in named if seat not in self.opening_seats]
        if strangers:
            raise ValueError(
                f"template_seats names '{strangers[0]}', but the seats that speak in round 1 are: "
                f"{', '.join(self.opening_seats)}"
            )
        return self

    @abstractmethod
    def build_seats(self) -> list[Seat]:
        """Build the seats of the debate."""

    @property
    @abstractmethod
    def opening_seats(self) -> tuple[str, ...]:
        """The ids of the seats that speak in round 1: templates and images are for them."""

    def files_of_seats(self) -> dict[str, SeatFiles]:
        return {}

    def is_named(self, seat: Seat) -> bool:
        """Return whether the user chose this seat's model."""
        return f"{seat.id}_model" in self.model_fields_set

    def adapted_to_small_models(self) -> Self:
        """Return a copy with few rounds and no templates, where the user chose nothing."""
        chosen = self.model_fields_set
        changes: dict[str, Any] = {} if chosen & self.small_rounds.keys() else {**self.small_rounds}
        if "templates" not in chosen:
            changes["templates"] = False
        return self.model_copy(update=changes)

    def with_models(self, models: Mapping[str, str]) -> Self:
        """Return a copy with these models, by seat id, as if the user had chosen them."""
        return self.model_copy(update={f"{seat}_model": model for seat, model in models.items()})

    def _with_models_of_choices(self, field: str, models: Mapping[str, str]) -> Self:
        """Do the same where the models of the opening seats are set in one field of choices."""
        chosen = tuple(
            choice.model_copy(update={"model": models.get(seat, choice.model)})
            for seat, choice in zip(self.opening_seats, getattr(self, field), strict=True)
        )
        others = {seat: model for seat, model in models.items() if seat not in self.opening_seats}
        return DebateSettings.with_models(self, others).model_copy(update={field: chosen})

    @classmethod
    def of_one_model(cls, model: str) -> dict[str, Any]:
        return {f"{seat.id}_model": model for seat in cls().build_seats()}

    def how_to_name(self, seat: Seat) -> str:
        return f"--set {seat.id}_model=PROVIDER:NAME"

    def _seat(self, role: str) -> Seat:
        return Seat(
            id=role,
            name=role.capitalize(),
            role=role,
            model=getattr(self, f"{role}_model"),
            temperature=getattr(self, f"{role}_temperature"),
            fallback_models=getattr(self, f"{role}_fallbacks"),
        )
