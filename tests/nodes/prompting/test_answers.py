"""The most shared answer, and the letters of the seats."""

from typing import Any

import pytest

from contend.graph.state import DebateState, Turn
from contend.nodes.prompting.answers import answer_part, label_of, latest_answers, most_shared
from tests.support.scripted import refine_settings
from tests.support.states import state, turn


def answer(seat: str, text: str, number: int = 0, **changes: Any) -> Turn:
    name = f"r{number}.propose.{seat}"
    return turn("propose", number, text, id=name, seat=seat, role="debater", **changes)


def debate(*turns: Turn) -> DebateState:
    return state(seats=refine_settings().build_seats(), turns=list(turns))


@pytest.mark.parametrize(
    ("texts", "best"),
    [
        (["red blue", "red blue green", "green black"], "ben"),
        # Case and signs do not count, and a word said often counts once.
        (["RED, blue!", "red red red", "red Blue black"], "ann"),
        # Nothing is shared: the first at the table.
        (["one", "two", "three"], "ann"),
        (["one two", "one", "two"], "ann"),
        (["one", "two one", "two"], "ben"),
        (["same", "same", "same"], "ann"),
        # Only the revised answer counts, not the replies before it.
        (["## Replies\none two\n\n## Revised answer\n\nred", "one two blue", "blue red"], "cyd"),
    ],
)
def test_finds_the_answer_that_shares_the_most_words(texts: list[str], best: str) -> None:
    answers = [answer(s, text) for s, text in zip(("ann", "ben", "cyd"), texts, strict=True)]
    assert most_shared(answers).seat == best


def test_a_single_answer_is_the_most_shared() -> None:
    assert most_shared([answer("cyd", "alone")]).seat == "cyd"


def test_the_latest_answers_are_in_seat_order() -> None:
    told = debate(
        answer("cyd", "c0"), answer("ann", "a0"), answer("ann", "a1", 1), answer("ben", "b1", 1)
    )
    assert [each.text for each in latest_answers(told)] == ["a1", "b1", "c0"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Keep it.", "Keep it."),
        ("## Replies\nS1: right.\n\n## Revised answer\n\nKeep it.", "Keep it."),
        ("### **Revised Answer:**\nKeep it.\n## Why\nCost.", "Keep it.\n## Why\nCost."),
        ("Yours:\n## Revised answer\nSplit.\n## Revised answer\nKeep it.", "Keep it."),
        ("## Replies\nS1: right.\n## Revised answer", "## Replies\nS1: right.\n## Revised answer"),
        ("My revised answer is this.", "My revised answer is this."),
        ("**Replies**\nS1: right.\n\n**Revised answer**\nKeep it.", "Keep it."),
        ("## 1. Replies\nS1.\n## 2. Revised answer (round 2)\nKeep it.", "Keep it."),
        ("## Revised answer\nKeep it.\n### Revised answer in numbers\n12",
         "Keep it.\n### Revised answer in numbers\n12"),
    ],
)  # fmt: skip
def test_separates_the_revised_answer_from_the_replies(text: str, part: str) -> None:
    assert answer_part(text) == part


def test_a_seat_keeps_its_letter_if_others_skip_the_round() -> None:
    told = debate(answer("cyd", "c0"))
    assert label_of(told, refine_settings(), "cyd") == "Answer C"
