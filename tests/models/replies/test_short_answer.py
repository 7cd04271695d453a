"""Short answers: how they are read from a reply and compared."""

import pytest

from contend.models.replies.short_answer import (
    answer_key,
    brief_answer,
    most_frequent,
    parse_number,
    stated_answer,
)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Let me see.\n\nAnswer: B", "B"),
        ("**Answer: B**", "B"),
        ("**Answer:** (C)", "C"),
        ("### Final Answer\n\n**Final Answer:** 42 km", "42 km"),
        ("So the answer is (J).", "J"),
        ("This answer is not available. The closest answer is 34. The answer is (J).", "J"),
        ("First I thought: Answer: A\n\nBut no.\n\nAnswer: D", "D"),
        ("She sells 9 eggs.\n#### 18", "18"),
        (r"Hence \(x = 3\).\n\n\[\boxed{72}\]", "72"),
        (r"The answer is $\boxed{\text{(B)}}$.", "B"),
        ("The answer is:\n\nThe answer is (E).", "E"),
        ("The correct answer is option D.", "D"),
        ("Therefore the answer would be 1,200.", "1,200"),
        ("Answer: ) ) }", ") ) }"),
        ("I cannot say.", None),
        ("The answer", None),
        ("", None),
    ],
)
def test_the_last_statement_counts(reply: str, answer: str | None) -> None:
    assert stated_answer(reply) == answer


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Answer: Paris because it is the capital.", "Paris"),
        ("Answer: 12. That is the sum.", "12"),
        ("Paris", "Paris"),
        ("42.", "42"),
        ("It depends on what you need.", None),
        ("Yes.\n\nBut there is more to say.", None),
        (f"Answer: {'a long story of how it came about ' * 3}", None),
    ],
)
def test_a_brief_answer_is_a_few_words(reply: str, answer: str | None) -> None:
    assert brief_answer(reply) == answer


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("B", "(b)"),
        ("B", "B. The second one"),
        ("$1,200", "1200"),
        ("18", "18 dollars"),
        ("-4", "−4.0"),
        ("Yes, it does", "yes"),
        ("New York", "new york."),
        ("0.5", ".5"),
    ],
)
def test_different_spellings_are_the_same_answer(one: str, other: str) -> None:
    assert answer_key(one) == answer_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("B", "C"),
        ("3", "3 or 4"),
        ("yes", "no"),
        ("12", "12.5"),
        ("1 of 3", "1"),
        (") )", ") }"),
        ("no one", "no"),
        ("4", "-4"),
    ],
)
def test_different_answers_have_different_keys(one: str, other: str) -> None:
    assert answer_key(one) != answer_key(other)


@pytest.mark.parametrize(
    ("text", "number"),
    [("$2.50", 2.5), ("- 3", -3.0), ("-$3", -3.0), ("15 km/h", None), ("20%", 20.0), ("ten", None)],
)
def test_parses_numbers(text: str, number: float | None) -> None:
    assert parse_number(text) == number


def test_the_most_frequent_answer_must_not_be_tied() -> None:
    assert most_frequent(["a", "b", "a"]) == "a"
    assert most_frequent(["a", None, None]) == "a"
    assert most_frequent(["a", "b"]) is None
    assert most_frequent([None]) is None
