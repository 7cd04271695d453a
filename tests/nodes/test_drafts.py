"""Agreement of the first answers, which can skip the debate, and its record."""

from typing import Any

import pytest

from contend.nodes.drafts import agreed_answer
from contend.nodes.record import build_record
from tests.support.scripted import (
    THREAD,
    Played,
    asked_for,
    forum_cast,
    forum_settings,
    judging,
    play,
    refine_settings,
    refining_cast,
)

GATED: dict[str, Any] = {"debate_if": "drafts_disagree"}


async def refine(*answers: str, merged: str = "Merged.\n\nAnswer: B", **changes: Any) -> Played:
    lines = dict(zip(("ann", "ben", "cyd"), answers, strict=True))
    cast = refining_cast(**lines, judge=judging(merge=merged))
    return await play(cast, "Which one?", settings=refine_settings(**changes))


async def test_answers_that_agree_are_merged_without_a_debate() -> None:
    played = await refine("I say\nAnswer: B", "**Answer: (B)**", "The answer is B.", **GATED)
    assert played.path == ["retrieve", "propose", "judge_continue", "synthesize", "score", "store"]
    stop = played.state["stop"]
    assert (stop.reason, stop.round, stop.early, stop.calls_saved) == ("drafts_agree", 0, True, 8)
    assert stop.evidence == "all 3 first answers are B; at least 8 calls were saved"


@pytest.mark.parametrize(
    "answers",
    [
        ("Answer: B", "Answer: B", "Answer: C"),
        ("Answer: B", "Answer: B", "I cannot decide between these two, and will not."),
    ],
)
async def test_answers_that_differ_or_cannot_be_compared_are_debated(
    answers: tuple[str, ...],
) -> None:
    played = await refine(*answers, **GATED)
    assert played.state["stop"].reason == "max_rounds"


async def test_a_person_who_disagrees_prevents_agreement() -> None:
    state = (await refine("Answer: B", "Answer: B", "Answer: C")).state
    *others, person = [turn for turn in state["turns"] if turn.phase == "propose"][:3]
    person = person.model_copy(update={"status": "human"})
    assert agreed_answer({**state, "turns": [*others, person]}) is None
    assert agreed_answer({**state, "turns": others}) == "B"


async def test_by_default_every_question_is_debated() -> None:
    played = await refine("Answer: B", "Answer: B", "Answer: B")
    assert played.state["stop"].reason == "max_rounds"
    assert played.state["stop"].calls_saved is None


async def test_agreement_that_saves_no_calls_is_not_reported() -> None:
    agree = ("Answer: B", "Answer: B", "Answer: B")
    played = await refine(*agree, **GATED, max_debate_rounds=0)
    assert played.state["stop"].reason == "max_rounds"


@pytest.mark.parametrize(("third", "reason"), [("B", "drafts_agree"), ("C", "max_rounds")])
async def test_forum_skips_the_debate_if_the_first_answers_agree(third: str, reason: str) -> None:
    def says(answer: str) -> dict[str, Any]:
        return {"speech": lambda _: f"I think so.\n\nAnswer: {answer}"}

    cast = forum_cast(ann=says("B"), ben=says("B"), cyd=says(third))
    played = await play(cast, settings=forum_settings(**GATED, max_rounds=2))
    assert played.state["stop"].reason == reason
    rounds = {turn.round for turn in played.turns if turn.phase == "propose"}
    assert rounds == ({1} if reason == "drafts_agree" else {1, 2})
    assert [sent for sent in cast.sent if asked_for(sent) == "verdict"]


@pytest.mark.parametrize(
    ("answers", "merged", "vote", "changed"),
    [
        (("Answer: B", "Answer: B", "Answer: C"), "Answer: B", "B", False),
        (("Answer: B", "Answer: B", "Answer: C"), "Answer: C", "B", True),
        (("Answer: A", "Answer: B", "Answer: C"), "Answer: C", None, None),
        (
            ("Answer: $1,200", "Answer: 1200 euros", "No idea at all, sorry to say."),
            "Answer: 1200",
            "$1,200",
            False,
        ),
    ],
)
async def test_record_has_the_vote_and_the_final_answer(
    answers: tuple[str, ...], merged: str, vote: str | None, changed: bool | None
) -> None:
    played = await refine(*answers, merged=merged)
    drafts = build_record(played.state, THREAD).drafts
    assert drafts is not None
    assert (drafts.vote, drafts.changed) == (vote, changed)
    assert drafts.final == merged.removeprefix("Answer: ")
    assert list(drafts.answers) == ["ann", "ben", "cyd"]


@pytest.mark.parametrize(
    ("answers", "merged"),
    [
        (("It depends on the team and on its size.",) * 3, "Answer: B"),
        (("Answer: B",) * 3, "It depends on the team, on its size and on the product."),
        (
            ("Answer: B", "It depends on the team and its size.", "Nobody can say that for sure."),
            "Answer: B",
        ),
    ],
)
async def test_a_question_without_a_short_answer_has_no_vote(
    answers: tuple[str, ...], merged: str
) -> None:
    played = await refine(*answers, merged=merged)
    assert "drafts" not in build_record(played.state, THREAD).as_json()
