"""Settings, one model per protocol: the graph's context_schema, Studio's form, `contend config`."""

import os
import re
from abc import abstractmethod
from pathlib import Path
from typing import Any, Literal, Self

import platformdirs
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    model_validator,
)

from graph.state import Seat

MAX_QUESTION_CHARS = 100_000

PausePoint = Literal["never", "each_round", "before_synthesis"]


def data_home() -> Path:
    """The folder that holds the database, model weights and outputs: CONTEND_HOME or the user's."""
    chosen = os.environ.get("CONTEND_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("contend")


def _temperature(default: float, who: str) -> Any:
    return Field(default, ge=0, le=2, description=f"Sampling temperature of the {who}.")


def _fallbacks(who: str) -> Any:
    return Field(
        default=(), description=f"Models the {who} falls back to, in order, when its own fails."
    )


class DebateSettings(BaseModel):
    """What every protocol can be told."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pause: PausePoint = Field(
        "never", description="Where the debate waits for a person: nowhere, each round, or once."
    )
    judge_model: str = Field("ollama:gemma3:27b", description="Model that rates the answer.")
    judge_temperature: float = _temperature(0.2, "judge")
    judge_fallbacks: tuple[str, ...] = _fallbacks("judge")
    embedding_model: str = Field(
        "ollama:nomic-embed-text", description="Model that finds reasoning templates."
    )
    connect_timeout: PositiveFloat = Field(10, description="Seconds to reach a provider.")
    idle_timeout: PositiveFloat = Field(120, description="Seconds without a token.")
    total_timeout: PositiveFloat = Field(900, description="Seconds for one whole call.")
    max_retries: NonNegativeInt = Field(
        3, le=10, description="Further tries of a call that failed for a passing reason."
    )
    retry_wait: PositiveFloat = Field(
        1.0, description="Seconds of the first wait between tries; doubled each time, with jitter."
    )
    context_tokens: int | None = Field(
        None, ge=512, description="Tokens a prompt may fill; by default what the model can take."
    )
    prices: dict[str, tuple[NonNegativeFloat, NonNegativeFloat]] = Field(
        default_factory=dict,
        description="US dollars per million input and output tokens, by model spec.",
    )

    @model_validator(mode="before")
    @classmethod
    def _accept_camel_case(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {snake_case(str(name)): value for name, value in values.items()}

    @abstractmethod
    def seats(self) -> list[Seat]:
        """The table this protocol lays with these settings."""

    @property
    @abstractmethod
    def protocol(self) -> str:
        """The protocol's name, which is also its prompts' folder."""

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """The most steps its graph can take; langgraph's own default is ten thousand."""


class AdversarialSettings(DebateSettings):
    """Proposer answers, Skeptic attacks, Synthesizer writes the answer."""

    min_rounds: int = Field(3, ge=1, le=50, description="Rounds before a clean critique may stop.")
    max_rounds: int = Field(5, ge=1, le=50, description="Rounds at the most.")
    early_stop_score: float = Field(
        8, ge=1, le=10, description="Quality score from which the answer counts as ready."
    )
    ready_respects_min_rounds: bool = Field(
        False, description="Hold a ready signal to min_rounds as well."
    )
    proposer_model: str = Field("ollama:qwen3:32b", description="Model that answers and defends.")
    skeptic_model: str = Field("ollama:llama3.3:70b", description="Model that attacks.")
    synthesizer_model: str = Field("ollama:qwen3:32b", description="Model that writes the answer.")
    proposer_temperature: float = _temperature(0.7, "Proposer")
    skeptic_temperature: float = _temperature(0.8, "Skeptic")
    synthesizer_temperature: float = _temperature(0.5, "Synthesizer")
    proposer_fallbacks: tuple[str, ...] = _fallbacks("Proposer")
    skeptic_fallbacks: tuple[str, ...] = _fallbacks("Skeptic")
    synthesizer_fallbacks: tuple[str, ...] = _fallbacks("Synthesizer")

    @model_validator(mode="after")
    def _minimum_within_maximum(self) -> Self:
        if self.min_rounds > self.max_rounds:
            raise ValueError(
                f"min_rounds ({self.min_rounds}) is larger than max_rounds ({self.max_rounds})"
            )
        return self

    @property
    def protocol(self) -> str:
        """The protocol's name."""
        return "adversarial"

    @property
    def max_steps(self) -> int:
        """Three steps a round, four around them, and room for resumed ones."""
        return 3 * self.max_rounds + 10

    def seats(self) -> list[Seat]:
        """Proposer, Skeptic, Synthesizer and, apart from them, the judge."""
        return [self._seat(role) for role in ("proposer", "skeptic", "synthesizer", "judge")]

    def _seat(self, role: str) -> Seat:
        return Seat(
            id=role,
            name=role.capitalize(),
            role=role,
            model=getattr(self, f"{role}_model"),
            temperature=getattr(self, f"{role}_temperature"),
            fallback_models=getattr(self, f"{role}_fallbacks"),
        )


SETTINGS: dict[str, type[DebateSettings]] = {"adversarial": AdversarialSettings}


def snake_case(name: str) -> str:
    """`roundCount` and `round_count` name one setting."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
