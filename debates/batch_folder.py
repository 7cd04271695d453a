import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from contend.debates.batch_questions import BatchQuestion
from contend.debates.exports.markdown import to_markdown
from contend.debates.record import StoredDebate
from contend.graph.errors import BadInput
from contend.models.files import make_private_folder, read_regular, replace_file
from contend.models.text import shorten

_PLAN, _CSV, _JSONL, _LOCK = "batch.json", "results.csv", "results.jsonl", ".lock"
_MOST_BYTES = 500_000_000
NOT_STARTED = "not started"


@dataclass(frozen=True)
class BatchResult:
    question: str
    debate_id: str
    status: str = NOT_STARTED
    answer: str | None = None
    score: float | None = None
    stop_reason: str | None = None
    rounds: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None
    error: str | None = None
    file: str | None = None

    @property
    def is_done(self) -> bool:
        return self.status == "done"


class BatchFolder:
    """The folder of one batch; a run with the same questions and options continues the batch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.results: dict[str, BatchResult] = {}
        """The results by debate id, in the order in which the questions were added."""
        self._plan: dict[str, Any] = {}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder; on exit, remove the folder if no plan was written."""
        # The operating system releases this lock even if the process is killed.
        lock = FileLock(self.path / _LOCK, blocking=False, fallback_to_soft=False)
        try:
            missing = [each for each in (self.path, *self.path.parents) if not each.exists()]
            make_private_folder(self.path)
            lock.acquire()
        except Timeout as held:
            raise BadInput("Another process is running this batch.") from held
        except OSError as error:
            raise _unusable(self.path, error) from error
        try:
            yield
        finally:
            is_unused = not (self.path / _PLAN).exists()
            with suppress(OSError):  # Windows removes the file when the lock is released
                if is_unused:
                    (self.path / _LOCK).unlink()
            lock.release()
            with suppress(OSError):  # another process has started in the meantime
                for each in missing if is_unused else []:
                    each.rmdir()

    def open(self, questions: Sequence[BatchQuestion], options: Mapping[str, Any]) -> list[str]:
        known = self._read_plan(questions, options)
        ids = known | {_key(q): str(uuid4()) for q in questions if _key(q) not in known}
        rows = [{"id": ids[key], **json.loads(key)} for key in ids]
        self._plan = {"options": dict(options), "debates": rows}
        earlier = self._read_results()
        for row in rows:
            unknown = BatchResult(row["question"], row["id"])
            self.results[row["id"]] = earlier.get(row["id"], unknown)
        return [ids[_key(each)] for each in questions]

    def write_plan(self) -> None:
        self._write(_PLAN, json.dumps(self._plan, ensure_ascii=False, indent=1))
        self._write_results()

    def record(self, debate: StoredDebate, error: str | None = None) -> BatchResult:
        number = list(self.results).index(debate.id) + 1
        name = f"{number:04}-{_slug(debate.question)}.md"
        self._write(name, to_markdown(debate))
        result = self.results[debate.id] = _result(debate, name, error)
        self._write_results()
        return result

    def _read_plan(
        self, questions: Sequence[BatchQuestion], options: Mapping[str, Any]
    ) -> dict[str, str]:
        try:
            has_files = any(each.name != _LOCK for each in self.path.iterdir())
        except OSError as error:
            raise _unusable(self.path, error) from error
        if not (self.path / _PLAN).exists():
            if has_files:
                raise BadInput(f"The folder {self.path} has other files in it. {_OTHER}")
            return {}
        try:
            plan = json.loads(read_regular(self.path / _PLAN, _MOST_BYTES))
            found = [row for row in plan["debates"] if row["question"]]
            rows = {_dumped(_without_id(row)): row["id"] for row in found}
            before = {name: plan["options"][name] for name in options}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{self.path / _PLAN} is damaged. {_OTHER}") from error
        changed = [name for name in options if options[name] != before[name]]
        if changed:
            raise BadInput(
                f"The folder {self.path} belongs to a batch with other options: "
                f"{', '.join(changed)}. Use the same options, or choose another folder with --out."
            )
        if lost := rows.keys() - set(map(_key, questions)):
            said = shorten(json.loads(min(lost))["question"], 60)
            raise BadInput(
                f"The folder {self.path} belongs to another batch: it has the question '{said}', "
                f"which is not in this file. {_OTHER}"
            )
        return rows

    def _read_results(self) -> dict[str, BatchResult]:
        path, names = self.path / _JSONL, {each.name for each in fields(BatchResult)}
        if not path.exists():
            return {}
        try:
            rows = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
            found = [BatchResult(**{n: row[n] for n in names if n in row}) for row in rows]
        except (OSError, ValueError, TypeError) as error:
            raise BadInput(
                f"{path} cannot be read. Delete it to write it again, or choose another folder."
            ) from error
        return {each.debate_id: each for each in found}

    def _write_results(self) -> None:
        rows = [asdict(each) for each in self.results.values()]
        self._write(_JSONL, "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in rows))
        table = io.StringIO(newline="")
        writer = csv.DictWriter(table, [each.name for each in fields(BatchResult)])
        writer.writeheader()
        writer.writerows({name: _as_cell(value) for name, value in row.items()} for row in rows)
        self._write(_CSV, table.getvalue())

    def _write(self, name: str, text: str) -> None:
        try:
            with replace_file(self.path / name) as sink:
                sink.write(text.encode("utf-8"))
        except OSError as error:
            raise _unusable(self.path, error) from error


_OTHER = "Choose another folder with --out."


def _result(debate: StoredDebate, file: str, error: str | None) -> BatchResult:
    record = debate.as_record()
    return BatchResult(
        question=debate.question,
        debate_id=debate.id,
        status=debate.status,
        answer=record.final_answer,
        score=record.quality_score,
        stop_reason=record.stop_reason,
        rounds=record.total_rounds,
        input_tokens=record.usage.input_tokens,
        output_tokens=record.usage.output_tokens,
        cost_usd=record.usage.cost_usd,
        seconds=record.timing.total_ms / 1000,
        error=error or debate.error,
        file=file,
    )


def _as_cell(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value


def _unusable(path: Path, error: OSError) -> BadInput:
    why = error.strerror or type(error).__name__
    return BadInput(f"Cannot write to the folder {path}: {why}. {_OTHER}")


def _key(question: BatchQuestion) -> str:
    return _dumped(question.key())


def _dumped(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def _without_id(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "id"}


def _slug(question: str) -> str:
    words = re.findall(r"[a-z0-9]+", question.lower())
    return "-".join(words)[:60].rstrip("-") or "debate"
