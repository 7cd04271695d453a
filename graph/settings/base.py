"""What every protocol can be told, and what nodes ask of a protocol."""

import os
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

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

from contend.graph.phases import PhaseName
from contend.graph.state import ClosingNode, DebateState, Document, Image, Seat

MAX_QUESTION_CHARS = 100_000

PausePoint = Literal["never", "each_round", "before_synthesis"]
OutputFormat = Literal["markdown", "json", "text"]
WhenASeatFails = Literal["stop", "keep_answer", "sit_out"]


class SeatFiles(NamedTuple):
    """The paths of the files that one seat brings along."""

    docs: tuple[str, ...] = ()
    images: tuple[str, ...] = ()


@dataclass(frozen=True)
class FolderPlan:
    """Where a debate's folder of files goes, and in which form."""

    base: Path
    form: OutputFormat
    transcript: bool


def snake_case(name: str) -> str:
    """`roundCount` and `round_count` name one setting."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def data_home() -> Path:
    """The folder that holds the database, model weights and outputs: CONTEND_HOME or the user's."""
    chosen = os.environ.get("CONTEND_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("contend")


def outputs_home() -> Path:
    """Where folders of debates go unless the user says otherwise."""
    return data_home() / "outputs"


def temperature_of(default: float, who: str) -> Any:
    """The setting of a role's temperature."""
    return Field(default, ge=0, le=2, description=f"Sampling temperature of the {who}.")


def fallbacks_of(who: str) -> Any:
    """The setting of a role's fallback models."""
    return Field(
        default=(), description=f"Models the {who} falls back to, in order, when its own fails."
    )


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
    """What every protocol can be told."""

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
    top_k: int = Field(3, ge=1, le=10, description="Reasoning templates at the most.")
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

    @model_validator(mode="after")
    def _templates_for_first_speakers(self) -> Self:
        if self.template_seats == ():
            raise ValueError("template_seats names nobody; --no-templates switches them off")
        named = self.template_seats or ()
        strangers = [seat for seat in named if seat not in self.opening_seats]
        if strangers:
            raise ValueError(
                f"template_seats names '{strangers[0]}', but round 1 is spoken by: "
                f"{', '.join(self.opening_seats)}"
            )
        return self

    @abstractmethod
    def table(self) -> list[Seat]:
        """The table this protocol lays with these settings."""

    @property
    @abstractmethod
    def protocol(self) -> str:
        """The protocol's name, which is also its prompts' folder."""

    @property
    @abstractmethod
    def opening_seats(self) -> tuple[str, ...]:
        """The seats that speak in round 1: templates and images are for them."""

    @property
    @abstractmethod
    def rounds(self) -> tuple[int, int]:
        """The least and the most rounds of argument."""

    @property
    @abstractmethod
    def answering_role(self) -> str:
        """The role of those who answer the question in every round."""

    @property
    @abstractmethod
    def critic_role(self) -> str:
        """The role that tells them what to mend."""

    @property
    @abstractmethod
    def writer_role(self) -> str | None:
        """The role that writes the final answer; None where nobody does."""

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """The most steps its graph can take; langgraph's own default is ten thousand."""

    @property
    def first_round(self) -> int:
        """The number of the first round; 0 where the answers come before any argument."""
        return 1

    @property
    def critique_decides(self) -> bool:
        """Whether a critique can end the debate, so that what it decides must be read."""
        return False

    @property
    def when_a_seat_fails(self) -> WhenASeatFails:
        """What its failure to answer means, as long as somebody else has answered."""
        return "stop"

    @property
    def gives_verdict(self) -> bool:
        """Whether the positions are reviewed before the answer is written."""
        return False

    @property
    def style(self) -> str:
        """The manner of debate, where a protocol has several; it names the file of a task."""
        return ""

    def own_prompt(self, part: str) -> str | None:  # noqa: ARG002 - some protocols ask it
        """The user's own prompt for a part, in place of ours."""
        return None

    def answering_part(self, round_number: int, *, has_spoken: bool) -> str:  # noqa: ARG002
        """The prompt an answer is asked for with: for a first one, or for what follows it."""
        return "again" if round_number > self.first_round else "first"

    def answers(self, seat: Seat) -> bool:
        """Whether this seat speaks in every round."""
        return seat.role == self.answering_role

    def check_given(self, given: DebateState) -> None:
        """Raise BadInput when what the caller gave is not enough for this protocol."""

    def label(self, seat: Seat, place: int) -> str:  # noqa: ARG002 - some protocols ask it
        """What other speakers know a seat as; `place` counts the seats of its role from 0."""
        return seat.name

    def opening_state(self) -> DebateState:
        """What the state begins with besides question, seats and first round."""
        return {}

    def opening_role(self, round_number: int) -> str:  # noqa: ARG002 - some protocols ask it
        """The role that speaks first in a round."""
        return self.answering_role

    def closing_node(self, round_number: int) -> ClosingNode:  # noqa: ARG002 - some ask it
        """What follows when all have spoken in a round."""
        return "judge_continue"

    def asks_judge(self, round_number: int) -> bool:  # noqa: ARG002 - some protocols ask it
        """Whether a judge is asked, after this round, if another is worth it."""
        return False

    def speakers(self, round_number: int, waiting: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - some protocols ask it
        """Who of those still to speak in this round speaks now; several speak at once."""
        return tuple(waiting)

    def token_limit(self, phase: PhaseName) -> int | None:  # noqa: ARG002 - some protocols ask it
        """The most tokens a turn of this phase may have; None where there is no such rule."""
        return None

    @property
    def folder_plan(self) -> FolderPlan | None:
        """The folder of files that is written while the debate goes on; None for none."""
        return None

    def for_call(self, phase: PhaseName, round_number: int) -> Self:  # noqa: ARG002 - some protocols ask them
        """The settings that hold for a call of this phase: its time and its tries."""
        return self

    def files_of_seats(self) -> dict[str, SeatFiles]:
        """The files that single seats bring along, by the seat's id; the others have none."""
        return {}

    def sees(self, seat: Seat, brought: Document | Image) -> bool:
        """Whether a seat is shown it; whoever does not answer, such as the judge, sees all."""
        return not brought.seats or seat.id in brought.seats or seat.role != self.answering_role

    @property
    def most_tool_calls(self) -> int:
        """How often a seat may use its tools in one turn."""
        return 0

    def is_named(self, seat: Seat) -> bool:
        """Whether the user named this seat's model."""
        return f"{seat.id}_model" in self.model_fields_set

    def with_models(self, models: Mapping[str, str]) -> Self:
        """The same with these models, by seat id, as if the user had named them."""
        return self.model_copy(update={f"{seat}_model": model for seat, model in models.items()})

    @classmethod
    def of_one_model(cls, model: str) -> dict[str, Any]:
        """The values that name one model for every seat."""
        return {f"{seat.id}_model": model for seat in cls().table()}

    def how_to_name(self, seat: Seat) -> str:
        """The option that names this seat's model."""
        return f"--set {seat.id}_model=PROVIDER:NAME"

    def _seat(self, role: str) -> Seat:
        """A seat that has settings of its own, named after it."""
        return Seat(
            id=role,
            name=role.capitalize(),
            role=role,
            model=getattr(self, f"{role}_model"),
            temperature=getattr(self, f"{role}_temperature"),
            fallback_models=getattr(self, f"{role}_fallbacks"),
        )
