"""Manages LangSmith data sets and experiments; imported only by commands that use LangSmith."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from langsmith import Client
from langsmith.utils import LangSmithError, get_api_url

from contend.evals.grading import question_text
from contend.evals.run import DataItem
from contend.evals.run_store import EvalResult
from contend.graph.errors import BadInput
from contend.models.failures import first_line, scrub
from contend.models.tracing import scrub_data

# Example ids are derived from this value: changing it would push every item again.
_NAMESPACE = UUID("6f2f1a3e-6c1d-4c7e-9a53-0c8f0f5d2b61")
_KEYS = ("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY")


@dataclass(frozen=True)
class Pushed:
    data: str
    created: int
    updated: int
    unchanged: int


def open_client() -> Client:
    if not any(os.environ.get(name) for name in _KEYS):
        raise BadInput(
            "LANGSMITH_API_KEY is not set. Without a key everything stays on this machine: leave "
            "out --langsmith, and use `contend eval run` and `contend eval report`."
        )
    # Send each run immediately, so that none is lost when the command ends.
    return Client(anonymizer=scrub_data, auto_batch_tracing=False)


def address() -> str:
    return get_api_url(None)


def dataset_name(data: str) -> str:
    return f"contend-{data}"


def example_id(each: DataItem) -> UUID:
    return uuid5(_NAMESPACE, each.key)


def push_items(client: Client, items: Sequence[DataItem]) -> list[Pushed]:
    by_data: dict[str, list[DataItem]] = {}
    for each in items:
        by_data.setdefault(each.data, []).append(each)
    with _failures_in_words():
        return [_push(client, data, found) for data, found in by_data.items()]


def _push(client: Client, data: str, items: Sequence[DataItem]) -> Pushed:
    name = dataset_name(data)
    if client.has_dataset(dataset_name=name):
        dataset = client.read_dataset(dataset_name=name)
    else:
        dataset = client.create_dataset(name, description=f"Items of Contend's evals: {data}")
    stored = {each.id: each for each in client.list_examples(dataset_id=dataset.id)}
    rows = {example_id(each): _example(each) for each in items}
    new = [_as_new(key, row) for key, row in rows.items() if key not in stored]
    changed = [
        {"id": key, **row}
        for key, row in rows.items()
        if key in stored
        and (stored[key].inputs, stored[key].outputs) != (row["inputs"], row["outputs"])
    ]
    if new:
        client.create_examples(dataset_id=dataset.id, examples=new)
    if changed:
        client.update_examples(dataset_id=dataset.id, updates=changed)
    return Pushed(data, len(new), len(changed), len(rows) - len(new) - len(changed))


def _as_new(key: UUID, row: Mapping[str, Any]) -> dict[str, Any]:
    named = {"reference_outputs" if name == "outputs" else name: row[name] for name in row}
    return {"id": key, **named}


def _example(each: DataItem) -> dict[str, Any]:
    item = each.item
    return {
        "inputs": {"question": question_text(item), "item": each.key},
        "outputs": {"answer": item.answer, "rubric": list(item.rubric)},
        "metadata": {"topic": item.topic, "kind": item.kind},
    }


def upload_results(
    client: Client,
    items: Sequence[DataItem],
    results: Mapping[tuple[str, str], EvalResult],
    arms: Sequence[str],
    about: Mapping[str, Any],
) -> list[str]:
    names = []
    with _failures_in_words():
        for data in dict.fromkeys(each.data for each in items):
            for arm in arms:
                wanted = [e for e in items if e.data == data and (e.key, arm) in results]
                if wanted:
                    names.append(_upload(client, wanted, results, arm, about))
    return names


def _upload(
    client: Client,
    items: Sequence[DataItem],
    results: Mapping[tuple[str, str], EvalResult],
    arm: str,
    about: Mapping[str, Any],
) -> str:
    data = items[0].data

    def look_up(inputs: dict[str, Any]) -> dict[str, Any]:
        found = results[inputs["item"], arm]
        kept = {"status", "error", "reply", "answer", "right", "probability", "vote", "stop_reason"}
        costs = {"calls", "input_tokens", "output_tokens", "cost_usd", "seconds"}
        return found.model_dump(mode="json", include=kept | costs)

    examples = client.list_examples(
        dataset_name=dataset_name(data), example_ids=[example_id(each) for each in items]
    )
    # Not `aevaluate`, which traces even if tracing is off. No model is called here. Its output goes
    # to stderr, because stdout is for the report.
    with redirect_stdout(sys.stderr):
        found = client.evaluate(
            look_up,
            data=examples,
            evaluators=[_is_right, _is_readable, _has_run],
            experiment_prefix=f"contend-{arm}",
            metadata={"arm": arm, **{name: str(value) for name, value in about.items()}},
            disable_evaluator_tracing=True,
        )
    return str(found.experiment_name)


def _is_right(outputs: dict[str, Any]) -> dict[str, Any]:
    right = outputs.get("right")
    return {"key": "right", "score": None if right is None else int(right)}


def _is_readable(outputs: dict[str, Any]) -> dict[str, Any]:
    done = outputs.get("status") == "done"
    return {"key": "readable", "score": int(outputs.get("answer") is not None) if done else None}


def _has_run(outputs: dict[str, Any]) -> dict[str, Any]:
    return {"key": "completed", "score": int(outputs.get("status") == "done")}


@contextmanager
def _failures_in_words() -> Iterator[None]:
    try:
        yield
    except LangSmithError as error:
        said = scrub(first_line(error))
        raise BadInput(f"LangSmith ({address()}) did not take it: {said}") from error
