import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from contend.evals.items import (
    OWN_SETS,
    Item,
    LoadedItems,
    read_item_file,
    read_lines,
    read_own,
    read_text,
)
from contend.graph.errors import BadInput
from contend.models.replies.short_answer import parse_number

_MARKED_OPTION = re.compile(r"^\s*\(?([A-Z])[).:]\s*(.+?)\s*$", re.MULTILINE)
_INSTRUCTION = re.compile(r"\A.*?Think step by step before answering\.\s*", re.DOTALL)


def read_data(given: str) -> tuple[str, LoadedItems]:
    """Read data given as NAME (built-in set), NAME=PATH (public set) or PATH (our own format)."""
    name, equals, path = given.partition("=")
    if not equals:
        if name in OWN_SETS:
            return name, read_own(name)
        if Path(name).suffix == ".jsonl":
            return Path(name).stem, read_item_file(_existing(name))
        own = ", ".join(OWN_SETS)
        raise BadInput(
            f"There is no data set '{given}'. Ours are {own}; public ones are given as NAME=PATH, "
            f"with NAME one of {', '.join(LOADERS)}; your own as a path ending in .jsonl."
        )
    if name not in LOADERS:
        raise BadInput(f"There is no loader '{name}'. Known: {', '.join(LOADERS)}.")
    return name, LOADERS[name](_existing(path))


def _existing(path: str) -> Path:
    found = Path(path).expanduser()
    if not found.exists():
        raise BadInput(f"File not found: {found}.")
    return found


def _gsm8k(path: Path) -> LoadedItems:
    def item(row: Mapping[str, Any], number: int) -> Item:
        answer = str(row["answer"]).rpartition("####")[2].strip()
        return Item(
            id=f"gsm8k-{number}",
            question=row["question"],
            kind="number",
            answer=answer,
            topic="math",
        )

    return read_lines(path, item)


def _aqua(path: Path) -> LoadedItems:
    def item(row: Mapping[str, Any], number: int) -> Item:
        options = tuple(str(each).partition(")")[2].strip() for each in row["options"])
        return Item(
            id=f"aqua-{number}",
            question=row["question"],
            kind="choice",
            options=options,
            answer=row["correct"],
            topic="math",
        )

    return read_lines(path, item)


def _strategyqa(path: Path) -> LoadedItems:
    def item(row: Mapping[str, Any]) -> Item:
        answer = {True: "yes", False: "no"}[row["answer"]]
        return Item(
            id=f"strategyqa-{row['qid']}",
            question=row["question"],
            kind="yes_no",
            answer=answer,
            topic="facts",
        )

    return _from_rows(read_json_file(path), item, path.name)


def _bbh(path: Path) -> LoadedItems:
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    loaded = LoadedItems()
    for file in files:
        for number, row in enumerate(_rows(read_json_file(file), "examples", file), 1):
            loaded.add(
                f"{file.name} example {number}",
                lambda: _bbh_item(row, f"bbh-{file.stem}-{number}", file.stem),  # noqa: B023
            )
    return loaded


def _bbh_item(row: Mapping[str, Any], item_id: str, task: str) -> Item:
    text, target = str(row["input"]), str(row["target"]).strip()
    question, has_options, listed = text.partition("\nOptions:\n")
    common = {"id": item_id, "topic": task}
    if has_options and (options := _lettered(listed)):
        return Item(
            question=question, kind="choice", options=options, answer=target.strip("()"), **common
        )
    if target.casefold() in ("yes", "no"):
        return Item(question=question, kind="yes_no", answer=target.casefold(), **common)
    if parse_number(target) is not None:
        return Item(question=text, kind="number", answer=target, **common)
    return Item(question=text, kind="text", answer=target, **common)


def _mmlu(path: Path) -> LoadedItems:
    """Read rows whose options are in `options`, in `choices` or in the text of the question."""

    def item(row: Mapping[str, Any], number: int) -> Item:
        text = _INSTRUCTION.sub("", str(row["question"]))
        options = tuple(map(str, row.get("options") or row.get("choices") or ()))
        if not options:
            first = re.search(r"^\s*\(?A[).:]", text, re.MULTILINE)
            options = _lettered(text[first.start() :]) if first else ()
            text = text[: first.start()].strip() if first else text
        answer = row["answer"]
        letter = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[answer] if isinstance(answer, int) else str(answer)
        name = row.get("question_id", number)
        topic = str(row.get("category") or row.get("subject") or "mmlu")
        return Item(
            id=f"mmlu-{name}",
            question=text,
            kind="choice",
            options=options,
            answer=letter.strip("()"),
            topic=topic,
        )

    if path.suffix == ".jsonl":
        return read_lines(path, item)
    numbered = iter(range(1, 10**9))
    return _from_rows(read_json_file(path), lambda row: item(row, next(numbered)), path.name)


def _forecastbench(path: Path) -> LoadedItems:
    loaded = LoadedItems()
    for number, row in enumerate(csv.DictReader(io.StringIO(read_text(path))), 2):
        loaded.add(f"{path.name} line {number}", lambda: _forecast_item(row))  # noqa: B023
    return loaded


def _forecast_item(row: Mapping[str, str]) -> Item:
    background = (row.get("background_1500") or "").strip()
    known = (
        f"\n\nBackground, as of {row['freeze_datetime'][:10]}:\n{background}" if background else ""
    )
    return Item(
        id=f"forecastbench-{row['source']}-{row['id']}-{row['forecast_due_date']}",
        question=f"{row['question']}{known}",
        kind="forecast",
        answer={"0": "no", "1": "yes"}[str(int(float(row["outcome"])))],
        topic=row["source"],
    )


def _lettered(text: str) -> tuple[str, ...]:
    found = _MARKED_OPTION.findall(text)
    letters = "".join(letter for letter, _ in found)
    in_order = letters == "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: len(letters)] and len(letters) > 1
    return tuple(option for _, option in found) if in_order else ()


def _from_rows(rows: Any, make: Callable[[Mapping[str, Any]], Item], name: str) -> LoadedItems:
    if not isinstance(rows, list):
        raise BadInput(f"{name} is not a list of questions.")
    loaded = LoadedItems()
    for number, row in enumerate(rows, 1):
        loaded.add(f"{name} question {number}", lambda: make(row))  # noqa: B023
    return loaded


def _rows(found: Any, key: str, path: Path) -> Sequence[Mapping[str, Any]]:
    if not isinstance(found, dict) or not isinstance(found.get(key), list):
        raise BadInput(f"{path.name} has no list `{key}`.")
    rows: Sequence[Mapping[str, Any]] = found[key]
    return rows


def read_json_file(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise BadInput(f"{path.name} is not JSON.") from error


LOADERS: dict[str, Callable[[Path], LoadedItems]] = {
    "gsm8k": _gsm8k,
    "strategyqa": _strategyqa,
    "bbh": _bbh,
    "aqua": _aqua,
    "mmlu": _mmlu,
    "forecastbench": _forecastbench,
}
