import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, field_validator, model_validator

from contend.graph.readings import Breach
from contend.graph.settings.base import (
    DebateSettings,
    OutputFormat,
    Settings,
    fallbacks_of,
    snake_case,
    temperature_of,
)
from contend.graph.settings.seats import (
    FEWEST_SEATS,
    MOST_SEATS,
    first_duplicate,
    first_duplicate_position,
    slugs,
    tidy_text,
)
from contend.graph.values import Seat

DebateFormat = Literal["formal", "casual", "educational", "competitive"]

ADVOCATE = "position_advocate"
_OFFICIALS = ("moderator", "fact_checker")


@dataclass(frozen=True)
class Format:
    breaches: tuple[Breach, ...]  # breaches that the moderator rules on
    declares_winner: bool

    @property
    def orders(self) -> int:
        """Return the number of orders in which the judge reads the statements."""
        return 2 if self.declares_winner else 1


FORMATS: dict[DebateFormat, Format] = {
    "formal": Format(
        ("off_topic", "new_argument_in_closing", "personal_attack"), declares_winner=True
    ),
    "casual": Format(("personal_attack",), declares_winner=False),
    "educational": Format(("off_topic", "personal_attack"), declares_winner=False),
    "competitive": Format(
        ("off_topic", "new_argument_in_closing", "personal_attack"),
        declares_winner=True,
    ),
}


class PositionChoice(Settings):
    """The configuration of one side."""

    name: str = Field(min_length=1, max_length=40, description="The advocate's name.")
    position: str | None = Field(
        None,
        max_length=2000,
        description="What the advocate argues for; if null, the moderator proposes it.",
    )
    model: str | None = Field(
        None, min_length=1, description="The advocate's model, as PROVIDER:NAME."
    )
    temperature: float | None = Field(
        None, ge=0, le=2, description="The advocate's sampling temperature."
    )
    system_prompt: str = Field("", description="Your instructions for this advocate.")
    fallbacks: tuple[str, ...] = fallbacks_of("advocate")

    @field_validator("name")
    @classmethod
    def _tidy_name(cls, text: str) -> str:
        return tidy_text(text)

    @field_validator("position")
    @classmethod
    def _tidy_position(cls, text: str | None) -> str | None:
        if text is None:
            return None
        words = text.split()
        # Invisible characters are not a position.
        return " ".join(words) if any(map(str.isprintable, "".join(words))) else ""


# More than any model writes at once. Some limit is needed: checkpoints cannot store huge numbers.
_TokenLimit = Annotated[int, Field(ge=1, le=100_000)]
# The default sides, for which the moderator proposes positions.
_UNDECIDED = (PositionChoice(name="Advocate A"), PositionChoice(name="Advocate B"))
_WEIGHTS = {
    "logical_coherence": 0.25,
    "evidence_quality": 0.25,
    "responsiveness": 0.20,
    "persuasiveness": 0.15,
    "rule_adherence": 0.15,
}


class ModeratedSettings(DebateSettings):
    """Advocates argue for fixed positions under a moderator, and a judge scores what they say."""

    protocol: ClassVar[str] = "moderated"
    use_when = "You want a structured hearing of both sides, with scores."
    used_by = MappingProxyType(
        {
            "moderate": (
                "moderator",
                "positions",
                "debate_format",
                "round_count",
                "moderator_may_adjust",
                "min_round_count",
                "max_round_count",
            ),
            "propose": (
                "advocate",
                "positions",
                "opening_statement_max_tokens",
                "argument_max_tokens",
                "closing_statement_max_tokens",
                "correction_max_tokens",
                "statement_max_seconds",
            ),
            "fact_check": ("fact_checker", "fact_check"),
            "score": (
                "judge",
                "scoring_enabled",
                "scoring_weights",
                "contested_margin",
                "winner_margin",
                "overlong_deduction",
                "ruling_deduction",
            ),
            "synthesize": ("moderator",),
            "store": ("output_dir", "output_format", "generate_full_transcript"),
        }
    )

    positions: tuple[PositionChoice, ...] = Field(
        _UNDECIDED,
        description=f"The sides: {FEWEST_SEATS} to {MOST_SEATS}, each with a name and a position.",
    )
    debate_format: DebateFormat = Field(
        "formal", description="Sets the tone, the rules, and whether a winner is declared."
    )
    round_count: int = Field(3, ge=0, le=20, description="Rounds of arguments and rebuttals.")
    moderator_may_adjust: bool = Field(
        False, description="Let the moderator add rounds or end them early, giving a reason."
    )
    min_round_count: int = Field(
        1, ge=1, le=20, description="Minimum rounds if the moderator shortens the debate."
    )
    max_round_count: int = Field(
        5, ge=1, le=20, description="Maximum rounds if the moderator extends the debate."
    )
    opening_statement_max_tokens: _TokenLimit = Field(
        300, description="Maximum tokens in an opening statement."
    )
    argument_max_tokens: _TokenLimit = Field(
        250, description="Maximum tokens in an argument or a rebuttal."
    )
    closing_statement_max_tokens: _TokenLimit = Field(
        350, description="Maximum tokens in a closing statement."
    )
    correction_max_tokens: _TokenLimit = Field(100, description="Maximum tokens in a correction.")
    statement_max_seconds: PositiveFloat | None = Field(
        None, description="Maximum seconds for a statement; the rest is cut off."
    )
    fact_check: bool = Field(False, description="Let a fact checker check every statement.")
    scoring_enabled: bool = Field(True, description="Let a judge score every statement.")
    scoring_weights: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        _WEIGHTS, description="Weight of each criterion; the weights must sum to 1."
    )
    contested_margin: NonNegativeFloat = Field(
        2.0,
        description="Points by which two scores of a statement may differ; double per criterion.",
    )
    winner_margin: float = Field(
        0.5, ge=0, le=10, description="Points by which the winner's total must lead."
    )
    overlong_deduction: float = Field(
        2.0, ge=0, le=10, description="Points of rule adherence that an overlong turn costs."
    )
    ruling_deduction: float = Field(
        3.0, ge=0, le=10, description="Points of rule adherence that a ruling costs."
    )
    output_dir: Path | None = Field(
        None, description="Where to write the folder of files; by default in the data folder."
    )
    output_format: OutputFormat = Field(
        "markdown", description="Format of the files in the folder."
    )
    generate_full_transcript: bool = Field(
        False, description="Write an additional file with the whole transcript."
    )
    advocate_model: str = Field(
        "ollama:qwen3:32b", description="Model for advocates that have none of their own."
    )
    moderator_model: str = Field("ollama:gemma3:27b", description="Model that moderates.")
    fact_checker_model: str = Field("ollama:gemma3:27b", description="Model that checks facts.")
    judge_model: str = Field("ollama:llama3.3:70b", description="Model that scores.")
    advocate_temperature: float = temperature_of(0.7, "advocates")
    moderator_temperature: float = temperature_of(0.3, "moderator")
    fact_checker_temperature: float = temperature_of(0.0, "fact checker")
    advocate_fallbacks: tuple[str, ...] = fallbacks_of("advocates")
    moderator_fallbacks: tuple[str, ...] = fallbacks_of("moderator")
    fact_checker_fallbacks: tuple[str, ...] = fallbacks_of("fact checker")
    moderator_name: str = Field("Moderator", max_length=40, description="The moderator's name.")
    fact_checker_name: str = Field(
        "Fact checker", max_length=40, description="The fact checker's name."
    )
    moderator_system_prompt: str = Field("", description="Your instructions for the moderator.")
    fact_checker_system_prompt: str = Field(
        "", description="Your instructions for the fact checker."
    )

    @field_validator("positions")
    @classmethod
    def _check_positions(cls, sides: tuple[PositionChoice, ...]) -> tuple[PositionChoice, ...]:
        if not FEWEST_SEATS <= len(sides) <= MOST_SEATS:
            raise ValueError(
                f"this protocol needs {FEWEST_SEATS} to {MOST_SEATS} positions, not {len(sides)}; "
                "add each with --position 'NAME: POSITION'"
            )
        if (name := first_duplicate(side.name for side in sides)) is not None:
            raise ValueError(f"two sides are called '{name}'; give each a different name")
        given = [side.position for side in sides if side.position is not None]
        if given and not all(side.position for side in sides):
            silent = next(side.name for side in sides if not side.position)
            raise ValueError(f"the position of '{silent}' is empty")
        if (position := first_duplicate_position(given)) is not None:
            raise ValueError(f"two sides hold the same position: '{position}'")
        return sides

    @field_validator("output_dir")
    @classmethod
    def _make_absolute(cls, folder: Path | None) -> Path | None:
        """Make the path absolute, because a debate may be resumed from a different folder."""
        return folder and folder.expanduser().absolute()

    @field_validator("moderator_name", "fact_checker_name")
    @classmethod
    def _tidy_name(cls, text: str) -> str:
        return tidy_text(text)

    @field_validator("scoring_weights", mode="before")
    @classmethod
    def _accept_camel_case_criteria(cls, weights: Any) -> Any:
        if not isinstance(weights, Mapping):
            return weights
        return {snake_case(str(name)): value for name, value in weights.items()}

    @field_validator("scoring_weights")
    @classmethod
    def _check_weights(cls, weights: dict[str, float]) -> dict[str, float]:
        if set(weights) != set(_WEIGHTS):
            raise ValueError(f"scoring_weights must name each of {', '.join(_WEIGHTS)}")
        whole = math.fsum(weights.values())
        if not math.isclose(whole, 1, abs_tol=1e-6):
            raise ValueError(f"scoring_weights must sum to 1, not {whole:g}")
        return {name: weights[name] for name in _WEIGHTS}

    @model_validator(mode="after")
    def _check_names_of_sides(self) -> Self:
        """Refuse a side that has the moderator's, fact checker's or judge's name."""
        officials = {
            self.moderator_name: "the moderator",
            self.fact_checker_name: "the fact checker",
            "Judge": "the judge",
        }
        called = {name.casefold(): who for name, who in officials.items()}
        for side in self.positions:
            if (who := called.get(side.name.casefold())) is not None:
                raise ValueError(f"a side is called '{side.name}' like {who}; choose another name")
        return self

    @model_validator(mode="after")
    def _check_limits_of_rounds(self) -> Self:
        least, most = self.min_round_count, self.max_round_count
        if self.moderator_may_adjust and not least <= self.round_count <= most:
            raise ValueError(
                f"round_count is {self.round_count}, but with moderator_may_adjust it must be from "
                f"min_round_count ({least}) to max_round_count ({most})"
            )
        return self

    @property
    def format(self) -> Format:
        return FORMATS[self.debate_format]

    @property
    def opening_seats(self) -> tuple[str, ...]:
        return tuple(seat.id for seat in self._advocates())

    def build_seats(self) -> list[Seat]:
        checker = [self._official("fact_checker")] if self.fact_check else []
        judge = [self._seat("judge")] if self.scoring_enabled else []
        return [self._official("moderator"), *self._advocates(), *checker, *judge]

    def _official(self, role: str) -> Seat:
        more = {
            "name": getattr(self, f"{role}_name"),
            "system_prompt": getattr(self, f"{role}_system_prompt"),
        }
        return self._seat(role).model_copy(update=more)

    def _advocates(self) -> list[Seat]:
        ids = slugs((side.name for side in self.positions), taken=_OFFICIALS)
        return [self._advocate(slug, side) for slug, side in zip(ids, self.positions, strict=True)]

    def _advocate(self, slug: str, side: PositionChoice) -> Seat:
        cool = self.advocate_temperature if side.temperature is None else side.temperature
        return Seat(
            id=slug,
            name=side.name,
            role=ADVOCATE,
            model=side.model or self.advocate_model,
            temperature=cool,
            system_prompt=side.system_prompt,
            position=side.position or "",
            fallback_models=side.fallbacks or self.advocate_fallbacks,
        )

    def has_chosen_model(self, seat: Seat) -> bool:
        if seat.role != ADVOCATE:
            return super().has_chosen_model(seat)
        own = dict(zip(self.opening_seats, self.positions, strict=True)).get(seat.id)
        has_own_model = own is not None and own.model is not None
        return has_own_model or "advocate_model" in self.model_fields_set

    def with_models(self, models: Mapping[str, str]) -> Self:
        return self._with_models_of_choices("positions", models)

    @classmethod
    def settings_for_model(cls, model: str) -> dict[str, Any]:
        roles = ("advocate", *_OFFICIALS, "judge")
        return {f"{role}_model": model for role in roles}

    def model_option(self, seat: Seat) -> str:
        if seat.role == ADVOCATE:
            return "--set advocate_model=PROVIDER:NAME"
        return super().model_option(seat)
