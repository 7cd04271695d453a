import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from contend.graph.errors import BadInput
from contend.graph.settings import snake_case
from contend.models.files import read_regular
from contend.models.text import clean, shorten

_MOST_BYTES = 50_000_000
_QUESTION, _OUTCOMES, _DUE = "question", "outcomes", "due"


@dataclass(frozen=True)
class BatchQuestion:
    """A question from the file; `settings` holds the columns that have no field of their own."""

    where: str
    question: str
    settings: Mapping[str, str] = field(default_factory=dict)
    outcomes: tuple[str, ...] = ()
    due: str = ""

    def key(self) -> dict[str, Any]:
        """Return the values that identify the question, regardless of its row."""
        values = {**asdict(self), "outcomes": list(self.outcomes)}
        return {name: value for name, value in values.items() if value and name != "where"}


def read_questions(path: Path) -> list[BatchQuestion]:
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise BadInput(
            f"{path.name}: questions are read from .csv, .jsonl and .txt files. "
            "Save them in one of these formats."
        )
    try:
        text = read_regular(path.expanduser(), _MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text. Save it with this encoding.") from error
    questions = list(read(clean(text)))
    if not questions:
        raise BadInput(f"{path} has no questions.")
    _refuse_repeated(questions)
    return questions


def _refuse_repeated(questions: Iterable[BatchQuestion]) -> None:
    seen: dict[str, str] = {}
    for each in questions:
        key = json.dumps(each.key(), sort_keys=True)
        if key in seen:
            said = shorten(each.question, 60)
            raise BadInput(f"{each.where} repeats {seen[key].lower()}: {said}. Remove one of them.")
        seen[key] = each.where


def _read_text(text: str) -> Iterator[BatchQuestion]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield BatchQuestion(f"Line {number}", line.strip())


def _read_csv(text: str) -> Iterator[BatchQuestion]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise BadInput(f"The CSV file cannot be read: {error}. Check its quotes.") from error
    header = [name.strip() for name in rows[0]] if rows else []
    if header and _QUESTION not in map(str.lower, header):
        found = shorten(", ".join(filter(None, header)), 80)
        raise BadInput(f"The first row must name a column `question`; it has: {found}.")
    _refuse_repeated_names("Row 1", map(snake_case, header))
    for number, cells in enumerate(rows[1:], 2):
        where = f"Row {number}"
        if len(cells) > len(header):
            raise BadInput(
                f"{where} has {len(cells)} cells, but there are {len(header)} columns. Put text "
                "that contains commas in double quotes."
            )
        for column, (name, cell) in enumerate(zip(header, cells, strict=False), 1):
            if cell.strip() and not name:
                said = shorten(cell.strip(), 60)
                raise BadInput(
                    f"{where} has '{said}' in column {column}, which has no name. Name the column "
                    "in the first row, or empty the cell."
                )
        if any(cell.strip() for cell in cells):
            yield _question(where, dict(zip(header, cells, strict=False)))


def _read_jsonl(text: str) -> Iterator[BatchQuestion]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"Line {number}"
        try:
            values = json.loads(line, object_pairs_hook=partial(_as_object, where))
        except BadInput:  # keep our own message: BadInput is also a ValueError
            raise
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{where} is not valid JSON. Each line is one object.") from error
        if not isinstance(values, dict):
            raise BadInput(f'{where} must be an object, such as {{"question": "..."}}.')
        _refuse_repeated_names(where, map(snake_case, values))
        yield _question(where, {name: _as_cell(name, value) for name, value in values.items()})


def _as_object(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _refuse_repeated_names(where, (name for name, _ in pairs))
    return dict(pairs)


def _refuse_repeated_names(where: str, names: Iterable[str]) -> None:
    for name, count in Counter(filter(None, names)).items():
        if count > 1:
            raise BadInput(f"{where} has the name `{shorten(name, 60)}` twice. Remove one of them.")


def _as_cell(name: str, value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if name.lower() == _OUTCOMES and isinstance(value, list):
        return ";".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


def _question(where: str, cells: Mapping[str, str]) -> BatchQuestion:
    named = {name.lower(): cell.strip() for name, cell in cells.items()}
    if not named.get(_QUESTION):
        raise BadInput(f"{where} has no question.")
    columns = (_QUESTION, _OUTCOMES, _DUE)
    settings = {
        name: cell.strip()
        for name, cell in cells.items()
        if name and cell.strip() and name.lower() not in columns
    }
    outcomes = named.get(_OUTCOMES, "").split(";")
    given = tuple(each.strip() for each in outcomes if each.strip())
    return BatchQuestion(where, named[_QUESTION], settings, given, named.get(_DUE, ""))


_READERS: dict[str, Callable[[str], Iterator[BatchQuestion]]] = {
    ".csv": _read_csv,
    ".jsonl": _read_jsonl,
    ".ndjson": _read_jsonl,
    ".txt": _read_text,
}
