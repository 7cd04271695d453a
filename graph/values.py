"""Defines value objects for debates: seats, attachments, usage, and the parts of turns."""

from datetime import datetime
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Number = TypeVar("Number", int, float)
ToolName = Literal["calculate", "search_documents"]
HUMAN = "human"  # instead of a model's name


class Value(BaseModel):
    """A frozen value object that tolerates unknown fields from a later release."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Usage(Value):
    """The tokens and cost of one or more model calls; None stands for unknown, never for zero."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None  # the part of the input that the provider had cached
    cost_usd: float | None = None

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=_known_sum(self.input_tokens, other.input_tokens),
            output_tokens=_known_sum(self.output_tokens, other.output_tokens),
            cached_tokens=_known_sum(self.cached_tokens, other.cached_tokens),
            cost_usd=_known_sum(self.cost_usd, other.cost_usd),
        )


NO_USAGE = Usage(input_tokens=0, output_tokens=0, cached_tokens=0, cost_usd=0.0)


def _known_sum(left: Number | None, right: Number | None) -> Number | None:
    return None if left is None or right is None else left + right


# Roles that write, score or moderate, but do not argue for a position.
NOT_DEBATING = frozenset({"judge", "synthesizer", "moderator", "fact_checker"})


def storable_types() -> list[tuple[str, str]]:
    """Return the modules and names of the objects that a saver may load."""
    return [(value.__module__, value.__name__) for value in Value.__subclasses__()]


class Seat(Value):
    """A participant in a debate; two seats may share a model, so ids are not model names."""

    id: str
    name: str
    role: str
    model: str
    temperature: float | None = None
    system_prompt: str = ""  # the user's own instructions for this seat
    position: str = ""  # what the seat argues for, if positions are assigned
    fallback_models: tuple[str, ...] = ()
    tools: tuple[ToolName, ...] = ()  # tools the seat's model may use during a turn

    @property
    def is_human(self) -> bool:
        return self.model == HUMAN


class QuoteCheck(Value):
    """A quoted span in a turn, checked against the user's documents."""

    text: str
    status: Literal["found", "altered", "not_found", "from_debate"]
    # `altered`: with words left out or added; `from_debate`: from the question or a turn.
    cited: str | None = None  # the source that the speaker named, as `doc:page`
    written: str | None = None  # that source as the speaker wrote it
    where: str | None = None  # where the quote is, as `doc:page`
    reads: str | None = None  # the source's full text, if the quote is altered


class ToolUse(Value):
    """A tool call during a turn: the model's request and the result."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    result: str
    failed: bool = False  # `result` says why


class TurnLength(Value):
    """The length of a turn and the limit, in tokens."""

    tokens: int
    limit: int
    cut_after: float | None = None  # seconds after which the turn was cut off


class Degradation(Value):
    """A problem during the debate, reported to readers."""

    seat: str | None = None
    round: int | None = None
    what: str
    why: str


class Document(Value):
    """A file from the user; the text is stored under its hash in the data folder."""

    id: str  # the short name that speakers cite, unique in the debate
    name: str
    sha256: str
    pages: int
    passages: int
    seats: tuple[str, ...] = ()  # the ids of the seats that see the document; empty for all seats


class Image(Value):
    """An image from the user; the bytes are stored under their hash in the data folder."""

    name: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: str
    seats: tuple[str, ...] = ()  # the ids of the seats that see the image; empty for all seats


class TemplateUse(Value):
    """A reasoning template for the first speakers, with its similarity to the question."""

    id: str
    title: str
    text: str
    score: float


class WorkSpan(Value):
    """A period of work, with or without a result."""

    started_at: datetime
    ended_at: datetime
    calls: int = 0  # calls that gave no turn
    usage: Usage = NO_USAGE  # of these calls


class Retrieval(Value):
    """The templates found in phase 0, and the time spent."""

    templates: tuple[TemplateUse, ...] = ()
    embedding_model: str
    started_at: datetime
    ended_at: datetime
