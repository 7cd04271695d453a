"""Settings shared by protocols with several equal seats and a judge."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from pydantic import Field, field_validator

from contend.graph.settings.base import DebateSettings, SeatFiles, Settings, fallbacks_of
from contend.graph.values import Seat, ToolName

FEWEST_SEATS, MOST_SEATS = 2, 8
DEBATER = "debater"
DebateIf = Literal["always", "drafts_disagree"]

# Ids that a user's seat must not have, because turns and records use them for something else.
_TAKEN_IDS = ("judge", "user", "embedding", "index")


class SeatChoice(Settings):
    """The configuration of one debater."""

    name: str = Field(min_length=1, max_length=40, description="The debater's name.")
    model: str = Field(min_length=1, description="The seat's model, as PROVIDER:NAME.")
    temperature: float | None = Field(
        None,
        ge=0,
        le=2,
        description="The seat's sampling temperature; by default the provider's own.",
    )
    system_prompt: str = Field("", description="Your instructions for this seat.")
    fallbacks: tuple[str, ...] = fallbacks_of("seat")
    docs: tuple[str, ...] = Field(
        default=(), description="Documents or folders that only this seat and the judge see."
    )
    images: tuple[str, ...] = Field(default=(), description="Pictures that only this seat sees.")
    tools: tuple[ToolName, ...] = Field(
        default=(), description="Tools the seat may use: calculate, search_documents."
    )

    @field_validator("docs", "images")
    @classmethod
    def _refuse_empty_paths(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        # An unset shell variable gives an empty path, which would mean the current folder.
        if not all(path.strip() for path in paths):
            raise ValueError("has an empty path")
        return paths

    @field_validator("tools")
    @classmethod
    def _drop_repeated(cls, tools: tuple[ToolName, ...]) -> tuple[ToolName, ...]:
        return tuple(dict.fromkeys(tools))

    @field_validator("name", "model")
    @classmethod
    def _tidy(cls, text: str) -> str:
        return tidy_text(text)


def tidy_text(text: str) -> str:
    plain = " ".join(unicodedata.normalize("NFC", text).split())
    if not plain:
        raise ValueError("is empty")
    if not plain.isprintable():
        raise ValueError("has characters that cannot be displayed")
    return plain


# Not named after their models, which may be replaced by --model or if Ollama is missing.
_DEFAULT_SEATS = (
    SeatChoice(name="Debater 1", model="ollama:qwen3:32b"),
    SeatChoice(name="Debater 2", model="ollama:llama3.3:70b"),
    SeatChoice(name="Debater 3", model="ollama:gemma3:27b"),
)


class ManySeatSettings(DebateSettings):
    seats: tuple[SeatChoice, ...] = Field(
        _DEFAULT_SEATS,
        description=f"The models that debate: {FEWEST_SEATS} to {MOST_SEATS}, each with a name.",
    )
    debate_if: DebateIf = Field(
        "always",
        description="When to debate: always, or only if the initial answers disagree. Answers are "
        "compared by what they state as `Answer: ...`.",
    )
    max_tool_calls: int = Field(
        5, ge=1, le=50, description="Maximum number of tool calls by a seat in one turn."
    )

    @field_validator("seats")
    @classmethod
    def _check_seats(cls, seats: tuple[SeatChoice, ...]) -> tuple[SeatChoice, ...]:
        if not FEWEST_SEATS <= len(seats) <= MOST_SEATS:
            raise ValueError(
                f"this protocol needs {FEWEST_SEATS} to {MOST_SEATS} seats, not {len(seats)}; "
                "add another --seat NAME=MODEL"
            )
        if (name := first_duplicate(seat.name for seat in seats)) is not None:
            raise ValueError(f"two seats are called '{name}'; give each a different name")
        return seats

    @property
    def opening_seats(self) -> tuple[str, ...]:
        return tuple(seat.id for seat in self.debaters())

    def files_of_seats(self) -> dict[str, SeatFiles]:
        files = (SeatFiles(choice.docs, choice.images) for choice in self.seats)
        by_seat = zip(self.opening_seats, files, strict=True)
        return {seat: own for seat, own in by_seat if any(own)}

    def build_seats(self) -> list[Seat]:
        return [*self.debaters(), self._seat("judge")]

    def debaters(self) -> list[Seat]:
        ids = slugs(choice.name for choice in self.seats)
        return [
            Seat(
                id=slug,
                name=choice.name,
                role=DEBATER,
                model=choice.model,
                temperature=choice.temperature,
                system_prompt=choice.system_prompt,
                fallback_models=choice.fallbacks,
                tools=choice.tools,
            )
            for slug, choice in zip(ids, self.seats, strict=True)
        ]

    def has_chosen_model(self, seat: Seat) -> bool:
        if seat.role == DEBATER:
            return "seats" in self.model_fields_set
        return super().has_chosen_model(seat)

    def with_models(self, models: Mapping[str, str]) -> Self:
        return self._with_models_of_choices("seats", models)

    @classmethod
    def settings_for_model(cls, model: str) -> dict[str, Any]:
        seats = [choice.model_dump() | {"model": model} for choice in _DEFAULT_SEATS]
        return {"seats": seats, "judge_model": model}

    def model_option(self, seat: Seat) -> str:
        if seat.role == DEBATER:
            return f"--seat '{seat.name}=PROVIDER:NAME'"
        return super().model_option(seat)


def first_duplicate(texts: Iterable[str]) -> str | None:
    return _first_repeated(list(texts), str.casefold)


def first_duplicate_position(positions: Iterable[str]) -> str | None:
    def plain(text: str) -> str:
        return " ".join(unicodedata.normalize("NFC", text).split()).casefold().rstrip(" .")

    return _first_repeated(list(positions), plain)


def _first_repeated(texts: Sequence[str], key: Callable[[str], str]) -> str | None:
    keys = [key(text) for text in texts]
    return next((text for text in texts if keys.count(key(text)) > 1), None)


def slugs(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    found: list[str] = []
    for name in names:
        plain = re.sub(r"[\W_]+", "-", name.casefold()).strip("-") or "seat"
        used, slug, number = {*_TAKEN_IDS, *taken, *found}, plain, 1
        while slug in used:
            number += 1
            slug = f"{plain}-{number}"
        found.append(slug)
    return found
