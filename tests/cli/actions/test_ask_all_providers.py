"""Whole debates on every provider: the recorded trace and the handling of faults."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contend.models.providers.weights import SMALLEST
from tests.cli.support import SHORT, Command, debaters, on_embedded
from tests.models.providers.test_embedded import weights as weights  # noqa: PLC0414 - the fixture that pulls
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
def test_trace_is_complete_on_every_provider(
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
    "500": (Reply(status=500), "server: 500"),
    "stall": (Reply("Half of an answer.", stall_after=1), "idle: no token for 1 s"),
    "empty": (Reply(""), "empty: the answer was empty"),
    "cut": (Reply("Half of an answer.", cut_after=2), "connection: "),
    "clean end in the middle": (Reply("Half of an answer.", end_early_after=2), "cut: "),
    "malformed": (Reply("Half of an answer.", garble_after=2), "cut: the stream broke"),
    "length": (Reply("Half of an", finish="length"), "length: the answer was cut off"),
    "only thinking": (Reply("<think>Hm.</think>"), "empty: the answer was empty"),
}


def _first_try(fault: Reply) -> Callable[[Request], Any]:
    calm, failed = debaters(), list[int]()

    def script(request: Request) -> Any:
        if "You are the Skeptic" in request.instructions and not failed:
            failed.append(request.index)
            return fault
        return calm(request)

    return script


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_retries_and_records_every_fault(
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


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_rate_limit_that_clears_is_not_recorded_as_degraded(
    provider: str, contend: Command, models: ModelServer
) -> None:
    models.script = _first_try(Reply(status=429, headers={"Retry-After": "0"}))
    ended = contend.here("ask", "Why?", "-m", f"{provider}:m", *SHORT, "--json", "-q")
    assert ended.code == 0
    assert ended.json["degraded"] == []


@pytest.mark.embedded
@pytest.mark.smoke
def test_a_real_debate_on_the_embedded_model(
    weights: Path, contend: Command, models: ModelServer
) -> None:
    on_embedded(contend, weights)
    rounds = ["--set", "min_rounds=1", "--set", "max_rounds=1"]
    ended = contend("ask", "Why is the sky blue?", *rounds, "--json", "--quiet")
    assert (ended.code, ended.err) == (0, "")
    record = ended.json
    assert record["demonstration"]
    assert set(record["models"].values()) >= {f"embedded:{SMALLEST}"}
    assert [turn["phase"] for turn in record["turns"]] == [
        *["propose", "critique", "synthesize", "score"]
    ]
    assert all(turn["text"] for turn in record["turns"])
    assert models.calls == []


@pytest.mark.embedded
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_real_moderated_debate_on_the_embedded_model_runs_through_all_phases(
    weights: Path, contend: Command, models: ModelServer
) -> None:
    on_embedded(contend, weights)
    asked = ["ask", "Should pupils wear school uniforms?", "-p", "moderated"]
    with contend.start(*asked, "--set", "round_count=1", "--json", "--quiet") as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    record = json.loads(out)
    phases = [turn["phase"] for turn in record["turns"]]
    assert [phase for phase in phases if phase not in ("request", "score")] == [
        *("positions", "opening", "opening"),
        *("argument", "rebuttal", "argument", "rebuttal", "summary"),
        *("closing", "closing", "end", "synthesize"),
    ]
    assert phases.count("request") == 8
    assert phases.count("score") >= 6  # each stage in both orders, again where marks are missing
    assert all(turn["text"] for turn in record["turns"])
    held = {s["position"] for s in record["seats"] if s["role"] == "position_advocate"}
    assert len(held) == 2
    assert set(record["scores"]) == {"Advocate A", "Advocate B"}
    assert record["demonstration"]
    assert "not finished" not in (Path(record["output_dir"]) / "index.md").read_text()
    assert models.calls == []


@pytest.mark.embedded
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("mode", "asked"),
    [("self_convergence", "conviction_check"), ("external_judge", "judge_continue")],
)
def test_a_real_forum_on_the_embedded_model(
    mode: str, asked: str, weights: Path, contend: Command
) -> None:
    """Check the structure of the debate, not what the models decide."""
    on_embedded(contend, weights)
    two = [word for name in ("Ann", "Ben") for word in ("--seat", f"{name}=embedded:{SMALLEST}")]
    settings = [f"judge_mode={mode}", "max_rounds=3", f"judge_model=embedded:{SMALLEST}"]
    chosen = [word for each in settings for word in ("--set", each)]
    with contend.start("ask", "Why is the sky blue?", "-p", "forum", *two, *chosen) as process:
        out, err = process.communicate(timeout=380)
    assert (process.returncode, err) == (0, "")
    (listed,) = contend.here("list", "--json").json
    record = contend.here("show", listed["id"], "--json").json
    turns = record["turns"]
    assert all(turn["text"] and turn["status"] == "ok" for turn in turns)
    assert [(t["round"], t["seat"]) for t in turns if t["phase"] == "propose"][:4] == [
        *[(1, "ann"), (1, "ben"), (2, "ann"), (2, "ben")]
    ]
    assert [turn for turn in turns if turn["phase"] == asked and turn["round"] == 2]
    assert record["stop_reason"] in ("one_left", "converged", "judge_stop", "max_rounds")
    assert record["demonstration"]
    assert all(f"{name} · embedded:{SMALLEST}" in out for name in ("Ann", "Ben"))
    shown = ["─ Round 1 of at most 3 ─", "─ Round 2 of", "The rounds ended: ", "─ Answer ─"]
    places = [out.find(text) for text in shown]
    assert -1 not in places
    assert places == sorted(places)
    assert "nonce" not in out
