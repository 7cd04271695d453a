"""The Markdown document of a debate, finished or not."""

from datetime import UTC, datetime, timedelta
from typing import Any

from debates.exports.markdown import to_markdown
from debates.records import Debate
from graph.settings import AdversarialSettings
from graph.state import Assessment, Point, Turn, Usage

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEATS = [
    seat.model_copy(update={"model": f"openai:{seat.id}"}) for seat in AdversarialSettings().seats()
]
SCORE = {
    "correctness": 8,
    "completeness": 7,
    "clarity": 9,
    "depth": 6,
    "score": 7.65,
    "justification": "Clear.",
    "would_benefit_from_finetune": False,
    "judge_model": "openai:judge",
}


def _turn(round_number: int, phase: str, seat: str, text: str, **more: Any) -> Turn:
    return Turn(
        id=f"r{round_number}.{phase}.{seat}",
        round=round_number,
        phase=phase,
        seat=seat,
        role=seat,
        model="" if seat == "user" else f"openai:{seat}",
        text=text,
        started_at=BEGAN,
        ended_at=BEGAN + timedelta(seconds=1.5),
        **more,
    )


def _debate(**changes: Any) -> Debate:
    points = (
        Point(id="S1", severity="critical", status="resolved", text="No cost."),
        Point(id="S2", severity="major", status="partial", text="No plan."),
        Point(id="S3", severity="minor", status="dropped", text="No date."),
    )
    used = Usage(input_tokens=10, output_tokens=5)
    turns = [
        _turn(1, "propose", "proposer", "The first answer.", usage=used),
        _turn(
            1,
            "critique",
            "skeptic",
            "A critique.",
            usage=used,
            assessment=Assessment(ready=False, points=points),
        ),
        _turn(1, "remark", "user", "Mind the cost.", status="human"),
        _turn(1, "synthesize", "synthesizer", "The final answer.", usage=used),
    ]
    state = {
        "question": "What now?",
        "seats": [seat.model_dump() for seat in SEATS],
        "round": 1,
        "stop": {"reason": "max_rounds", "round": 1, "evidence": "all 1 rounds were used"},
        "final_answer": "The final answer.",
        "auto_score": SCORE,
        "degraded": [{"seat": "skeptic", "round": 1, "what": "retried", "why": "cut\nshort"}],
    }
    values: dict[str, Any] = {
        "id": "11111111-2222-4333-8444-555555555555",
        "protocol": "adversarial",
        "question": "What now?",
        "status": "done",
        "created_at": BEGAN.isoformat(),
        "updated_at": BEGAN.isoformat(),
        "settings": {},
        "state": state,
        "error": None,
        "demonstration": False,
        "user_rating": 9,
        "last_seq": 1,
        "turns": turns,
    }
    return Debate(**values | changes)


def test_sections_stand_in_the_order_a_reader_needs_them() -> None:
    document = to_markdown(_debate())
    shown = [
        "# What now?",
        "> ⚠️ Skeptic, round 1: trying again (cut short)",
        "## Answer\n\nThe final answer.",
        "## Why it stopped\n\nIn round 1: all 1 rounds were used.",
        "## Points",
        "Open:\n\n- 🟡 **S2** No plan. (partly resolved)",
        "Resolved:\n\n- ✅ **S1** No cost.",
        "Not raised again:\n\n- 🟢 **S3** No date.",
        "## Score",
        "Your rating: **9 of 10**.",
        "**7.65 of 10** by openai:judge: correctness 8, completeness 7, clarity 9, depth 6.",
        "## Round 1",
        "### Proposer (openai:proposer)\n\nThe first answer.",
        "### Skeptic (openai:skeptic)\n\nA critique.",
        "### User\n\nMind the cost.",
        "| 1 | proposer | openai:proposer | 10 | 5 | 1.5 |",
        "Cost: unknown.",
    ]
    places = [document.find(text) for text in shown]
    assert -1 not in places, shown[places.index(-1)]
    assert places == sorted(places)
    assert "\n\n\n" not in document
    assert document.count("The final answer.") == 1


def test_a_failed_debate_has_no_answer_and_says_so() -> None:
    state = {"question": "What now?", "seats": [seat.model_dump() for seat in SEATS]}
    document = to_markdown(
        _debate(status="failed", error="Skeptic: 401", state=state, turns=[], user_rating=None)
    )
    assert "> ⚠️ The debate failed: Skeptic: 401" in document
    assert "There is no answer yet." in document
    assert "## Score" not in document
    assert "## Points" not in document


def test_a_long_question_is_kept_whole_and_cannot_break_out() -> None:
    question = "Why?\n```\n# Not a heading\n" + "word " * 60
    document = to_markdown(_debate(question=question))
    assert document.startswith("# Why? ``` # Not a heading word")
    assert f"````text\n{question}\n````" in document
