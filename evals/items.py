"""Defines the items of a data set: questions with a known answer, or open questions."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_uppercase
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from contend.graph.errors import BadInput
from contend.models.files import read_regular
from contend.models.replies.short_answer import parse_number

Kind = Literal["choice", "number", "yes_no", "text", "forecast", "open"]
DATASETS = Path(__file__).parent / "datasets"
OWN_SETS = ("questions", "open")
_MOST_BYTES = 200_000_000
Row = TypeVar("Row", bound=BaseModel)


class Item(BaseModel):
    """A question; `answer` is a letter, a number, yes or no, text, or empty for open questions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1, max_length=200)
    question: str = Field(min_length=1)
    kind: Kind
    answer: str = ""
    options: tuple[str, ...] = ()
    also: tuple[str, ...] = Field(default=(), description="Other spellings of a text answer.")
    tolerance: float = Field(0.0, ge=0, lt=1, description="Relative error of a number allowed.")
    tempting: str | None = Field(None, description="The wrong answer that many give.")
    topic: str = "general"
    rubric: tuple[str, ...] = Field(default=(), description="What a good open answer contains.")

    @model_validator(mode="after")
    def _check_answer(self) -> Self:
        problem = _CHECKS[self.kind](self)
        if problem:
            raise ValueError(problem)
        return self

    @property
    def letters(self) -> str:
        return ascii_uppercase[: len(self.options)]

    @property
    def digest(self) -> str:
        # Without defaults, so that a field added by a later release changes no digest.
        written = json.dumps(self.model_dump(mode="json", exclude_defaults=True), sort_keys=True)
        return hashlib.sha256(written.encode()).hexdigest()[:16]


class DataHeader(BaseModel):
    """The first line of a versioned data set."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    version: int = Field(ge=1)


def _check_choice(item: Item) -> str:
    if not 2 <= len(item.options) <= len(ascii_uppercase):
        return "a choice needs 2 to 26 options"
    return "" if item.answer in item.letters and item.answer else "answer must name an option"


def _check_yes_no(item: Item) -> str:
    return "" if item.answer in ("yes", "no") else "answer must be yes or no"


_CHECKS: dict[Kind, Callable[[Item], str]] = {
    "choice": _check_choice,
    "number": lambda item: (
        "" if parse_number(item.answer) is not None else "answer must be a number"
    ),
    "yes_no": _check_yes_no,
    "forecast": _check_yes_no,
    "text": lambda item: "" if item.answer.strip() else "answer is missing",
    "open": lambda item: "" if item.rubric else "an open question needs a rubric",
}


@dataclass
class LoadedItems:
    """The items of a file, its version, and a message about each unreadable row."""

    items: list[Item] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    version: int | None = None

    def add(self, where: str, make: Callable[[], Item]) -> None:
        """Add the item or, if it is invalid, a problem that names the row."""
        item = self._made(where, make)
        if item is None:
            return
        if item.id in self._ids:
            self.problems.append(f"{where}: a second item with the id '{item.id}'")
            return
        self._ids.add(item.id)
        self.items.append(item)

    def set_version(self, where: str, row: dict[str, Any]) -> None:
        header = self._made(where, lambda: DataHeader.model_validate(row))
        self.version = header.version if header else None

    def _made(self, where: str, make: Callable[[], Row]) -> Row | None:
        try:
            return make()
        except ValidationError as error:
            self.problems.append(f"{where}: {'; '.join(_problems(error))}")
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            said = f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)
            self.problems.append(f"{where}: {said}")
        return None

    def __post_init__(self) -> None:
        self._ids = {item.id for item in self.items}


def _problems(error: ValidationError) -> list[str]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    named = ((".".join(map(str, each["loc"])), each["msg"]) for each in found)
    return [
        ": ".join(filter(None, (place, said.removeprefix("Value error, "))))
        for place, said in named
    ]


def read_lines(path: Path, make: Callable[[dict[str, Any], int], Item]) -> LoadedItems:
    loaded = LoadedItems()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            loaded.add(f"{path.name} line {number}", lambda: make(_object(line), number))  # noqa: B023
    return loaded


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ValueError("not JSON") from error
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - it is about a file, not a type
    return found


def read_own(name: str) -> LoadedItems:
    loaded = read_item_file(DATASETS / f"{name}.jsonl")
    if loaded.version is None:
        raise BadInput(f"{name}.jsonl has no version in its first line.")
    return loaded


def read_own_lines(name: str) -> list[str]:
    """Return a built-in data set's lines without the header."""
    header, *lines = read_text(DATASETS / f"{name}.jsonl").split("\n")
    DataHeader.model_validate_json(header)
    return [line for line in lines if line]


def read_item_file(path: Path) -> LoadedItems:
    """Read a file in our own format; the first line may be a header with the version."""
    loaded = LoadedItems()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        where = f"{path.name} line {number}"
        if number == 1 and (row := _header_in(line)) is not None:
            loaded.set_version(where, row)
        elif line.strip():
            loaded.add(where, lambda: Item.model_validate(_object(line)))  # noqa: B023
    return loaded


def _header_in(line: str) -> dict[str, Any] | None:
    try:
        row = _object(line)
    except ValueError:
        return None  # reported as an item
    return row if "version" in row and "id" not in row else None


def read_text(path: Path) -> str:
    try:
        return read_regular(path, _MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text.") from error


def choose_items(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """Choose up to `limit` items by a hash of the seed and each item's id."""

    # Not random.sample: an item added to the set must not change which others are chosen.
    def order(item: Item) -> bytes:
        return hashlib.sha256(f"{seed} {item.id}".encode()).digest()

    chosen = {item.id for item in sorted(items, key=order)[:limit]}
    return [item for item in items if item.id in chosen]
