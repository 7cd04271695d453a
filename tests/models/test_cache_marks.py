"""Cache marks sent to providers that cache on request."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage, SystemMessage

from contend.graph.settings import DebateSettings
from contend.graph.values import Usage
from contend.models.answers import _cache_writes
from contend.models.cache_marks import STABLE, with_cache_marks
from contend.models.prices import priced
from contend.models.providers.registry import ModelSpec, _registered, parse_spec, provider_of
from tests.support.floor import TOPIC, floor_cast, moderated_settings
from tests.support.scripted import (
    Cast,
    Sent,
    forum_cast,
    forum_settings,
    full_cast,
    play,
    refine_settings,
    refining_cast,
    scripted_settings,
)

HISTORY = (
    "## The debate so far\n<proposer 0a1b2c>\nYes.\n</proposer 0a1b2c>\n\n"
    "**Skeptic:**\n<skeptic 0a1b2c>\nNo.\n</skeptic 0a1b2c>"
)
MARK = {"cache_control": {"type": "ephemeral"}}


def _marked(text: str, stable: int) -> Any:
    message = HumanMessage(text, additional_kwargs={STABLE: stable})
    return with_cache_marks([message])[0].content


def test_the_system_prompt_is_marked_if_the_seat_is_asked_again() -> None:
    asked = HumanMessage("Rate this answer.", additional_kwargs={STABLE: 0})
    system, human = with_cache_marks([SystemMessage("You are the judge."), asked])
    assert system.content == [{"type": "text", "text": "You are the judge.", **MARK}]
    assert human.content == "Rate this answer."


def test_a_prompt_that_nobody_repeats_is_not_marked() -> None:
    prompt = [SystemMessage("You are the Synthesizer."), HumanMessage(HISTORY)]
    assert with_cache_marks(prompt) == prompt


def test_no_block_is_empty() -> None:
    """Anthropic refuses empty blocks; a user's own prompt may end with the history."""
    for text in (HISTORY, f"{HISTORY}\n\n"):
        assert [block["text"] for block in _marked(text, len(HISTORY))][-1].startswith("**Skeptic")


def test_each_speech_is_a_block_and_the_last_repeated_one_is_marked() -> None:
    blocks = _marked(f"{HISTORY}\n\n## Your task\nAnswer.", len(HISTORY))
    assert ["cache_control" in block for block in blocks] == [False, True, False]
    assert "".join(block["text"] for block in blocks) == f"{HISTORY}\n\n## Your task\nAnswer."


def test_a_longer_history_begins_with_the_same_blocks() -> None:
    """Providers match cached prefixes only at block boundaries."""
    longer = f"{HISTORY}\n\n**Proposer:**\n<proposer 0a1b2c>\nYes!\n</proposer 0a1b2c>"
    before, after = (_marked(f"{text}\n\nGo.", len(text)) for text in (HISTORY, longer))
    assert [each["text"] for each in before[:2]] == [each["text"] for each in after[:2]]


@pytest.fixture
def caching(monkeypatch: pytest.MonkeyPatch) -> None:
    marked = replace(provider_of(ModelSpec("scripted", "x")), caches_marked_parts=True)
    monkeypatch.setitem(_registered, "scripted", marked)


async def test_other_providers_get_no_cache_marks() -> None:
    played = await play(full_cast(), max_rounds=3)
    assert not any(_marked_beginnings(sent) for sent in played.cast.sent)


@pytest.mark.usefixtures("caching")
@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
async def test_a_debate_marks_prompts_that_a_seat_gets_again(rounds: int) -> None:
    played = await play(full_cast(), "Why?", min_rounds=rounds, max_rounds=rounds)
    for seat in ("proposer", "skeptic"):
        marked = [_marked_beginnings(sent) for sent in played.cast.sent_to(seat)]
        assert marked.count([]) == (rounds == 1)
        # From round 3 on, the call before has marked the history, and the last call marks no more.
        histories = [each[-1] for each in marked[1:]]
        assert len({*histories}) == max(0, rounds - 1) - (rounds > 2)
    for seat in ("synthesizer", "judge"):
        assert not any(_marked_beginnings(sent) for sent in played.cast.sent_to(seat))
    _check_marks_are_used(played.cast)


@pytest.mark.usefixtures("caching")
@pytest.mark.parametrize("rounds", [1, 2, 4])
@pytest.mark.parametrize("mode", ["external_judge", "self_convergence", "display_only"])
async def test_every_cache_mark_in_a_forum_is_used(mode: str, rounds: int) -> None:
    settings = forum_settings(max_rounds=rounds, judge_mode=mode)
    _check_marks_are_used((await play(forum_cast(), "Why?", settings=settings)).cast)


@pytest.mark.usefixtures("caching")
@pytest.mark.parametrize(
    "prompt", ["Round {round}: {question} {history}", "{question}\n\n{history}\n\nSpeak."]
)
async def test_every_cache_mark_in_a_custom_prompt_is_used(prompt: str) -> None:
    custom: dict[str, Any] = {
        "debate_format": "custom",
        "custom_format_prompt": prompt,
        "max_rounds": 4,
    }
    settings = forum_settings(judge_mode="display_only", **custom)
    _check_marks_are_used((await play(forum_cast(), "Why?", settings=settings)).cast)


@pytest.mark.usefixtures("caching")
async def test_seats_with_one_model_share_no_mark_if_their_custom_prompts_have_personas() -> None:
    settings = forum_settings(
        judge_mode="display_only",
        debate_format="custom",
        custom_format_prompt="{question}\n\n{history}\n\nSpeak.",
        max_rounds=2,
    )
    personas = [
        each.model_copy(update={"system_prompt": f"You are {each.name}."})
        for each in settings.seats
    ]
    settings = settings.model_copy(update={"seats": personas})
    cast = forum_cast()
    alone = Cast(one=lambda sent: cast.say(replace(sent, model=_persona(sent))))
    seats = {seat.id: "scripted:one" for seat in settings.build_seats()}
    played = await play(alone, "Why?", settings=settings.with_models(seats))
    _check_marks_are_used(played.cast)


def _persona(sent: Sent) -> str:
    found = re.search(r"You are (Ann|Ben|Cyd)\.", sent.system)
    return found[1].lower() if found else "ann"


@pytest.mark.usefixtures("caching")
async def test_the_last_speaker_reads_what_was_cached_for_the_one_before() -> None:
    settings = forum_settings(max_rounds=2, judge_mode="external_judge")
    debaters = {each.id: "scripted:one" for each in settings.build_seats() if each.id != "judge"}
    cast = forum_cast()
    shared = Cast(one=lambda sent: cast.say(replace(sent, model=_speaker(sent))), judge=cast.say)
    played = await play(shared, "Why?", settings=settings.with_models(debaters))
    *_, before, last = played.cast.sent_to("one")
    assert _marked_beginnings(before)[-1] == _marked_beginnings(last)[-1]


@pytest.mark.usefixtures("caching")
async def test_every_cache_mark_in_refine_is_used() -> None:
    played = await play(refining_cast(), "Why?", settings=refine_settings())
    _check_marks_are_used(played.cast)


@pytest.mark.usefixtures("caching")
@pytest.mark.parametrize("rounds", [0, 1, 3])
async def test_a_moderated_debate_marks_nothing_in_vain(rounds: int) -> None:
    settings = moderated_settings(round_count=rounds)
    _check_marks_are_used((await play(floor_cast(), TOPIC, settings=settings)).cast)


_ALONE: dict[str, tuple[Cast, DebateSettings]] = {
    "adversarial": (full_cast(), scripted_settings(min_rounds=3, max_rounds=3)),
    "forum": (forum_cast(), forum_settings(max_rounds=3, judge_mode="external_judge")),
    "refine": (refining_cast(), refine_settings()),
    "moderated": (floor_cast(), moderated_settings(round_count=1)),
}


@pytest.mark.usefixtures("caching")
@pytest.mark.parametrize("protocol", sorted(_ALONE))
async def test_seats_with_one_model_mark_what_any_of_them_is_sent_next(protocol: str) -> None:
    cast, settings = _ALONE[protocol]
    seats = {seat.id: "scripted:one" for seat in settings.build_seats()}
    alone = Cast(one=lambda sent: cast.say(replace(sent, model=_speaker(sent))))
    played = await play(alone, TOPIC, settings=settings.with_models(seats))
    _check_marks_are_used(played.cast)
    shown = [sent for sent in played.cast.sent if "</" in sent.user.partition("\n\n## ")[2]]
    unmarked = [sent for sent in shown if not _marked_beginnings(sent)[1:]]
    # Only prompts that show no debate have no mark after the system message.
    assert all(re.search(r"\b(?:Rate|rate|Score) ", sent.user) for sent in unmarked)


def _speaker(sent: Sent) -> str:
    named = re.search(r"You are (Ann|Ben|Cyd)\b", sent.user)
    role = re.match(r"You are (?:the |one of )(?:scoring )?(\w+)", sent.instructions)
    found = named or role
    assert found
    return {"several": "ann"}.get(found[1], found[1].lower())


def _check_marks_are_used(cast: Cast) -> None:
    """Check that what a call writes to the cache is in a later prompt to the same model."""
    calls = [(sent.model, _beginnings(sent), _marked_beginnings(sent)) for sent in cast.sent]
    for number, (model, _, marked) in enumerate(calls):
        before = [each for who, _, every in calls[:number] if who == model for each in every]
        later = [each for who, every, _ in calls[number + 1 :] if who == model for each in every]
        assert {*marked} <= {*before, *later}


def _beginnings(sent: Sent) -> list[str]:
    """Return the prefixes of a prompt that end at a block boundary."""
    return [json.dumps(_texts(sent)[: end + 1]) for end in range(len(_texts(sent)))]


def _marked_beginnings(sent: Sent) -> list[str]:
    blocks = [block for each in sent.messages for block in _blocks(each)]
    ends = zip(blocks, _beginnings(sent), strict=True)
    return [beginning for block, beginning in ends if "cache_control" in block]


def _texts(sent: Sent) -> list[str]:
    return [block["text"] for each in sent.messages for block in _blocks(each)]


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    content: Any = message.content
    return content if isinstance(content, list) else [{"text": content}]


def test_cache_writes_cost_more() -> None:
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
def test_reads_cache_writes_from_the_usage(details: Any) -> None:
    counted: Any = {"input_tokens": 1000, "output_tokens": 1, "total_tokens": 1001}
    chunk = AIMessageChunk(content="", usage_metadata={**counted, "input_token_details": details})
    assert _cache_writes(chunk) == 800
