"""Keeps every paid call and result in the folder of an eval run, so that runs can continue."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel, ValidationError

from contend.evals.chosen_items import NO_ITEMS, ChosenItems, describe_change
from contend.graph.errors import BadInput
from contend.graph.values import NO_USAGE, Usage
from contend.models.files import make_private_folder, read_regular, write_private_file
from contend.models.recording import CallKey, RecordedCall, Recording

_RUN, _ITEMS, _LOCK = "run.json", "items.json", ".lock"
_RESULTS, _CALLS = "results.jsonl", "calls.jsonl"
_MOST_BYTES = 2_000_000_000
Row = TypeVar("Row", bound=BaseModel)
RunStatus = Literal["done", "failed", "not_applicable"]


class ArmDraft(BaseModel):
    seat: str
    answer: str | None
    right: bool | None
    probability: float | None = None


class EvalResult(BaseModel):
    """An arm's result for one item; a failed run has no answer and never counts as wrong."""

    item: str
    data: str
    topic: str
    kind: str
    arm: str
    status: RunStatus
    error: str | None = None
    reply: str = ""
    answer: str | None = None
    right: bool | None = None
    probability: float | None = None
    truth: str = ""
    drafts: list[ArmDraft] = []
    vote: str | None = None
    vote_right: bool | None = None
    rubric: float | None = None
    rubric_agreement: float | None = None
    rubric_error: str | None = None
    debated: bool | None = None
    stop_reason: str | None = None
    calls: int = 0
    failed_calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float = 0.0

    @property
    def tokens(self) -> int | None:
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens

    @property
    def is_unreadable(self) -> bool:
        return self.status == "done" and self.answer is None


class StoredCall(BaseModel):
    item: str
    arm: str
    key: tuple[str, str, int]
    call: RecordedCall


class RunStore:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options: dict[str, Any] = {}
        self.items = NO_ITEMS
        self.results: dict[tuple[str, str], EvalResult] = {}
        self._calls: dict[tuple[str, str], list[StoredCall]] = defaultdict(list)

    @contextmanager
    def locked(self) -> Iterator[None]:
        lock = FileLock(self.folder / _LOCK, blocking=False, fallback_to_soft=False)
        try:
            make_private_folder(self.folder)
            lock.acquire()
        except Timeout as held:
            raise BadInput(f"Another process is using the eval run in {self.folder}.") from held
        except OSError as error:
            raise BadInput(f"Cannot write to {self.folder}: {error.strerror or error}.") from error
        try:
            yield
        finally:
            lock.release()

    def open(self, options: Mapping[str, Any], items: ChosenItems = NO_ITEMS) -> None:
        """Start a run, or continue one with the same options; more items can be added."""
        if (self.folder / _RUN).exists():
            self.read()
            self._refuse_other_options(options)
            self._refuse_changed_items(items)
        else:
            if any(each.name != _LOCK for each in self.folder.iterdir()):
                raise BadInput(
                    f"The folder {self.folder} has other files in it. Choose another one."
                )
            self.options = dict(options)
            text = json.dumps(self.options, ensure_ascii=False, indent=1)
            write_private_file(self.folder / _RUN, text.encode())
        self.items = self.items.with_added(items)
        write_private_file(self.folder / _ITEMS, self.items.model_dump_json(indent=1).encode())

    def _refuse_other_options(self, options: Mapping[str, Any]) -> None:
        # Runs of older releases lack some options; an empty value means the same.
        stored = {name: self.options.get(name) or None for name in options}
        changed = [name for name in options if (options[name] or None) != stored[name]]
        if changed:
            raise BadInput(
                f"The folder {self.folder} has a run with other options: "
                f"{', '.join(changed)}. Choose another folder with --out."
            )

    def _refuse_changed_items(self, items: ChosenItems) -> None:
        if changed := self.items.changed_in(items):
            raise BadInput(
                f"{len(changed)} of the items have changed since the run in {self.folder} was "
                f"started: {describe_change(changed, self.items, items)}. Start a new run in "
                "another folder with --out."
            )

    def read(self) -> None:
        if not (self.folder / _RUN).is_file():
            raise BadInput(f"There is no eval run in {self.folder}.")
        try:
            self.options = json.loads(read_regular(self.folder / _RUN, _MOST_BYTES))
        except ValueError as error:
            raise BadInput(f"{self.folder / _RUN} is damaged.") from error
        self.items = self._read_items()
        for result in _read_rows(self.folder / _RESULTS, EvalResult):
            self.results[result.item, result.arm] = result
        for stored in _read_rows(self.folder / _CALLS, StoredCall):
            self._calls[stored.item, stored.arm].append(stored)

    def _read_items(self) -> ChosenItems:
        file = self.folder / _ITEMS
        if not file.exists():  # a run of an older release
            return NO_ITEMS
        try:
            return ChosenItems.model_validate_json(read_regular(file, _MOST_BYTES))
        except ValidationError as error:
            raise BadInput(f"{file} is damaged.") from error

    def recording(self, item: str, arm: str) -> Recording:
        """Return a recording that replays finished calls and stores new calls."""
        known = {
            CallKey(*each.key): each.call for each in self._calls[item, arm] if each.call.answer
        }

        async def keep(key: CallKey, call: RecordedCall) -> None:
            if key in known:
                return
            # Keep only failed attempts: the answer contains the streamed text.
            slim = call.model_copy(
                update={"received": [each for each in call.received if each.trouble]}
            )
            stored = StoredCall(item=item, arm=arm, key=tuple(key), call=slim)
            self._append(_CALLS, stored.model_dump_json(exclude_defaults=True))
            self._calls[item, arm].append(stored)

        return Recording(known=known, keep=keep)

    def spent(self, item: str, arm: str, so_far: Recording | None = None) -> dict[str, Any]:
        """Return the usage and cost of an arm's calls for an item, or only of those in `so_far`."""
        stored = self._calls[item, arm]
        calls = [
            each.call for each in stored if so_far is None or so_far.has_made(CallKey(*each.key))
        ]
        usage = sum((_usage_of(call) for call in calls), NO_USAGE)
        return {
            "calls": len(calls),
            "failed_calls": sum(call.answer is None for call in calls),
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cost_usd": usage.cost_usd,
            "seconds": round(sum(call.seconds for call in calls), 3),
        }

    def add(self, result: EvalResult) -> None:
        self._append(_RESULTS, result.model_dump_json(exclude_defaults=True))
        self.results[result.item, result.arm] = result

    def is_finished(self, item: str, arm: str) -> bool:
        found = self.results.get((item, arm))
        return found is not None and found.status != "failed"

    def _append(self, name: str, line: str) -> None:
        try:
            with (self.folder / name).open("a+b") as file:
                # If a process was killed while writing, end its partial line first.
                if file.tell() and _last_byte(file) != b"\n":
                    file.write(b"\n")
                file.write(f"{line}\n".encode())
        except OSError as error:
            why = error.strerror or error
            raise BadInput(f"Cannot write to {self.folder}: {why}.") from error


def _last_byte(file: Any) -> bytes:
    file.seek(-1, 2)
    byte: bytes = file.read(1)
    return byte


def _read_rows(path: Path, form: type[Row]) -> Iterator[Row]:
    if not path.exists():
        return
    for number, line in enumerate(read_regular(path, _MOST_BYTES).decode().split("\n"), 1):
        try:
            if line.strip():
                yield form.model_validate_json(line)
        except ValidationError as error:
            if any(each["type"] == "json_invalid" for each in error.errors()):
                continue
            raise BadInput(f"{path} line {number} is from another release.") from error


def _usage_of(call: RecordedCall) -> Usage:
    usage = NO_USAGE
    if call.answer is not None:
        usage = Usage.model_validate(call.answer["result"]["usage"])
    for each in call.received:
        if each.trouble:
            usage += each.trouble.usage
    return usage
