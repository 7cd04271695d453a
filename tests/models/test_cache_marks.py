"""What a provider that caches on request is sent."""

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage

from contend.graph.values import Usage
from contend.models.answers import _cache_writes
from contend.models.cache_marks import STABLE, with_cache_marks
from contend.models.prices import priced
from contend.models.providers.registry import ModelSpec, _registered, parse_spec, provider_of
from tests.support.scripted import Sent, critique, full_cast, play

HISTORY = (
    "## The debate so far\n<proposer 0a1b2c>\nYes.\n</proposer 0a1b2c>\n\n"
    "**Skeptic:**\n<skeptic 0a1b2c>\nNo.\n</skeptic 0a1b2c>"
)
MARK = {"cache_control": {"type": "ephemeral"}}


def _marked(text: str, stable: int) -> Any:
    message = HumanMessage(text, additional_kwargs={STABLE: stable})
    return with_cache_marks([message])[0].content


def test_the_system_prompt_is_marked() -> None:
    (system,) = with_cache_marks([SystemMessage("You are the judge.")])
    assert system.content == [{"type": "text", "text": "You are the judge.", **MARK}]


def test_the_last_repeated_speech_is_marked_and_every_speech_is_a_block() -> None:
    blocks = _marked(f"{HISTORY}\n\n## Your task\nAnswer.", len(HISTORY))
    assert ["cache_control" in block for block in blocks] == [False, True, False]
    assert "".join(block["text"] for block in blocks) == f"{HISTORY}\n\n## Your task\nAnswer."


def test_a_longer_history_begins_with_the_same_blocks() -> None:
    """The provider finds what it has cached only where a block ended before."""
    longer = f"{HISTORY}\n\n**Proposer:**\n<proposer 0a1b2c>\nYes!\n</proposer 0a1b2c>"
    before, after = (_marked(f"{text}\n\nGo.", len(text) + 2) for text in (HISTORY, longer))
    assert [each["text"] for each in before[:2]] == [each["text"] for each in after[:2]]


def test_what_is_not_repeated_is_not_marked() -> None:
    assert _marked("Rate this answer.", 0) == "Rate this answer."


async def test_a_debate_sends_marks_to_a_provider_that_needs_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cast = full_cast(skeptic=critique("Why?"))
    plain = await play(cast, "Why?", min_rounds=1, max_rounds=2)
    marked = replace(provider_of(ModelSpec("scripted", "x")), caches_marked_parts=True)
    monkeypatch.setitem(_registered, "scripted", marked)
    again = await play(full_cast(skeptic=critique("Why?")), "Why?", min_rounds=1, max_rounds=2)
    assert not any(_marks(sent) for sent in plain.cast.sent)
    assert [_marks(sent) for sent in again.cast.sent_to("skeptic")] == [2, 2]
    _, human = again.cast.sent_to("skeptic")[1].messages
    text = [block for block in human.content if isinstance(block, dict)]
    assert [block["text"][:12] for block in text if MARK.items() <= block.items()] == [
        "### Round 2\n"
    ]


def _marks(sent: Sent) -> int:
    blocks = [
        block for each in sent.messages if isinstance(each.content, list) for block in each.content
    ]
    return sum("cache_control" in block for block in blocks)


def test_what_is_written_to_the_cache_costs_more() -> None:
    spec, usage = (
        parse_spec("anthropic:claude-haiku-4-5"),
        Usage(input_tokens=1000, output_tokens=0),
    )
    costs = [priced(usage, spec, {}, tokens).cost_usd for tokens in (0, 800)]
    assert costs == pytest.approx([0.001, 0.0012])


@pytest.mark.parametrize(
    "details",
    [{"cache_creation": 800}, {"cache_creation": 0, "ephemeral_5m_input_tokens": 800}],
)
def test_writes_are_read_from_the_usage(details: Any) -> None:
    counted: Any = {"input_tokens": 1000, "output_tokens": 1, "total_tokens": 1001}
    chunk = AIMessageChunk(content="", usage_metadata={**counted, "input_token_details": details})
    assert _cache_writes(chunk) == 800
