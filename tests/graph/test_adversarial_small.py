"""Small models get short prompts, and echoed prompts are removed from their answers."""

from tests.support.scripted import full_cast, play

QUESTION = "Should a team of four split its monolith?"


async def test_small_model_gets_a_short_prompt_and_its_echo_is_removed() -> None:
    said = f"{QUESTION} No, it should not."
    played = await play(
        full_cast(small=said), QUESTION, proposer_model="scripted:small", min_rounds=1, max_rounds=1
    )
    sent = played.cast.sent[0]
    assert "Begin with your answer in one sentence." in sent.user
    assert played.turns[0].text == "No, it should not."
    assert [(each.seat, each.what) for each in played.degraded] == [("proposer", "echo_removed")]


async def test_a_large_model_may_repeat_the_question() -> None:
    said = f"{QUESTION} No, it should not."
    played = await play(full_cast(proposer=said), QUESTION, min_rounds=1, max_rounds=1)
    assert (played.turns[0].text, played.degraded) == (said, [])
