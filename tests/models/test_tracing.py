"""LangSmith traces, if enabled, contain no keys."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from langsmith import Client, run_trees

from contend.models.trace_client import OF_DEBATE
from contend.models.tracing import (
    call_metadata,
    call_title,
    scrub_data,
    scrub_traces,
    shorten_and_scrub,
)
from tests.support.forecasting import QUESTION, forecasters, request
from tests.support.model_server import ModelServer

KEY = "canary-key-0123456789"
PROGRAM = """
import os
from langchain_core.runnables import RunnableLambda
from contend.models import calls
from langsmith.run_trees import get_cached_client

def fail(given):
    raise ValueError("401: wrong key " + given["key"])

try:
    RunnableLambda(fail).invoke({"key": os.environ["OPENAI_API_KEY"], "question": "Why?"})
except ValueError:
    get_cached_client().flush()
"""

FORECAST = """
import asyncio, json, sys
from contend.graph.forecast import graph
from contend.graph.forecast_contract.terms import ROLES
from contend.graph.settings import ForecastSettings
from langsmith.run_trees import get_cached_client

settings = ForecastSettings(templates=False, **{f"{role}_model": "openai:m" for role in ROLES})
config = {"recursion_limit": 200, "configurable": {"thread_id": sys.argv[2]}}
asyncio.run(graph.ainvoke(json.loads(sys.argv[1]), config, context=settings))
get_cached_client().flush()
"""

PLAIN_BATCHES = {
    "use_multipart_endpoint": False,
    "scale_up_qsize_trigger": 1000,
    "scale_up_nthreads_limit": 1,
    "scale_down_nempty_trigger": 4,
    "size_limit": 100,
    "size_limit_bytes": 2**20,
}


DEBATE = "0b7a1f0e-0000-4000-8000-000000000001"
PROJECT = "0b7a1f0e-0000-4000-8000-000000000009"


class LangSmith(ThreadingHTTPServer):
    """Accepts every request and stores its body."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        project = {"id": PROJECT, "tenant_id": PROJECT, "reference_dataset_id": None}
        projects = [project] if self.path.startswith("/sessions") else None
        info = {"version": "0.1", "batch_ingest_config": PLAIN_BATCHES}
        self._answer(
            [{"id": PROJECT, "tenant_id": PROJECT, "reference_dataset_id": None}]
            if projects
            else info
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, LangSmith)
        self.server.bodies.append(body)
        self._answer({})

    do_PATCH = do_POST  # noqa: N815 - the name is http.server's

    def _answer(self, data: object) -> None:
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def langsmith() -> Iterator[LangSmith]:
    with LangSmith() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_no_key_reaches_langsmith(langsmith: LangSmith) -> None:
    address = f"http://127.0.0.1:{langsmith.server_address[1]}"
    traced = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": address}
    traced |= {"LANGSMITH_API_KEY": "another-secret-key", "OPENAI_API_KEY": KEY}
    subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | traced, check=True, timeout=120
    )
    sent = b"".join(langsmith.bodies)
    assert b"Why?" in sent
    assert b"wrong key ***" in sent
    assert KEY.encode() not in sent


def test_nothing_is_sent_without_tracing(langsmith: LangSmith) -> None:
    address = f"http://127.0.0.1:{langsmith.server_address[1]}"
    off = {"LANGSMITH_TRACING": "false", "LANGSMITH_ENDPOINT": address}
    off |= {"LANGSMITH_API_KEY": "another-secret-key", "OPENAI_API_KEY": KEY}
    subprocess.run([sys.executable, "-c", PROGRAM], env=os.environ | off, check=True, timeout=120)
    assert langsmith.bodies == []


def runs_of(langsmith: LangSmith) -> dict[str, dict[str, Any]]:
    """Return each run with what was sent when it began and when it ended."""
    runs: dict[str, dict[str, Any]] = {}
    sent = [json.loads(body) for body in langsmith.bodies]
    for run in [each for kind in ("post", "patch") for body in sent for each in body.get(kind, [])]:
        known = {name: value for name, value in run.items() if value is not None}
        runs[run["id"]] = runs.get(run["id"], {}) | known
    return runs


@pytest.mark.slow
def test_a_trace_has_every_call_once_and_no_copies_of_the_state(
    langsmith: LangSmith, tmp_path: Path
) -> None:
    address = f"http://127.0.0.1:{langsmith.server_address[1]}"
    traced = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": address}
    given = json.dumps({"question": QUESTION, "request": request()})
    with ModelServer(forecasters(), models=["m"]) as models:
        keys = {"LANGSMITH_API_KEY": "another-secret-key", "OPENAI_API_KEY": KEY}
        env = os.environ | traced | keys | {"OPENAI_BASE_URL": models.openai_url}
        env |= {"CONTEND_HOME": str(tmp_path)}
        command = [sys.executable, "-c", FORECAST, given, DEBATE]
        subprocess.run(command, env=env, check=True, timeout=200)
        prompts = sorted(each.request.user for each in models.calls)
    # It was 2.7 MB before anything was left out; the prompts and replies alone are 75 kB.
    assert sum(map(len, langsmith.bodies)) < 180_000
    runs = runs_of(langsmith)
    calls = [run for run in runs.values() if run["run_type"] == "llm"]
    sent = [call["inputs"]["messages"][0][-1]["kwargs"]["content"] for call in calls]
    assert sorted(sent) == prompts
    (graph,) = [run for run in runs.values() if "parent_run_id" not in run]
    assert (graph["name"], graph["inputs"]) == ("forecast", {"question": QUESTION})
    assert graph["outputs"]["final_answer"]
    nodes = [run for run in runs.values() if run.get("parent_run_id") == graph["id"]]
    named = {"retrieve", "propose", "critique", "judge_continue", "synthesize", "store"}
    assert {run["name"] for run in nodes} == named
    assert {call["parent_run_id"] for call in calls} <= {run["id"] for run in nodes}
    assert len(runs) == 1 + len(nodes) + len(calls)
    for run in runs.values():
        about = run["extra"]["metadata"]
        assert (about["thread_id"], about["debate_id"]) == (DEBATE, DEBATE)
        assert run["dotted_order"].endswith(run["id"])
        assert run["dotted_order"].count(".") == (2 if run in calls else run in nodes)
    (verdict,) = [
        call for call in calls if call["extra"]["metadata"]["turn"] == "r3.synthesize.judge"
    ]
    about = {"protocol": "forecast", "round": 3, "seat": "judge", "phase": "synthesize"}
    assert verdict["name"] == "Judge, round 3"
    assert about.items() <= verdict["extra"]["metadata"].items()
    (answer,) = verdict["outputs"]["generations"][0]
    assert answer["message"]["kwargs"]["usage_metadata"]["input_tokens"]


def shortened(data: dict[str, Any]) -> Any:
    return shorten_and_scrub({OF_DEBATE: data})


def test_traces_shorten_the_state_and_list_turns_by_id() -> None:
    turn = {"id": "r1.propose.a", "phase": "propose", "seat": "a", "text": "Long.", "usage": {}}
    state = {"question": "Why?", "round": 1, "seats": [], "turns": [turn], "settings": {"a": 1}}
    shown = {"question": "Why?", "round": 1, "turns": 1}
    assert shortened(state) == shown
    assert shortened({"state": state, "phase": "propose"}) == {"phase": "propose"}
    assert shortened({"turns": [turn], "final_answer": "So."}) == {
        "turns": ["r1.propose.a"],
        "final_answer": "So.",
    }
    call = {"messages": [[{"kwargs": {"content": "Why?", "settings": "...", "tool_calls": []}}]]}
    assert shortened(call) == {"messages": [[{"kwargs": {"content": "Why?"}}]]}
    message = {"id": ["AIMessage"], "kwargs": {"content": "So."}}
    answered = {"generations": [[{"text": "So.", "message": message}]], "llm_output": None}
    assert shortened(answered) == {"generations": [[{"message": message}]]}
    assert shortened({"question": "Why?"}) == {"question": "Why?"}


def test_runs_of_other_programs_are_not_shortened() -> None:
    for data in (
        {"messages": ["Hi."], "customer": "acme"},
        {"question": "Why?", "turns": [], "settings": {"a": 1}},
        {"state": "CA", "documents": ["a"], "policy": "b", "ls_model_name": "m", "model": "m"},
    ):
        assert shorten_and_scrub(data) == data


def test_keeps_the_client_of_a_program_that_calls_contend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("contend.models.tracing.tracing_is_enabled", lambda: True)
    theirs = Client(api_url="http://127.0.0.1:1", hide_inputs=True, auto_batch_tracing=False)
    monkeypatch.setattr(run_trees, "_CLIENT", theirs)
    scrub_traces()
    assert run_trees.get_cached_client() is theirs


def test_scrubs_keys_from_nested_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert scrub_data({"a": [f"x {KEY}", 1], "b": {"c": KEY}}) == {
        "a": ["x ***", 1],
        "b": {"c": "***"},
    }


def test_trace_names_the_seat_round_and_phase_of_a_call() -> None:
    assert call_metadata("refine", "d1", "ann", "r2.propose.ann") == {
        "phase": "propose",
        "debate_id": "d1",
        "protocol": "refine",
        "seat": "ann",
        "call": "r2.propose.ann",
        "round": 2,
    }
    assert "round" not in call_metadata("refine", "d1", "ann", "sample.1")
    of_turn = call_metadata("refine", "d1", "ann", "r2.ann", "r2.propose.ann")
    assert (of_turn["turn"], of_turn["phase"]) == ("r2.propose.ann", "propose")
    assert call_title("Skeptic", "r2.critique.skeptic") == "Skeptic, round 2"
    assert call_title("Judge", "sample.1") == "Judge"
