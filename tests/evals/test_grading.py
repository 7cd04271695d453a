"""Reading and grading replies by the kind of item."""

from typing import Any

import pytest

from contend.evals.grading import grade
from contend.evals.items import Item


def _item(kind: str, answer: str, **more: Any) -> Item:
    return Item.model_validate({"id": "i", "question": "?", "kind": kind, "answer": answer, **more})


CHOICE = _item("choice", "B", options=["Paris", "Rome", "Oslo"])
NUMBER = _item("number", "15.9", tolerance=0.03)
EXACT = _item("number", "1200")


@pytest.mark.parametrize(
    ("item", "reply", "answer", "right"),
    [
        (CHOICE, "Answer: B", "B", True),
        (CHOICE, "Answer: (b) Rome", "B", True),
        (CHOICE, "The answer is Rome.", "B", True),
        (CHOICE, "Answer: C", "C", False),
        (CHOICE, "Answer: not listed", None, False),
        (CHOICE, "The answer is either A or B.", None, False),
        (CHOICE, "It is a city in Italy, as everybody knows.", None, False),
        (CHOICE, "Answer: Z", None, False),
        (NUMBER, "Answer: 16 cm", "16", True),
        (NUMBER, "Answer: 15", "15", False),
        (EXACT, "The answer is 600 + 600 = 1,200 euros.", "1200", True),
        (EXACT, r"\boxed{1200}", "1200", True),
        (EXACT, "Answer: between 1100 and 1300", None, False),
        (_item("yes_no", "no"), "Answer: No, it does not.", "no", True),
        (_item("yes_no", "no"), "Answer: True", "yes", False),
        (_item("yes_no", "no"), "Answer: perhaps", None, False),
        (_item("text", "animal", also=("an animal",)), "Answer: **Animal**", "Animal", True),
        (_item("text", "animal", also=("an animal",)), "Answer: an animal.", "an animal", True),
    ],
)
def test_a_reply_is_read_and_graded(
    item: Item, reply: str, answer: str | None, right: bool
) -> None:
    found = grade(reply, item)
    assert (found.answer, found.right) == (answer, right)


@pytest.mark.parametrize(
    ("reply", "probability", "right"),
    [
        ("Probability: 0.8", 0.8, True),
        ("First 0.2, but then\n**Probability:** 35%", 0.35, False),
        ("probability of 0.5", 0.5, True),
        ("Probability: 8", None, False),
        ("Very likely.", None, False),
    ],
)
def test_reads_a_probability_from_a_forecast(
    reply: str, probability: float | None, right: bool
) -> None:
    found = grade(reply, _item("forecast", "yes"))
    assert (found.probability, found.right) == (probability, right)


def test_an_open_answer_is_not_graded() -> None:
    item = _item("open", "", rubric=["Says why"])
    assert grade("Because.", item).right is None
    assert grade(" ", item).is_unreadable
