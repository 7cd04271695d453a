"""The short answer, changes since the first draft, and remaining dissent."""

from typing import Any

import pytest

from contend.debates.exports.verdict import changes, dissent, short_answer, verdict_facts

POINT = {"raised_by": "skeptic", "severity": "critical", "round_raised": 1, "replies": []}
OPEN = {**POINT, "id": "S1", "status": "open", "text": "No cost.", "reviews": []}


def _record(**changed: Any) -> dict[str, Any]:
    seats = [
        {"id": "proposer", "name": "Proposer", "role": "proposer", "model": "a:x"},
        {"id": "skeptic", "name": "Skeptic", "role": "skeptic", "model": "a:x"},
        {"id": "judge", "name": "Judge", "role": "judge", "model": "b:y"},
    ]
    usage = {"input_tokens": 1200, "output_tokens": 30, "cost_usd": 0.5}
    usual: dict[str, Any] = {
        "seats": seats,
        "turns": [{"phase": "propose", "seat": "proposer", "text": "Keep it. It is cheap."}],
        "final_answer": "Keep it. Measure first.",
        "points": {"open": [OPEN], "resolved": []},
        "total_rounds": 2,
        "demonstration": False,
        "auto_score": {"score": 7.5, "judge_model": "b:y"},
        "user_rating": None,
        "degraded": [],
        "stop_reason": "max_rounds",
        "usage": usage,
        "timing": {"total_ms": 1500},
    }
    return usual | changed


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("# Answer\n\nKeep **it**. Why? Cost! More.", "Keep it. Why? Cost!"),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\nKeep it.", "Keep it."),
        ("```\ncode.\n```\n\n- One.\n- Two.", "One. Two."),
        ("Use less, e.g. one service. Done.", "Use less, e.g. one service. Done."),
        ("First line\nsecond line.", "First line second line."),
        ("# Only a heading", "# Only a heading"),
        (f"One. {'Two ' * 130}is long. Three.", "One."),
    ],
)
def test_short_answer_skips_headings_tables_and_code(text: str, short: str) -> None:
    assert short_answer(text) == short


def test_verdict_lists_objections_score_stop_reason_and_cost() -> None:
    assert verdict_facts(_record()) == [
        ("Open", "🔴 S1 No cost."),
        ("Score", "7.5 of 10 by b:y"),
        ("Stopped", "after 2 rounds: all rounds were used"),
        ("Took part", "Proposer and Skeptic (a:x); Judge (b:y)"),
        ("Cost", "$0.5000; tokens 1,200 in, 30 out; 1.5 s"),
    ]
    settled = {**OPEN, "status": "resolved"}
    facts = dict(verdict_facts(_record(points={"open": [], "resolved": [settled]})))
    assert facts["Open"] == "no objection"
    assert "Open" not in dict(verdict_facts(_record(points={"open": [], "resolved": []})))


def test_lists_changes_since_the_first_draft() -> None:
    assert changes(_record()) == [
        "1 of 2 sentences of the answer are in the first draft.",
        "New: Measure first.",
        "Dropped: It is cheap.",
    ]
    same = _record(final_answer="Keep it. It is quite cheap.")
    assert changes(same) == ["The answer says the same as the first draft."]
    others = [{"phase": "propose", "seat": seat, "text": "So."} for seat in ("a", "b")]
    assert changes(_record(turns=others)) == []


def test_lists_seats_that_still_disagree() -> None:
    assert dissent(_record()) == ["Skeptic: S1 No cost."]
    forum = _record(
        points={"open": [], "resolved": []},
        winner="proposer",
        active=["proposer", "skeptic"],
        turns=[{"phase": "propose", "seat": "skeptic", "text": "Split it."}],
    )
    assert dissent(forum) == ["Skeptic did not concede: Split it."]
