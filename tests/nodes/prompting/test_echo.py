import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from contend.graph.phases import PhaseName
from contend.graph.state import DebateState
from contend.nodes.prompting.echo import without_echo
from tests.support.states import turn

QUESTION = "Should a web shop with 200 orders a day use PostgreSQL or MongoDB?"
SAID = "PostgreSQL keeps orders consistent without further code."
PROMPT = f"Earlier answer: {SAID}\n\nNow: {QUESTION}\n\nBegin with the answer in one sentence."
MESSAGES = [
    SystemMessage("You are an editor. You write one clear final answer."),
    HumanMessage(PROMPT),
]
STATE: DebateState = {"question": QUESTION, "turns": [turn("propose", text=SAID)]}


@pytest.mark.parametrize(
    "echo",
    [
        QUESTION,
        "Should a web shop with 200 orders a day use MongoDB or PostgreSQL?",
        "Begin with the answer in one sentence.",
        "you write one clear final answer!",
    ],
)
def test_sentences_of_the_prompt_are_removed(echo: str) -> None:
    text = f"{echo} Use PostgreSQL.\n\n{echo}\n\nIt is enough."
    assert without_echo(text, MESSAGES, STATE, "propose") == ("Use PostgreSQL.\n\nIt is enough.", 2)


@pytest.mark.parametrize(
    "text",
    [
        SAID,
        "Yes, a web shop with 200 orders a day should use PostgreSQL or MongoDB.",
        "A web shop with 200 orders a day should use PostgreSQL, because its orders must agree.",
        "- one\n- two\n\nThree. Four.",
        "",
        "Use it.",
    ],
)
def test_keeps_the_speakers_own_sentences(text: str) -> None:
    assert without_echo(text, MESSAGES, STATE, "propose") == (text, 0)


def test_keeps_a_reply_that_only_repeats_the_prompt() -> None:
    assert without_echo(QUESTION, MESSAGES, STATE, "propose") == (QUESTION, 0)


REVIEWS = [
    "The answer does not say what MongoDB would cost.",
    "However, the answer is somewhat flawed in several ways.",
    "Without this information, the answer is incomplete.",
    "The weakest claim is that it is free.",
]
CRITIQUE = turn("critique", text=" ".join([*REVIEWS, "Moving data is dear."]))
REVIEWED: DebateState = {**STATE, "turns": [CRITIQUE]}


@pytest.mark.parametrize("review", REVIEWS)
@pytest.mark.parametrize("phase", ["propose", "synthesize"])
def test_removes_review_sentences_from_an_answer(phase: PhaseName, review: str) -> None:
    said = f"Use PostgreSQL. {review} Moving data is dear."
    kept = "Use PostgreSQL. Moving data is dear."
    assert without_echo(said, MESSAGES, REVIEWED, phase) == (kept, 1)
    assert without_echo(review, MESSAGES, REVIEWED, "critique") == (review, 0)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is five cents.",
        "Yes. The answer does not depend on the base you write it in.",
        "The critic Roger Ebert gave it four stars.",
        "Ann's answer ignores cost. The second answer fails to price migration.",
    ],
)
def test_keeps_sentences_about_answers(text: str) -> None:
    assert without_echo(text, MESSAGES, REVIEWED, "synthesize") == (text, 0)


def test_a_list_stays_a_list() -> None:
    said = f"- Buy it.\n- {REVIEWS[0]}\n- Test it."
    assert without_echo(said, MESSAGES, REVIEWED, "propose") == ("- Buy it.\n- Test it.", 1)
