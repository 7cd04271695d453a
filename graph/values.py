from datetime import datetime
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Number = TypeVar("Number", int, float)
ToolName = Literal["calculate", "search_documents"]
HUMAN = "human"  # instead of a model's name


class Value(BaseModel):
    """A frozen value. Ignores unknown fields, because a later release may have stored them."""

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
    """Return the module and name of each type that a saver may load."""
    return [(value.__module__, value.__name__) for value in Value.__subclasses__()]


class Seat(Value):
    id: str  # not the model's name, because seats may share a model
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
    text: str
    status: Literal["found", "altered", "not_found", "from_debate"]
    # `altered`: with words left out or added; `from_debate`: from the question or a turn.
    cited: str | None = None  # the source that the speaker named, as `doc:page`
    written: str | None = None  # that source as the speaker wrote it
    where: str | None = None  # where the quote is, as `doc:page`
    reads: str | None = None  # the source's full text, if the quote is altered


class ToolUse(Value):
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    result: str
    failed: bool = False  # `result` says why


class TurnLength(Value):
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
    id: str  # the short name that speakers cite, unique in the debate
    name: str
    sha256: str  # the text is in the data folder under this hash
    pages: int
    passages: int
    seats: tuple[str, ...] = ()  # the ids of the seats that see the document; empty for all seats


class Image(Value):
    name: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    media_type: str
    seats: tuple[str, ...] = ()  # the ids of the seats that see the image; empty for all seats


class TemplateUse(Value):
    id: str
    title: str
    text: str
    score: float  # similarity to the question


class WorkSpan(Value):
    """Time spent on work that no turn records, such as failed calls."""

    started_at: datetime
    ended_at: datetime
    calls: int = 0  # calls that gave no turn
    usage: Usage = NO_USAGE  # of these calls


class Retrieval(Value):
    templates: tuple[TemplateUse, ...] = ()
    embedding_model: str
    started_at: datetime
    ended_at: datetime
