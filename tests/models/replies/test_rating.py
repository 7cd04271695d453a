"""The judge's ratings: weighted score and parsing."""

import pytest
from pydantic import ValidationError

from contend.models.replies.rating import WEIGHTS, RatingBlock, ratings_from_text


def rated(correctness: int, completeness: int, clarity: int, depth: int) -> RatingBlock:
    return RatingBlock(
        correctness=correctness,
        completeness=completeness,
        clarity=clarity,
        depth=depth,
        justification="Sound.",
        would_benefit_from_finetune=False,
    )


@pytest.mark.parametrize(
    ("ratings", "score"),
    [
        ((10, 10, 10, 10), 10.0),
        ((1, 1, 1, 1), 1.0),
        ((8, 7, 9, 6), 7.65),  # 3.2 + 1.75 + 1.8 + 0.9
        ((10, 1, 1, 1), 4.6),  # 4.0 + 0.25 + 0.2 + 0.15
        ((1, 10, 1, 1), 3.25),  # 0.4 + 2.5 + 0.2 + 0.15
        ((1, 1, 10, 1), 2.8),  # 0.4 + 0.25 + 2.0 + 0.15
        ((1, 1, 1, 10), 2.35),  # 0.4 + 0.25 + 0.2 + 1.5
        ((7, 3, 5, 9), 5.9),  # 2.8 + 0.75 + 1.0 + 1.35
    ],
)
def test_the_weighted_score(ratings: tuple[int, int, int, int], score: float) -> None:
    assert rated(*ratings).weighted == score


def test_weights_match_the_specification_and_sum_to_one() -> None:
    assert WEIGHTS == {"correctness": 0.4, "completeness": 0.25, "clarity": 0.2, "depth": 0.15}
    assert sum(WEIGHTS.values()) == pytest.approx(1)


def test_accepts_values_left_in_the_brackets_of_the_form() -> None:
    read = ratings_from_text(speech(Depth="[6]", Would_benefit_from_finetune="[true]"))
    assert read is not None
    assert (read.depth, read.would_benefit_from_finetune) == (6, True)


@pytest.mark.parametrize("wrong", [0, 11, -1, 7.5])
def test_refuses_a_rating_outside_the_scale(wrong: float) -> None:
    with pytest.raises(ValidationError):
        RatingBlock.model_validate(rated(5, 5, 5, 5).model_dump() | {"clarity": wrong})


LINES = {
    "Correctness": "8",
    "Completeness": "7",
    "Clarity": "9",
    "Depth": "6",
    "Justification": "Sound, a bit thin.",
    "Would-benefit-from-finetune": "true",
}


def speech(form: str = "{}: {}", /, **changes: str | None) -> str:
    lines = LINES | {name.replace("_", "-"): value for name, value in changes.items()}
    return "\n".join(form.format(k, v) for k, v in lines.items() if v is not None)


@pytest.mark.parametrize(
    "words",
    [
        speech(),
        speech("**{}:** {}"),
        speech("- {}: {}"),
        speech("* **{}**: {}"),
        speech("  {} : {}"),
        speech(Correctness="8/10", Depth="6 / 10"),
        speech(Correctness="8 (one number is off)"),
        speech("{}: {}").replace("Correctness:", "Correctness (40%):"),
        speech("{}: {}").replace("Correctness:", "Correctness (40 %):"),
        "My view of it.\n\n" + speech() + "\n\nThat is all.",
        speech().lower().replace("sound, a bit thin.", "Sound, a bit thin."),
        speech(Would_benefit_from_finetune="True"),
    ],
)
def test_reads_ratings_from_text(words: str) -> None:
    ratings = ratings_from_text(words)
    assert ratings is not None
    assert ratings.weighted == 7.65
    assert ratings.justification == "Sound, a bit thin."
    assert ratings.would_benefit_from_finetune


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Rather good, 8 of 10.",
        *(speech(**{name.replace("-", "_"): None}) for name in LINES),
        speech(Correctness="0"),
        speech(Correctness="11"),
        speech(Correctness="100"),
        speech(Correctness="8.5"),
        speech(Correctness="7-8"),
        speech(Correctness="[1-10]"),
        speech(Correctness="high"),
        speech(Correctness="3/5"),
        speech(Correctness="8/100"),
        speech(Would_benefit_from_finetune="maybe"),
        speech() + "\nClarity: 3",
    ],
)
def test_missing_or_invalid_ratings_return_none(words: str) -> None:
    assert ratings_from_text(words) is None
