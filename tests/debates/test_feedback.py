"""Sending ratings to LangSmith as trace feedback."""

import json
import logging
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from langsmith.utils import get_env_var

from contend.debates.feedback import send_rating
from tests.cli.support import ASK, Command, debaters
from tests.models.test_tracing import LangSmith
from tests.support.model_server import ModelServer

DEBATE = "5f0c1f0e-0000-4000-8000-000000000001"


@pytest.mark.slow
def test_trace_uses_the_debate_id_and_scores_are_sent_as_feedback(tmp_path: Path) -> None:
    with LangSmith() as langsmith, ModelServer(debaters(), models=["m"]) as models:
        Thread(target=langsmith.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{langsmith.server_address[1]}"
        traced = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": address}
        traced |= {"LANGSMITH_API_KEY": "another-secret-key"}
        contend = Command(tmp_path / "contend", models)
        asked = contend.spawn(*ASK, "--json", **traced)
        debate = asked.json["id"]
        assert contend.spawn("rate", debate, "8", **traced).code == 0
        langsmith.shutdown()
    sent = [json.loads(body) for body in langsmith.bodies]
    assert {run["trace_id"] for each in sent for run in each.get("post", [])} == {debate}
    scores = {each["key"]: (each["trace_id"], each["score"]) for each in sent if "key" in each}
    assert scores == {"auto_score": (debate, 0.765), "user_rating": (debate, 0.8)}


def _forget_environment() -> None:
    forget: Any = get_env_var
    forget.cache_clear()


def _break_langsmith(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: Any) -> None:
        raise OSError("nobody is there")

    monkeypatch.setattr("langsmith.run_trees.get_cached_client", refuse)


@pytest.mark.parametrize("is_on", [True, False])
def test_rating_works_when_langsmith_is_unavailable(
    is_on: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", str(is_on).lower())
    _forget_environment()
    _break_langsmith(monkeypatch)
    with caplog.at_level(logging.WARNING):
        send_rating(DEBATE, 8)
    _forget_environment()
    assert ("nobody is there" in caplog.text) is is_on


def test_rating_does_not_wait_for_an_unresponsive_langsmith(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ends = Event()

    def answer_never(**_: Any) -> None:
        ends.wait()
        raise OSError("the test is over")

    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    _forget_environment()
    monkeypatch.setattr("langsmith.run_trees.get_cached_client", answer_never)
    monkeypatch.setattr("contend.debates.feedback._PATIENCE", 0)
    with caplog.at_level(logging.WARNING):
        send_rating(DEBATE, 8)
    _forget_environment()
    assert "LangSmith has not answered" in caplog.text
    ends.set()
