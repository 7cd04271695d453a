"""The prompts of one fixed debate, word for word.

A prompt is the product as much as the code is: a change must be seen. To accept one, run with
CONTEND_WRITE_SNAPSHOTS=1 and read the diff. (The variable is read here, before it is cleared.)
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.messages import BaseMessage

from graph.state import DebateState, Point, seat_with_role
from models.control import nonce
from nodes.briefing import brief, extraction_brief
from nodes.speaking import next_turn_id
from tests.support.scripted import THREAD, scripted_settings
from tests.support.states import assessed, retrieval, state, stopped, template, turn

FOLDER = Path(__file__).parent / "snapshots"
WRITE = bool(os.environ.get("CONTEND_WRITE_SNAPSHOTS"))

POINTS = (
    Point(id="S1", severity="critical", status="open", text="The cost is guessed."),
    Point(id="S2", severity="minor", status="partial", text="“Team” is not defined."),
)
ANSWER = turn("propose", 1, "Keep the monolith.\n\nIt is cheaper to run.")
ATTACK = turn("critique", 1, "🔴 The cost is guessed.", assessment=assessed(*POINTS))
REMARK = turn("remark", 1, "We have no budget for new servers.")
REVISED = turn("propose", 2, "Keep the monolith, with modules.")
ATTACK_AGAIN = turn("critique", 2, "S1 🔴 ✅ RESOLVED")


def sheet(messages: list[BaseMessage]) -> str:
    return "\n".join(f"# {message.type}\n\n{message.text}\n" for message in messages)


def told(role: str, phase: str, part: str, debate: DebateState) -> str:
    seat = seat_with_role(debate, role)
    tag = nonce(THREAD, next_turn_id(debate, phase, seat.id))
    return sheet(brief(debate, scripted_settings(), seat, part, THREAD, tag).messages)


def proposer_first() -> str:
    library = retrieval(template(), template("trade-offs"))
    return told("proposer", "propose", "first", state(retrieval=library))


def proposer_first_without_templates() -> str:
    return told("proposer", "propose", "first", state())


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
    return sheet(extraction_brief(seat, "I have my doubts.", list(POINTS), THREAD))


@pytest.mark.parametrize(
    "prompt",
    [
        proposer_first,
        proposer_first_without_templates,
        proposer_again,
        skeptic_first,
        skeptic_again,
        synthesizer,
        judge,
        extraction,
    ],
    ids=lambda prompt: prompt.__name__,
)
def test_the_prompt_is_the_one_on_file(prompt: Callable[[], str]) -> None:
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
