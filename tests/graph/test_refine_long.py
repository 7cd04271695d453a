"""Answers too long for the context window are shortened, and this is reported."""

from tests.graph.test_refine import refined
from tests.support.scripted import Sent, refining_cast


def paragraphs(letter: str, count: int) -> list[str]:
    return [f"{letter}{n} " + f"{letter} says more in paragraph {n}. " * 6 for n in range(count)]


def shown(sent: Sent, letter: str, count: int) -> list[int]:
    """Return the paragraphs of an answer in a prompt; check that none is partial."""
    whole = [n for n, each in enumerate(paragraphs(letter, count)) if each.strip() in sent.user]
    mentioned = [n for n in range(count) if f"{letter}{n} " in sent.user]
    assert mentioned == whole
    return whole


async def test_prompts_show_equal_shares_of_the_last_paragraphs() -> None:
    texts = {name: "\n\n".join(paragraphs(name[0], 12)) for name in ("ann", "ben", "cyd")}
    cast = refining_cast(**texts)
    played = await refined(cast, max_debate_rounds=1, context_tokens=3000)
    feedback, merge, _ = cast.sent_to("judge")
    for sent in (feedback, merge):
        kept = [shown(sent, letter, 12) for letter in "abc"]
        assert all(numbers == list(range(12))[-len(numbers) :] for numbers in kept)
        assert len({len(numbers) for numbers in kept}) == 1
        left_out = 12 - len(kept[0])
        assert 0 < left_out < 12
        assert sent.user.count(f"(The first {left_out} of its 12 paragraphs are left out") == 3
    again = cast.sent_to("ann")[1]
    assert len(shown(again, "a", 12)) == 12  # one's own answer is never shortened
    assert len(shown(again, "b", 12)) == len(shown(again, "c", 12)) < 12
    entries = [d for d in played.degraded if d.what == "history_shortened"]
    assert {entry.seat for entry in entries} == {"judge", "ann", "ben", "cyd"}
    judges = next(entry for entry in entries if entry.seat == "judge")
    assert judges.why == "the beginnings of these did not fit: Answer A, Answer B, Answer C"
    assert not [d for d in played.degraded if d.what == "prompt_too_long"]


async def test_a_short_answer_leaves_its_share_to_the_others() -> None:
    cast = refining_cast(ann="\n\n".join(paragraphs("a", 12)), ben="Yes.", cyd="No.")
    played = await refined(cast, enable_debate=False, context_tokens=3000)
    (merge, _) = cast.sent_to("judge")
    assert len(shown(merge, "a", 12)) == 12
    assert "left out" not in merge.user
    assert played.degraded == []
