"""The trace: its required fields, working time, usage and ratings."""

import json
from typing import Any

import pytest

from contend.graph.readings import AutoScore, Point
from contend.graph.state import DebateState
from contend.graph.stop_reasons import StopDecision
from contend.graph.values import Degradation, Usage
from contend.nodes.record import build_record
from tests.support.scripted import THREAD, full_cast, play
from tests.support.states import assessed, at, retrieval, state, template, turn

SEED_FIELDS = {
    "id",
    "timestamp",
    "query",
    "templates_used",
    "rounds",
    "final_answer",
    "total_rounds",
    "early_stopped",
    "quality_score",
    "user_rating",
    "auto_score",
    "models",
    "timing",
}
OPEN = Point(id="S1", severity="critical", status="open", text="The cost is guessed.")
DONE = Point(id="S2", severity="minor", status="resolved", text="A typo.")
SPENT = Usage(input_tokens=10, output_tokens=5, cost_usd=0.25)
RATED = AutoScore(
    correctness=8,
    completeness=7,
    clarity=9,
    depth=6,
    score=7.65,
    justification="Sound.",
    would_benefit_from_finetune=True,
    judge_model="scripted:judge",
)


def trace_of(debate: DebateState, thread: str) -> dict[str, Any]:
    return build_record(debate, thread).as_json()


def took(phase: str, start: float, end: float, number: int = 1, **changes: Any) -> Any:
    return turn(phase, number, started_at=at(start), ended_at=at(end), usage=SPENT, **changes)


def whole(**changes: Any) -> DebateState:
    turns = [
        took("propose", 1, 2, text="first answer"),
        took("critique", 2, 4, text="first attack"),
        turn("remark", 1, "mind the budget"),
        took("propose", 100, 101, 2, text="second answer"),
        took("critique", 101, 103, 2, text="second attack", assessment=assessed(OPEN, DONE)),
        took("synthesize", 103, 104, 2),
        took("score", 104, 104.5, 2),
    ]
    values: dict[str, Any] = {
        "retrieval": retrieval(template()),
        "round": 2,
        "turns": turns,
        "stop": StopDecision(reason="skeptic_ready", round=2, evidence="ready"),
        "final_answer": "Keep it.",
        "auto_score": RATED,
        "degraded": [Degradation(seat="skeptic", round=1, what="retried", why="500")],
    }
    return state(**values | changes)


def test_trace_has_every_specified_field() -> None:
    trace = trace_of(whole(), THREAD)
    assert set(trace) >= SEED_FIELDS
    assert trace["id"] == THREAD
    assert trace["timestamp"] == at(0).isoformat()
    assert trace["query"] == "Should a four-person team split its monolith?"
    assert trace["templates_used"] == ["first-principles"]
    assert trace["rounds"] == [
        {
            "round": 1,
            "proposer": "first answer",
            "skeptic": "first attack",
            "user": ["mind the budget"],
        },
        {"round": 2, "proposer": "second answer", "skeptic": "second attack"},
    ]
    assert (trace["final_answer"], trace["total_rounds"]) == ("Keep it.", 2)
    assert (trace["early_stopped"], trace["stop_reason"]) == (True, "skeptic_ready")
    assert trace["models"] == {
        "proposer": "scripted:proposer",
        "skeptic": "scripted:skeptic",
        "synthesizer": "scripted:synthesizer",
        "judge": "scripted:judge",
        "embedding": "scripted:embed",
    }
    assert [p["id"] for p in trace["points"]["open"]] == ["S1"]
    assert [p["id"] for p in trace["points"]["resolved"]] == ["S2"]
    assert trace["degraded"] == [{"seat": "skeptic", "round": 1, "what": "retried", "why": "500"}]
    assert json.loads(json.dumps(trace)) == trace


def test_working_time_excludes_time_between_turns() -> None:
    assert trace_of(whole(), THREAD)["timing"] == {
        "total_ms": 8000,
        "rag_ms": 500,
        "rounds_ms": [3000, 3000],
        "synthesis_ms": 1000,
        "scoring_ms": 500,
    }


@pytest.mark.parametrize(
    ("intervals", "busy"),
    [
        ([(0, 2), (1, 3)], 3000),
        ([(0, 5), (1, 2)], 5000),
        ([(1, 2), (0, 5), (4, 6)], 6000),
        ([(0, 1), (1, 2)], 2000),
        ([(3, 4), (0, 1)], 2000),
        ([], 0),
    ],
)
def test_overlapping_turns_count_once(intervals: list[tuple[int, int]], busy: int) -> None:
    turns = [took("propose", start, end, id=f"t{start}") for start, end in intervals]
    timing = trace_of(DebateState(turns=turns), THREAD)["timing"]
    assert timing["total_ms"] == busy
    assert timing["rounds_ms"] == ([busy] if turns else [])


def test_the_users_rating_takes_precedence_over_the_judges() -> None:
    assert trace_of(whole(), THREAD)["quality_score"] == 7.65
    rated = build_record(whole(), THREAD).rated(3).as_json()
    assert (rated["quality_score"], rated["user_rating"]) == (3, 3)
    assert rated["auto_score"]["score"] == 7.65


def test_a_judge_that_shares_a_model_is_named() -> None:
    assert trace_of(whole(), THREAD)["auto_score"]["judge_shares_model_with"] == []
    shared = RATED.model_copy(update={"judge_model": "scripted:proposer"})
    sharing = trace_of(whole(auto_score=shared), THREAD)["auto_score"]["judge_shares_model_with"]
    assert sharing == ["proposer"]
    fell_back = took("critique", 2, 4, model=RATED.judge_model, status="fallback_model")
    told = trace_of(whole(turns=[fell_back]), THREAD)["auto_score"]["judge_shares_model_with"]
    assert told == ["skeptic"]


def test_known_usage_is_summed_and_unknown_usage_is_counted() -> None:
    assert trace_of(whole(), THREAD)["usage"] == {
        "turns": 6,
        "input_tokens": 60,
        "output_tokens": 30,
        "cached_tokens": None,
        "cost_usd": 1.5,
        "without_usage": 0,
    }
    unknown = [*whole()["turns"], turn("score", 2, id="x", usage=Usage(input_tokens=1))]
    usage = trace_of(whole(turns=unknown), THREAD)["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["cost_usd"]) == (61, 30, None)
    assert usage["without_usage"] == 1
    silent = [turn("score", 2, id="x", usage=Usage())]
    assert trace_of(whole(turns=silent), THREAD)["usage"]["output_tokens"] is None


@pytest.mark.parametrize(("reason", "early"), [("max_rounds", False), ("user", True)])
def test_every_stop_except_the_round_limit_is_early(reason: Any, early: bool) -> None:
    stop = StopDecision(reason=reason, round=2, evidence="…")
    assert trace_of(whole(stop=stop), THREAD)["early_stopped"] is early


@pytest.mark.parametrize(
    "partial",
    [DebateState(), DebateState(question="Why?"), state(), state(turns=[turn("propose")])],
)
def test_a_debate_that_is_not_finished_has_a_trace(partial: DebateState) -> None:
    trace = trace_of(partial, THREAD)
    assert set(trace) >= SEED_FIELDS
    assert trace["final_answer"] is None
    assert trace["stop_reason"] is None
    assert trace["early_stopped"] is False
    assert trace["quality_score"] is None
    assert trace["total_rounds"] == len(partial.get("turns", []))
    assert json.loads(json.dumps(trace)) == trace


async def test_the_node_stores_the_trace() -> None:
    played = await play(full_cast(), max_rounds=3)
    trace = played.state["trace"]
    assert trace == trace_of(played.state, THREAD)
    assert [r["proposer"] for r in trace["rounds"]] == [f"Answer number {n}." for n in (1, 2, 3)]
    assert trace["auto_score"]["score"] == 7.65
    assert len(trace["timing"]["rounds_ms"]) == 3
