"""Replies to objections, read from an answer."""

import pytest

from contend.models.replies.point_replies import find_replies

REVISED = "\n\n## Revised answer\nS1 stays out of this."


@pytest.mark.parametrize(
    "said",
    [
        "S1: Accepted.",
        "- **S1** Accepted.",
        "1. **S1 (critical):** Accepted.",
        "### S1\nAccepted.",
        "**S1.** Accepted.",
        "Objection S1: Accepted.",
        "🔴 S1 – Accepted.",
        "[S1] Accepted.",
        "> S1: Accepted.",
        "**S1:** Accepted.\n\n**S2:** Refused.",
        "We take S2 first.\n\nS1: Accepted.",
    ],
)
def test_a_paragraph_starting_with_an_id_is_a_reply_to_it(said: str) -> None:
    for text in (said, f"## Replies\n{said}{REVISED}"):
        assert find_replies(text, ["S1"]) == {"S1": "Accepted."}


def test_a_reply_may_have_several_paragraphs_and_several_ids() -> None:
    text = "S1 and S3: Accepted.\n\nWith numbers.\n\nS2: No.\n## Other\nWords."
    replies = find_replies(text, ["S1", "S2", "S3"])
    assert replies == {"S1": "Accepted.\n\nWith numbers.", "S2": "No.", "S3": replies["S1"]}


def test_a_mention_counts_only_before_the_revised_answer() -> None:
    mention = "I accept what S1 says."
    assert find_replies(f"{mention}{REVISED}", ["S1"]) == {"S1": mention}
    assert find_replies(mention, ["S1"]) == {}
    assert find_replies(f"Nothing.{REVISED}", ["S1"]) == {}


def test_ignores_ids_in_code_and_unknown_ids() -> None:
    assert find_replies("```\nS1: Accepted.\n```\nS9: Who?", ["S1"]) == {}
