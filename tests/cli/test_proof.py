"""What is promised of a whole debate: the trace on every provider, and faults that are told."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from models.weights import DEFAULT, KNOWN, weights_path
from tests.cli.support import ROOT, SHORT, Command, debaters
from tests.models.test_embedded import weights as weights  # noqa: PLC0414 - the fixture that pulls
from tests.support.model_server import ModelServer, Reply, Request

TRACE = {
    "id": str,
    "timestamp": str,
    "query": str,
    "templates_used": list,
    "rounds": list,
    "final_answer": str,
    "total_rounds": int,
    "early_stopped": bool,
    "quality_score": float,
    "user_rating": type(None),
    "auto_score": dict,
    "models": dict,
    "timing": dict,
}


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_the_trace_is_filled_whatever_the_provider(
    provider: str, contend: Command, models: ModelServer
) -> None:
    models.script = debaters(lambda _role, _number, reply: replace(reply, delay=0.02))
    settings = [*SHORT, "--set", "min_rounds=2", "--set", "max_rounds=3"]
    ended = contend("ask", "Why?", "-m", f"{provider}:m", *settings, "--json", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    trace = ended.json
    assert {name: type(trace[name]) for name in TRACE} == TRACE
    assert [set(entry) for entry in trace["rounds"]] == [{"round", "proposer", "skeptic"}] * 2
    assert set(trace["models"]) == {"proposer", "skeptic", "synthesizer", "judge", "embedding"}
    timing = trace["timing"]
    assert len(timing["rounds_ms"]) == trace["total_rounds"] == 2
    assert min([*timing["rounds_ms"], timing["synthesis_ms"], timing["scoring_ms"]]) >= 20
    parts = sum(timing["rounds_ms"]) + timing["synthesis_ms"] + timing["scoring_ms"]
    assert abs(timing["total_ms"] - parts - timing["rag_ms"]) <= 5
    assert trace["stop_reason"] == "no_critical_issues"
    assert trace["early_stopped"]
    assert trace["usage"]["cost_usd"] == (0.0 if provider == "ollama" else None)
    assert trace["usage"]["input_tokens"] > 0
    assert contend("rate", trace["id"], "9").code == 0
    rated = contend("show", trace["id"], "--json").json
    assert (rated["user_rating"], rated["quality_score"]) == (9, 9)


FAULTS: dict[str, tuple[Reply, str]] = {
    "429 with Retry-After": (Reply(status=429, headers={"Retry-After": "0"}), "rate_limit: 429"),
    "500": (Reply(status=500), "server: 500"),
    "stall": (Reply("Half of an answer.", stall_after=1), "idle: no token for 1 s"),
    "empty": (Reply(""), "empty: the answer was empty"),
    "cut": (Reply("Half of an answer.", cut_after=2), "connection: "),
    "clean end in the middle": (Reply("Half of an answer.", end_early_after=2), "cut: "),
    "length": (Reply("Half of an", finish="length"), "length: the answer was cut off"),
    "only thinking": (Reply("<think>Hm.</think>"), "empty: the answer was empty"),
}


def _first_try(fault: Reply) -> Callable[[Request], Any]:
    calm, failed = debaters(), list[int]()

    def script(request: Request) -> Any:
        if "You are the Skeptic" in request.system and not failed:
            failed.append(request.index)
            return fault
        return calm(request)

    return script


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_every_fault_is_told_and_survived(
    provider: str, fault: str, contend: Command, models: ModelServer
) -> None:
    reply, told = FAULTS[fault]
    models.script = _first_try(reply)
    ended = contend.here(
        *["ask", "Why?", "-m", f"{provider}:m", *SHORT, "--set", "idle_timeout=1", "--json", "-q"]
    )
    assert ended.code == 0
    (entry,) = ended.json["degraded"]
    assert (entry["seat"], entry["round"], entry["what"]) == ("skeptic", 1, "retried")
    assert entry["why"].startswith(f"{provider}:m: {told}")
    assert ended.json["rounds"][0]["skeptic"] == "This is critique 1 🔍 of the answer."


@pytest.mark.embedded
@pytest.mark.slow
def test_a_real_debate_on_the_embedded_model(
    weights: Path, contend: Command, models: ModelServer
) -> None:
    home = weights_path(KNOWN[DEFAULT], contend.home)
    home.parent.mkdir(parents=True)
    os.link(weights, home)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        contend.env.pop(name)
    contend.env["PYTHONPATH"] = str(ROOT)
    rounds = ["--set", "min_rounds=1", "--set", "max_rounds=1"]
    ended = contend("ask", "Why is the sky blue?", *rounds, "--json", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    record = ended.json
    assert record["demonstration"]
    assert set(record["models"].values()) >= {f"embedded:{DEFAULT}"}
    assert [turn["phase"] for turn in record["turns"]] == [
        *["propose", "critique", "synthesize", "score"]
    ]
    assert all(turn["text"] for turn in record["turns"])
    assert models.calls == []
