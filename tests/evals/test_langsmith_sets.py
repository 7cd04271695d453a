"""Pushing items and uploading results to LangSmith."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
from langsmith import tracing_context, utils

from contend.evals.items import Item
from contend.evals.langsmith_sets import open_client, push_items, upload_results
from contend.evals.run import DataItem, EvalOptions, EvalRun
from contend.evals.run_store import EvalResult, RunStore
from contend.graph.errors import BadInput
from tests.evals.test_run import CHOICE, OTHER, _plans, _says
from tests.support.scripted import refining_cast

NOW = "2026-01-01T00:00:00+00:00"
KEY = "canary-langsmith-0123456789"


class Stub(ThreadingHTTPServer):
    """Simulate LangSmith's data sets and examples, and record every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.bodies: list[str] = []
        self.datasets: dict[str, dict[str, Any]] = {}
        self.examples: dict[str, dict[str, Any]] = {}
        self.refuses = False
        super().__init__(("127.0.0.1", 0), _Handler)

    def written(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] != "GET"]


class _Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_GET(self) -> None:
        self._note("")
        path, query = self._address()
        if path == "/info":
            self._answer({"version": "0.1"})
        elif path == "/datasets":
            wanted = query["name"][0]
            self._answer([each for each in self.server.datasets.values() if each["name"] == wanted])
        elif path.startswith("/datasets/"):
            self._answer(self.server.datasets[path.split("/")[2]])
        elif path == "/examples":
            ids = query.get("id", self.server.examples)
            first = int(query.get("offset", ["0"])[0]) == 0
            self._answer([self.server.examples[each] for each in ids] if first else [])
        else:
            self._answer([])

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode("utf-8", "replace")
        self._note(text)
        if self.server.refuses:
            self._answer({"detail": "no such key"}, 401)
            return
        path, _ = self._address()
        given = json.loads(text) if text.startswith(("{", "[")) else {}
        if path == "/datasets":
            made = {"id": str(uuid4()), "created_at": NOW, "data_type": "kv", **given}
            self._answer(self.server.datasets.setdefault(made["id"], made))
        elif path == "/examples/bulk":
            for each in given:
                dataset = next(iter(self.server.datasets))
                whole = {"dataset_id": dataset, "created_at": NOW, **each}
                self.server.examples[each["id"]] = self.server.examples.get(each["id"], {}) | whole
            self._answer([self.server.examples[each["id"]] for each in given])
        elif path == "/sessions":
            dataset = next(iter(self.server.datasets))
            more = {"tenant_id": str(uuid4()), "reference_dataset_id": dataset, "start_time": NOW}
            self._answer({"id": str(uuid4()), **more, **given})
        else:
            self._answer({})

    do_PATCH = do_POST  # noqa: N815 - the name is http.server's

    def _address(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        return parts.path, parse_qs(parts.query)

    def _note(self, body: str) -> None:
        self.server.calls.append((self.command, self._address()[0]))
        self.server.bodies.append(body)

    def _answer(self, data: object, status: int = 200) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    forget = cast("Any", utils.get_env_var).cache_clear  # it keeps what it has read

    with Stub() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("LANGSMITH_ENDPOINT", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("LANGSMITH_API_KEY", KEY)
        forget()
        yield server
        server.shutdown()
    forget()


def _items(*items: Item) -> list[DataItem]:
    return [DataItem("test", item) for item in items]


def _result(item: Item, **more: Any) -> EvalResult:
    about: dict[str, Any] = {
        "item": f"test/{item.id}",
        "data": "test",
        "topic": "t",
        "kind": "choice",
    }
    return EvalResult(
        **about, arm="single", **{"status": "done", "answer": "B", "right": True} | more
    )


def test_a_second_push_changes_nothing(stub: Stub) -> None:
    client = open_client()
    (first,) = push_items(client, _items(CHOICE, OTHER))
    assert (first.created, first.updated, first.unchanged) == (2, 0, 0)
    assert stub.written() == [("POST", "/datasets"), ("POST", "/examples/bulk")]
    stub.calls.clear()
    (second,) = push_items(client, _items(CHOICE, OTHER))
    assert (second.created, second.updated, second.unchanged) == (0, 0, 2)
    assert stub.written() == []
    assert len(stub.datasets) == 1
    assert len(stub.examples) == 2


def test_a_changed_item_is_updated(stub: Stub) -> None:
    client = open_client()
    push_items(client, _items(CHOICE))
    stub.calls.clear()
    (again,) = push_items(client, _items(CHOICE.model_copy(update={"answer": "A"}), OTHER))
    assert (again.created, again.updated, again.unchanged) == (1, 1, 0)
    assert sorted(stub.written()) == [("PATCH", "/examples/bulk"), ("POST", "/examples/bulk")]
    assert len(stub.examples) == 2
    assert {each["outputs"]["answer"] for each in stub.examples.values()} == {"A"}


def test_an_uploaded_experiment_includes_the_grades(stub: Stub) -> None:
    client, items = open_client(), _items(CHOICE, OTHER)
    push_items(client, items)
    stub.calls.clear()
    results = {
        ("test/c1", "single"): _result(CHOICE),
        ("test/c2", "single"): _result(OTHER, status="failed", right=None, answer=None),
    }
    (name,) = upload_results(client, items, results, ("single", "refine"), {"model": "m"})
    assert name.startswith("contend-single-")
    paths = [path for method, path in stub.written() if method == "POST"]
    assert paths.count("/sessions") == 1
    assert paths.count("/runs") == 2
    feedback = [
        json.loads(body)
        for (_, path), body in zip(stub.calls, stub.bodies[-len(stub.calls) :], strict=True)
        if path == "/feedback"
    ]
    scores = [(each["key"], each.get("score")) for each in feedback]
    assert sorted(score for score in scores if score[0] == "completed") == [
        ("completed", 0),
        ("completed", 1),
    ]
    assert ("right", 1) in scores
    assert ("right", 0) not in scores  # the failed run is not a wrong answer
    assert KEY not in "".join(stub.bodies)


def test_without_a_key_no_call_is_made(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LANGSMITH_API_KEY")
    with pytest.raises(BadInput, match="LANGSMITH_API_KEY is not set"):
        open_client()
    assert stub.calls == []


def test_a_langsmith_error_is_reported(stub: Stub) -> None:
    stub.refuses = True
    with pytest.raises(BadInput, match="did not take it"):
        push_items(open_client(), _items(CHOICE))


async def test_a_run_without_tracing_sends_nothing(stub: Stub, tmp_path: Path) -> None:
    cast, store = refining_cast(ann=_says("B")), RunStore(tmp_path)
    options = EvalOptions(arms=("single", "refine"), data=("test",))
    with store.locked(), cast.on_stage():
        store.open(options.identity())
        await EvalRun(store, options, _plans()).run(_items(CHOICE), 1)
    assert store.results["test/c1", "single"].right
    assert stub.calls == []


async def test_traces_name_the_debate_protocol_round_and_seat(stub: Stub, tmp_path: Path) -> None:
    cast, store = refining_cast(ann=_says("B")), RunStore(tmp_path)
    options = EvalOptions(arms=("refine",), data=("test",))
    with store.locked(), cast.on_stage(), tracing_context(enabled=True, client=open_client()):
        store.open(options.identity())
        await EvalRun(store, options, _plans()).run(_items(CHOICE), 1)
    sent = zip(stub.calls, stub.bodies, strict=True)
    runs = [json.loads(body) for call, body in sent if call == ("POST", "/runs")]
    about = [run["extra"]["metadata"] for run in runs if run["run_type"] == "llm"]
    named = {(each["protocol"], each["round"], each["seat"]) for each in about if "seat" in each}
    assert {("refine", 0, "ann"), ("refine", 1, "judge"), ("refine", 2, "cyd")} <= named
    assert len({each["debate_id"] for each in about}) == 1
