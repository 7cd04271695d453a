"""Snapshots of the prompts of fixed debates.

A prompt is the product as much as the code is: a change must be seen. To accept one, run with
CONTEND_WRITE_SNAPSHOTS=1 and read the diff. (The variable is read here, before it is cleared.)
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage

from contend.debates.template_learning import learning_prompt
from contend.graph.phases import PhaseName
from contend.graph.readings import Conviction, Point
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, Elimination, seat_with_id, seat_with_role
from contend.graph.values import QuoteCheck
from contend.models.replies.control import nonce
from contend.nodes.calls.turn import next_turn_id
from contend.nodes.prompting.prompt import Material, build_prompt, extraction_prompt
from contend.retrieval.documents import Passage
from tests.support.scripted import THREAD, forum_settings, refine_settings, scripted_settings
from tests.support.states import assessed, retrieval, state, stopped, template, turn

FOLDER = Path(__file__).parent / "snapshots"
WRITE = bool(os.environ.get("CONTEND_WRITE_SNAPSHOTS"))

POINTS = (
    Point(id="S1", severity="critical", status="open", text="The cost is guessed."),
    Point(id="S2", severity="minor", status="partial", text="“Team” is not defined."),
)
PASSAGES = (
    Passage("handbook", 12, "Deployments need two approvals."),
    Passage("handbook", 3, "The monolith holds 240,000 lines."),
)
QUOTES = (
    QuoteCheck(
        text="Deployments need two approvals",
        status="found",
        cited="handbook:2",
        where="handbook:12",
    ),
    QuoteCheck(
        text="The monolith ... lines",
        status="altered",
        where="handbook:3",
        reads="The monolith holds 240,000 lines",
    ),
    QuoteCheck(text="a rewrite took four months", status="not_found"),
    QuoteCheck(text="split its monolith", status="from_debate"),
)
ANSWER = turn("propose", 1, "Keep the monolith.\n\nIt is cheaper to run.")
ATTACK = turn("critique", 1, "🔴 The cost is guessed.", assessment=assessed(*POINTS))
REMARK = turn("remark", 1, "We have no budget for new servers.")
REVISED = turn("propose", 2, "Keep the monolith, with modules.")
ATTACK_AGAIN = turn("critique", 2, "S1 🔴 ✅ RESOLVED")


REFINE = refine_settings()
INITIAL = [
    turn(
        "propose",
        0,
        text,
        id=f"r0.propose.{seat}",
        seat=seat,
        role="debater",
    )
    for seat, text in (
        ("ann", "Keep the monolith.\n\nIt is cheaper to run."),
        ("ben", "Split it by team."),
        ("cyd", "Draw modules first."),
    )
]
ADVICE = turn("critique", 1, "B names no cost.", seat="judge", role="judge")
REFINED = [
    each.model_copy(update={"id": f"r1.propose.{each.seat}", "round": 1, "text": text})
    for each, text in zip(INITIAL, ("Keep it.", "Split it later.", "Draw modules."), strict=True)
]


FORUM = forum_settings()
ARGUED = [
    each.model_copy(update={"id": f"r{number}.propose.{each.seat}", "round": number, "text": text})
    for number, said in enumerate(
        (("Keep it.", "Split it.", "Draw modules."), ("Too dear.", "Too slow.", "Too late.")), 1
    )
    for each, text in zip(INITIAL, said, strict=True)
]
CONCEDED = Elimination(
    seat="ann",
    round=2,
    convinced_by="ben",
    argument="It is slow.",
    quote="Too slow.",
    quote_found=True,
    reasoning="It is.",
)
CYD = {"seat": "cyd", "round": 3}


def sheet(messages: list[BaseMessage]) -> str:
    return "\n".join(f"# {message.type}\n\n{message.text}\n" for message in messages)


def told(role: str, phase: PhaseName, part: str, debate: DebateState) -> str:
    seat = seat_with_role(debate, role)
    tag = nonce(THREAD, next_turn_id(debate, phase, seat.id))
    return sheet(build_prompt(debate, scripted_settings(), seat, part, THREAD, tag).messages)


def proposer_first() -> str:
    library = retrieval(template(), template("trade-offs"))
    return told("proposer", "propose", "first", state(retrieval=library))


def proposer_first_without_templates() -> str:
    return told("proposer", "propose", "first", state())


def skeptic_first_with_templates_and_documents() -> str:
    quoted = ANSWER.model_copy(update={"quotes": QUOTES})
    debate = state(turns=[quoted], retrieval=retrieval(template()))
    settings = scripted_settings(template_seats=("proposer", "skeptic"))
    seat = seat_with_role(debate, "skeptic")
    tag = nonce(THREAD, next_turn_id(debate, "critique", seat.id))
    material = Material(PASSAGES)
    return sheet(build_prompt(debate, settings, seat, "first", THREAD, tag, material).messages)


def learning() -> str:
    turns = [ANSWER, ATTACK]
    debate = state(turns=turns, stop=stopped(1), final_answer="## Answer\nKeep it.")
    return sheet(learning_prompt(debate, THREAD))


def proposer_again() -> str:
    return told("proposer", "propose", "again", state(round=2, turns=[ANSWER, ATTACK, REMARK]))


def skeptic_first() -> str:
    return told("skeptic", "critique", "first", state(turns=[ANSWER]))


def skeptic_again() -> str:
    debate = state(round=2, turns=[ANSWER, ATTACK, REMARK, REVISED])
    return told("skeptic", "critique", "again", debate)


def synthesizer() -> str:
    turns = [ANSWER, ATTACK, REVISED, ATTACK_AGAIN]
    return told("synthesizer", "synthesize", "final", state(round=2, turns=turns, stop=stopped(2)))


def judge() -> str:
    turns = [ANSWER, ATTACK, REVISED, ATTACK_AGAIN]
    debate = state(round=2, turns=turns, stop=stopped(2), final_answer="## Answer\nKeep it.")
    return told("judge", "score", "score", debate)


def extraction() -> str:
    seat = seat_with_role(state(), "skeptic")
    return sheet(extraction_prompt(seat, "I have my doubts.", list(POINTS), THREAD))


def told_at(
    settings: DebateSettings, seat: str, phase: PhaseName, part: str, debate: DebateState
) -> str:
    tag = nonce(THREAD, next_turn_id(debate, phase, seat))
    whose = seat_with_id(debate, seat)
    return sheet(build_prompt(debate, settings, whose, part, THREAD, tag).messages)


def refine_told(seat: str, phase: PhaseName, part: str, **values: Any) -> str:
    debate = state(seats=REFINE.build_seats(), **values)
    return told_at(REFINE, seat, phase, part, debate)


def refine_debater_first() -> str:
    return refine_told("ann", "propose", "first", round=0, retrieval=retrieval(template()))


def refine_debater_with_tools() -> str:
    laid = {"name": "Ann", "model": "scripted:ann", "tools": ["calculate", "search_documents"]}
    settings = refine_settings(seats=[laid, {"name": "Ben", "model": "scripted:ben"}])
    debate = state(seats=settings.build_seats(), round=0)
    return sheet(build_prompt(debate, settings, debate["seats"][0], "first", THREAD, "").messages)


def refine_debater_again() -> str:
    turns = [*INITIAL, ADVICE, REMARK]
    return refine_told("ben", "propose", "again", round=1, turns=turns)


def refine_judge_feedback() -> str:
    return refine_told("judge", "critique", "feedback", round=1, turns=INITIAL)


def refine_judge_feedback_again() -> str:
    turns = [*INITIAL, ADVICE, *REFINED]
    return refine_told("judge", "critique", "feedback", round=2, turns=turns)


def refine_judge_final() -> str:
    turns = [*INITIAL, ADVICE, *REFINED]
    return refine_told("judge", "synthesize", "final", round=1, turns=turns, stop=stopped(1))


def refine_judge_score() -> str:
    return refine_told("judge", "score", "score", round=1, final_answer="Keep it for now.")


def forum_told(seat: str, phase: PhaseName, part: str, **values: Any) -> str:
    usual: dict[str, Any] = {"turns": ARGUED, "round": 2, "active": ["ann", "ben", "cyd"]}
    return told_at(FORUM, seat, phase, part, state(seats=FORUM.build_seats(), **usual | values))


def forum_debater_first() -> str:
    library = retrieval(template())
    return forum_told("ann", "propose", "first", round=1, turns=[], retrieval=library)


def forum_debater_again() -> str:
    return forum_told("cyd", "propose", "again", turns=[*ARGUED[:-1], REMARK])


def forum_debater_conviction() -> str:
    return forum_told("ann", "conviction_check", "conviction")


def forum_debater_conviction_again() -> str:
    said = Conviction(convinced=True, convinced_by="ben", argument="Costs.", quote="Never said.")
    doubted = turn("remark", 2, "CONVINCED: Ben", seat="ann", role="debater", assessment=said)
    doubted = doubted.model_copy(update={"phase": "conviction_check", "status": "ok"})
    return forum_told("ann", "conviction_check", "conviction_again", turns=[*ARGUED, doubted])


def forum_debater_final() -> str:
    left = {"active": ["ben"], "eliminations": [CONCEDED, CONCEDED.model_copy(update=CYD)]}
    return forum_told("ben", "synthesize", "final", round=3, **left)


def forum_judge_continue() -> str:
    return forum_told("judge", "judge_continue", "continue")


def forum_judge_verdict() -> str:
    return forum_told("judge", "verdict", "verdict")


def forum_judge_final() -> str:
    rated = turn("score", 2, "Ben met every objection.")
    verdict = rated.model_copy(update={"phase": "verdict"})
    return forum_told("judge", "synthesize", "final", turns=[*ARGUED, verdict])


def forum_judge_score() -> str:
    return forum_told("judge", "score", "score", final_answer="Keep it for now.")


@pytest.mark.parametrize(
    "prompt",
    [
        proposer_first,
        proposer_first_without_templates,
        skeptic_first_with_templates_and_documents,
        learning,
        proposer_again,
        skeptic_first,
        skeptic_again,
        synthesizer,
        judge,
        extraction,
        refine_debater_first,
        refine_debater_with_tools,
        refine_debater_again,
        refine_judge_feedback,
        refine_judge_feedback_again,
        refine_judge_final,
        refine_judge_score,
        forum_debater_first,
        forum_debater_again,
        forum_debater_conviction,
        forum_debater_conviction_again,
        forum_debater_final,
        forum_judge_continue,
        forum_judge_verdict,
        forum_judge_final,
        forum_judge_score,
    ],
    ids=lambda prompt: prompt.__name__,
)
def test_the_prompt_matches_the_snapshot(prompt: Callable[[], str]) -> None:
    file = FOLDER / f"{prompt.__name__}.md"
    if WRITE:
        file.write_text(prompt(), encoding="utf-8")
    assert prompt() == file.read_text(encoding="utf-8")


def test_every_snapshot_on_file_is_compared() -> None:
    compared = {
        name
        for name, made in globals().items()
        if getattr(made, "__annotations__", 0) == {"return": str}
    }
    assert {file.stem for file in FOLDER.glob("*.md")} == compared
