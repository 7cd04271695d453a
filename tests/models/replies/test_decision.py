"""The judge's decision counts only on a line of its own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contend.models.replies.decision import (
    DecisionBlock,
    decision_from_block,
    decision_from_report,
    decision_from_text,
)


@pytest.mark.parametrize(
    ("speech", "decided"),
    [
        ("STOP - there is no need to CONTINUE", "stop"),
        ("STOP", "stop"),
        ("**STOP**\nIt is all said.", "stop"),
        ("# Decision: STOP", "stop"),
        ("My decision: **CONTINUE**.", "continue"),
        ("CONTINUE - one objection stands.", "continue"),
        ("Continue.\nOne objection stands.", "continue"),
        ("stop: enough", "stop"),
        ("STOP\nThey would only CONTINUE to repeat themselves.", "stop"),
        ("STOP - I see no reason to\nCONTINUE this debate.", "stop"),
        ("STOP\n\nCONTINUE would be a waste.", "stop"),
        ("> STOP\nCONTINUE", "continue"),
        ("Decision:\nSTOP", "stop"),
        ("I have read it all.\n\nSTOP", "stop"),
        ("Both sides repeat themselves and should not\nCONTINUE. Hence:\n\nSTOP", "stop"),
        ("> CONTINUE\n\nSo Ann asks. But:\n\nSTOP", "stop"),
        ("```\nCONTINUE\n```\n\nSTOP", "stop"),
        # Nobody can tell what these decide.
        ("", None),
        ("Stop words are filtered out.", None),
        ("Continue with the second point", None),
        ("I would let them CONTINUE or STOP.", None),
        ("Well.\n\nCONTINUE\n\nOn second thought:\n\nSTOP", None),
        ("STOPPING here would be wrong", None),
        ("STOP would be premature: Ben has not answered. CONTINUE.", None),
        ("STOP? Not yet", None),
        ("STOP or CONTINUE: I say continue.", None),
        ("Decision: STOP is wrong", None),
        ("CONTINUE is pointless now: STOP.", None),
        ("STOP. CONTINUE.", None),
        ("B ended with this:\nSTOP\nThat is no reason to end.", None),
        ("> STOP", None),
    ],
)
def test_reads_the_decision_from_its_own_line(speech: str, decided: str | None) -> None:
    read = decision_from_text(speech)
    assert (read.decision if read else None) == decided


@pytest.mark.parametrize(
    ("speech", "reported", "decided"),
    [
        ("They should go on, so continue.", "continue", "continue"),
        ("I would stop here, I think.", "stop", "stop"),
        ("They repeat themselves.", "stop", None),
        ("Much is open.", "continue", None),
    ],
)
def test_extraction_cannot_decide_what_the_judge_did_not_say(
    speech: str, reported: str, decided: str | None
) -> None:
    report = DecisionBlock.model_validate({"decision": reported})
    read = decision_from_report(report, speech)
    assert (read.decision if read else None) == decided


def test_null_reasoning_falls_back_to_the_speech() -> None:
    block = DecisionBlock.model_validate({"decision": "stop", "reasoning": None})
    assert decision_from_block(block, "All is said.").reasoning == "All is said."


def test_decision_in_a_block_may_be_in_any_case() -> None:
    assert DecisionBlock.model_validate({"decision": " STOP "}).decision == "stop"


@given(st.text(alphabet="abc STOPCNIUE\n.,>`", max_size=80))
def test_quoted_decisions_are_ignored(noise: str) -> None:
    quoted = "\n".join(f"> {line}" for line in noise.splitlines())
    assert decision_from_text(quoted) is None


@pytest.mark.parametrize(
    ("speech", "why"),
    [
        ("STOP - there is no need to CONTINUE", "there is no need to CONTINUE"),
        ("**STOP**\nIt is all said.", "It is all said."),
        ("Hm.\n\nDecision: CONTINUE.\nMuch is open.\n\nCONTINUE", "Much is open.\n\nCONTINUE"),
        ("STOP", "STOP"),
    ],
)  # fmt: skip
def test_reasoning_is_the_text_after_the_decision(speech: str, why: str) -> None:
    read = decision_from_text(speech)
    assert read is not None
    assert read.reasoning == why
