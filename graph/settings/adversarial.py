from types import MappingProxyType
from typing import ClassVar, Self

from pydantic import Field, model_validator

from contend.graph.settings.base import DebateSettings, fallbacks_of, temperature_of
from contend.graph.values import Seat


class AdversarialSettings(DebateSettings):
    """A Proposer answers, a Skeptic attacks, a Synthesizer writes the final answer."""

    protocol: ClassVar[str] = "adversarial"
    use_when = "One answer must hold: decisions, designs, plans."
    small_rounds = MappingProxyType({"min_rounds": 2, "max_rounds": 2})
    used_by = MappingProxyType(
        {
            "propose": ("proposer",),
            "critique": ("skeptic",),
            "judge_continue": (
                "min_rounds",
                "max_rounds",
                "early_stop_score",
                "ready_respects_min_rounds",
            ),
            "synthesize": ("synthesizer",),
            "score": ("judge",),
        }
    )

    template_seats: tuple[str, ...] = Field(
        default=("proposer",), description="Seats that get the templates: proposer, skeptic."
    )
    min_rounds: int = Field(
        3, ge=1, le=50, description="Rounds before a good score may end the debate."
    )
    max_rounds: int = Field(5, ge=1, le=50, description="Maximum number of rounds.")
    early_stop_score: float = Field(
        8, ge=1, le=10, description="Quality score at which the answer counts as ready."
    )
    ready_respects_min_rounds: bool = Field(
        False, description="Apply min_rounds to the Skeptic's ready signal too."
    )
    proposer_model: str = Field("ollama:qwen3:32b", description="Model that answers and defends.")
    skeptic_model: str = Field("ollama:llama3.3:70b", description="Model that attacks.")
    synthesizer_model: str = Field("ollama:qwen3:32b", description="Model that writes the answer.")
    proposer_temperature: float = temperature_of(0.7, "Proposer")
    skeptic_temperature: float = temperature_of(0.8, "Skeptic")
    synthesizer_temperature: float = temperature_of(0.5, "Synthesizer")
    proposer_fallbacks: tuple[str, ...] = fallbacks_of("Proposer")
    skeptic_fallbacks: tuple[str, ...] = fallbacks_of("Skeptic")
    synthesizer_fallbacks: tuple[str, ...] = fallbacks_of("Synthesizer")

    @model_validator(mode="after")
    def _check_rounds(self) -> Self:
        if self.min_rounds > self.max_rounds:
            raise ValueError(
                f"min_rounds ({self.min_rounds}) is larger than max_rounds ({self.max_rounds}). "
                "Set both, for example with --set"
            )
        return self

    @property
    def opening_seats(self) -> tuple[str, ...]:
        return ("proposer", "skeptic")

    def build_seats(self) -> list[Seat]:
        return [self._seat(role) for role in ("proposer", "skeptic", "synthesizer", "judge")]
