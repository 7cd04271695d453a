import os
import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
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


_OF_ROLE = re.compile(r"_(model|temperature|fallbacks|name|system_prompt)$")
_USED_BY = {
    "retrieve": ("templates", "top_k", "min_similarity", "template_seats", "embedding_model"),
    "judge_continue": ("pause",),
}


class SeatFiles(NamedTuple):
    docs: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class FolderPlan:
    base: Path
    form: OutputFormat
    transcript: bool


@cache
def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def data_home() -> Path:
    chosen = os.environ.get("CONTEND_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("contend")


def outputs_home() -> Path:
    return data_home() / "outputs"


def temperature_of(default: float, who: str) -> Any:
    return Field(default, ge=0, le=2, description=f"Sampling temperature for the {who}.")


def fallbacks_of(who: str) -> Any:
    return Field(default=(), description=f"Fallback models for the {who}, in order.")


class Settings(BaseModel):
    # Refuse infinity, because records and exports are JSON, which cannot represent it.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _accept_camel_case(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {snake_case(str(name)): value for name, value in values.items()}


class DebateSettings(Settings):
    protocol: ClassVar[str]  # the protocol's name, which is also the folder of its prompts
    use_when: ClassVar[str] = ""  # when to use the protocol, in a sentence
    small_rounds: ClassVar[Mapping[str, int]] = {}  # round limits for small models
    # The settings and roles that each node uses, for Studio.
    used_by: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    pause: PausePoint = Field(
        "never",
        description="When to wait for a person: never, after each round, or before the answer.",
    )
    judge_model: str = Field("ollama:gemma3:27b", description="Model that scores the answer.")
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
        description="Minimum similarity of a template; the default depends on the embedding model.",
    )
    template_seats: tuple[str, ...] | None = Field(
        default=None, description="Seats that get the templates; all first speakers by default."
    )
    passages: int = Field(
        6, ge=1, le=50, description="Number of passages from the documents shown to each turn."
    )
    connect_timeout: PositiveFloat = Field(
        10, description="Maximum seconds to connect to a provider."
    )
    first_token_timeout: PositiveFloat = Field(
        300,
        description="Maximum seconds until the first token; built-in models have no such limit.",
    )
    idle_timeout: PositiveFloat = Field(
        120, description="Maximum seconds between tokens or keep-alives after the first token."
    )
    total_timeout: PositiveFloat = Field(900, description="Maximum seconds for one whole call.")
    max_retries: NonNegativeInt = Field(
        3, le=10, description="How often to retry a call that failed for a temporary reason."
    )
    retry_wait: PositiveFloat = Field(
        1.0, description="Seconds to wait before the first retry; doubled each time, with jitter."
    )
    rate_limit_patience: float = Field(
        120, ge=0, description="Seconds to wait out a provider's rate limit before giving up."
    )
    max_parallel_calls: PositiveInt | None = Field(
        None,
        description="Parallel calls to one provider, by all debates in this process together; "
        "if not set, the number is adapted to what the provider accepts.",
    )
    requests_per_minute: PositiveInt | None = Field(
        None,
        description="Calls per minute to one provider, by all debates in this process together; "
        "if not set, only the limits in the provider's headers apply.",
    )
    tokens_per_minute: PositiveInt | None = Field(
        None, description="Tokens per minute to one provider, counted in the same way."
    )
    context_tokens: int | None = Field(
        None, ge=512, description="Maximum tokens in a prompt; by default what the model accepts."
    )
    budget: PositiveInt | None = Field(None, description="Maximum tokens for the whole debate.")
    max_cost: PositiveFloat | None = Field(
        None, description="Maximum cost of the whole debate in US dollars."
    )
    prices: dict[str, tuple[NonNegativeFloat, ...]] = Field(
        default_factory=dict,
        description="Your prices by model spec, in US dollars per million tokens of input, output "
        "and, optionally, cached input. They replace the built-in prices.",
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
    def build_seats(self) -> list[Seat]: ...

    @property
    @abstractmethod
    def opening_seats(self) -> tuple[str, ...]:
        """Return the ids of the seats that speak first and by default get templates and images."""

    def files_of_seats(self) -> dict[str, SeatFiles]:
        return {}

    def has_chosen_model(self, seat: Seat) -> bool:
        return f"{seat.id}_model" in self.model_fields_set

    def adapted_to_small_models(self) -> Self:
        """Return a copy with few rounds and no templates, except where the user set them."""
        chosen = self.model_fields_set
        changes: dict[str, Any] = {} if chosen & self.small_rounds.keys() else {**self.small_rounds}
        if "templates" not in chosen:
            changes["templates"] = False
        return self.model_copy(update=changes)

    def with_models(self, models: Mapping[str, str]) -> Self:
        """Return a copy with these models, keyed by seat id, as if the user had chosen them."""
        return self.model_copy(update={f"{seat}_model": model for seat, model in models.items()})

    def _with_models_of_choices(self, field: str, models: Mapping[str, str]) -> Self:
        chosen = tuple(
            choice.model_copy(update={"model": models.get(seat, choice.model)})
            for seat, choice in zip(self.opening_seats, getattr(self, field), strict=True)
        )
        others = {seat: model for seat, model in models.items() if seat not in self.opening_seats}
        return DebateSettings.with_models(self, others).model_copy(update={field: chosen})

    @classmethod
    def settings_for_model(cls, model: str) -> dict[str, Any]:
        return {f"{seat.id}_model": model for seat in cls().build_seats()}

    @classmethod
    def nodes_of(cls, setting: str) -> list[str]:
        role = _OF_ROLE.sub("", setting)
        tables = (_USED_BY, cls.used_by)
        found = (node for table in tables for node in table if {setting, role} & {*table[node]})
        return list(dict.fromkeys(found))

    def model_option(self, seat: Seat) -> str:
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
