"""The Markdown export of finished and unfinished debates."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from contend.debates.exports.markdown import to_markdown
from contend.debates.exports.wording import label_notice
from contend.debates.record import StoredDebate
from contend.graph.readings import Assessment, Point
from contend.graph.settings import AdversarialSettings, ForumSettings
from contend.graph.state import Elimination, Turn
from contend.graph.values import Usage, WorkSpan

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEATS = [
    seat.model_copy(update={"model": f"openai:{seat.id}"})
    for seat in AdversarialSettings().build_seats()
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


def _debate(**changes: Any) -> StoredDebate:
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
    return StoredDebate(**values | changes)


def test_sections_are_in_the_expected_order() -> None:
    document = to_markdown(_debate())
    shown = [
        "# What now?",
        "> ⚠️ Skeptic, round 1: trying again (cut short)",
        "## Answer\n\nThe final answer.",
        "## Why it stopped\n\nIn round 1: all 1 rounds were used.",
        "## Objections",
        "| Objection | Severity | Raised | Replies | Outcome |\n|---|---|---|---|---|\n",
        "| S2 No plan. | 🟡 major | round 1, Skeptic |  | Partly resolved. |",
        "| S1 No cost. | ✅ critical | round 1, Skeptic |  | Resolved. |",
        "| S3 No date. | 🟢 minor | round 1, Skeptic |  | Dropped. |",
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
    assert document.count("\n\nThe final answer.\n") == 2  # in short, and whole


def test_failed_debate_shows_the_error_and_no_answer() -> None:
    state = {"question": "What now?", "seats": [seat.model_dump() for seat in SEATS]}
    document = to_markdown(
        _debate(status="failed", error="Skeptic: 401", state=state, turns=[], user_rating=None)
    )
    assert "> ⚠️ The debate failed: Skeptic: 401" in document
    assert "There is no answer yet." in document
    assert "## Score" not in document
    assert "## Objections" not in document


def test_usage_table_includes_failed_calls() -> None:
    debate = _debate()
    lost = WorkSpan(
        started_at=BEGAN,
        ended_at=BEGAN + timedelta(seconds=2),
        calls=1,
        usage=Usage(input_tokens=7, output_tokens=3),
    )
    document = to_markdown(_debate(state=debate.state | {"spans": [lost.model_dump()]}))
    assert "| | calls that failed | | 7 | 3 | 2.0 |\n| | **all** | | 37 | 18 |" in document
    assert "calls that failed" not in to_markdown(debate)


def test_a_long_question_is_shown_in_full_inside_a_code_block() -> None:
    question = "Why?\n```\n# Not a heading\n" + "word " * 60
    document = to_markdown(_debate(question=question))
    assert document.startswith("# Why? ``` # Not a heading word")
    assert f"````text\n{question}\n````" in document


def test_forum_shows_concessions_and_the_verdict() -> None:
    seats = ForumSettings(seats=[{"name": n, "model": f"openai:{n}"} for n in ("Ann", "Ben")],
                          judge_model="openai:judge").build_seats()  # fmt: skip
    gone = Elimination(
        seat="ann",
        round=2,
        convinced_by="ben",
        argument="Costs decide",
        quote="it costs twice as much",
        quote_found=True,
        reasoning="They do.",
    )
    turns = [
        _turn(2, "propose", "ben", "It costs twice as much."),
        _turn(2, "conviction_check", "ann", "CONVINCED: Ben"),
        _turn(2, "verdict", "judge", "Ben met every objection."),
        _turn(2, "synthesize", "judge", "Keep it."),
    ]
    state = {"seats": [seat.model_dump() for seat in seats], "active": ["ben"]}
    state |= {"eliminations": [gone.model_dump()], "final_answer": "Keep it."}
    text = to_markdown(_debate(protocol="forum", turns=turns, state=state, settings={}))
    assert (
        "## Concessions\n\n"
        "- Ann conceded to Ben in round 2: Costs decide (“it costs twice as much”).\n"
        "- Ben is the only one left." in text
    )
    assert "## Verdict\n\nBen met every objection." in text
    assert "### Ann (openai:ann), asked whether it concedes" in text
    invented = gone.model_copy(update={"quote_found": False, "argument": ""})
    state["eliminations"] = [invented.model_dump()]
    text = to_markdown(_debate(protocol="forum", turns=turns, state=state, settings={}))
    assert "Ann conceded to Ben in round 2: no argument named." in text


def test_notes_the_labels_of_anonymous_seats() -> None:
    seats = [{"name": name, "model": f"openai:{name}"} for name in ("Ann", "Ben")]
    named = ForumSettings(seats=seats, judge_model="openai:judge")
    hidden = ForumSettings(seats=seats, judge_model="openai:judge", anonymous=True)
    assert label_notice(named, named.build_seats()) == []
    assert label_notice(hidden, hidden.build_seats()) == [
        "The models know each other only by label: Ann is Debater 1, Ben is Debater 2."
    ]


def test_closing_statements_have_their_own_section() -> None:
    said = [("argument", "ann"), ("request", "moderator"), ("closing", "ann"), ("end", "moderator")]
    turns = [_turn(1, phase, seat, f"{seat}: {phase}.") for phase, seat in said]
    document = to_markdown(_debate(protocol="moderated", turns=turns))
    argued, closed = document.split("## Closing statements\n")
    assert "ann: argument." in argued.split("## Round 1\n")[1]
    assert "moderator: request." in closed
    assert "## Round" not in closed


def test_an_answer_kept_after_a_failed_call_is_not_repeated() -> None:
    first = _turn(0, "propose", "ann", "Keep the monolith.")
    turns = [first, _turn(1, "propose", "ann", first.text, status="kept_previous")]
    document = to_markdown(_debate(turns=turns))
    assert document.count("\n\nKeep the monolith.") == 1
    assert "*An earlier answer, kept because the call failed.*" in document


def test_table_of_contents_links_every_section() -> None:
    document = to_markdown(_debate())
    links = re.findall(r"\[([^\]]+)\]\(#([a-z0-9,-]+)\)", document)
    titles = re.findall(r"^## (.+)$", document, re.MULTILINE)
    assert [title for title, _ in links] == titles
    assert ("Why it stopped", "why-it-stopped") in links
    assert ("Models, tokens and time", "models-tokens-and-time") in links


def test_lists_positions_and_demotes_headings_in_model_text() -> None:
    debate = _debate()
    debate.state["final_answer"] = "# Mine\n\nSo it is."
    for seat in debate.state["seats"][:2]:
        seat["position"] = f"{seat['name']} is right."
    document = to_markdown(debate)
    shown = "## Positions\n\n- Proposer: Proposer is right.\n- Skeptic: Skeptic is right.\n\n## "
    assert shown in document
    assert "#### Mine" in document
