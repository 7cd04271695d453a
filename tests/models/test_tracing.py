"""Traces, where somebody switched them on: no key is in what LangSmith is sent."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from contend.models.tracing import call_metadata, call_title, scrub_data, shorten_and_scrub
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
asyncio.run(graph.ainvoke(json.loads(sys.argv[1]), {"recursion_limit": 200}, context=settings))
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


PROJECT = "0b7a1f0e-0000-4000-8000-000000000009"


class LangSmith(ThreadingHTTPServer):
    """Takes whatever is sent."""

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
        command = [sys.executable, "-c", FORECAST, given]
        subprocess.run(command, env=env, check=True, timeout=200)
        assert len(models.calls) == 31
    sent = [json.loads(body) for body in langsmith.bodies]
    runs = [run for body in sent for run in (*body.get("post", []), *body.get("patch", []))]
    kinds = {run["id"]: run["run_type"] for run in runs if "run_type" in run}
    assert list(kinds.values()).count("llm") == 31
    # Without the calls, whose texts a trace is for: 1.8 MB before nodes and tasks were shortened.
    carried = [
        json.dumps([run.get("inputs"), run.get("outputs")])
        for run in runs
        if kinds[run["id"]] != "llm"
    ]
    assert sum(map(len, carried)) < 40_000
    assert sum(map(len, langsmith.bodies)) < 330_000
    verdict = [
        run["extra"]["metadata"]
        for run in runs
        if run.get("run_type") == "llm" and run["extra"]["metadata"]["phase"] == "synthesize"
    ]
    about = {"protocol": "forecast", "round": 3, "seat": "judge", "turn": "r3.synthesize.judge"}
    assert verdict
    assert all(about.items() <= each.items() for each in verdict)


def test_a_state_is_shown_by_its_place_and_turns_by_their_ids() -> None:
    turn = {"id": "r1.propose.a", "phase": "propose", "seat": "a", "text": "Long.", "usage": {}}
    state = {"question": "Why?", "round": 1, "seats": [], "turns": [turn], "settings": {"a": 1}}
    shown = {"question": "Why?", "round": 1, "turns": 1}
    assert shorten_and_scrub(state) == shown
    assert shorten_and_scrub({"state": state, "phase": "propose"}) == {"phase": "propose"}
    assert shorten_and_scrub({"turns": [turn], "final_answer": "So."}) == {
        "turns": ["r1.propose.a"],
        "final_answer": "So.",
    }
    call = {"messages": [[{"kwargs": {"content": "Why?", "settings": "kept"}}]]}
    assert shorten_and_scrub(call) == call
    assert shorten_and_scrub({"question": "Why?"}) == {"question": "Why?"}


def test_all_that_is_nested_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert scrub_data({"a": [f"x {KEY}", 1], "b": {"c": KEY}}) == {
        "a": ["x ***", 1],
        "b": {"c": "***"},
    }


def test_a_call_is_named_in_its_trace() -> None:
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
