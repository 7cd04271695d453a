"""A resumed thread keeps its settings unless new ones are given."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import Field

from contend.graph.errors import BadInput
from contend.graph.settings import AdversarialSettings
from tests.support.scripted import (
    BUILDERS,
    ROLES,
    THREAD,
    as_state,
    full_cast,
    play,
    refine_settings,
    refining_cast,
    scripted_settings,
)

CONFIG: Any = {"configurable": {"thread_id": THREAD}}
NOTHING = AdversarialSettings()


async def go_on(saver: InMemorySaver, context: Any, graph: str = "adversarial") -> Any:
    compiled = BUILDERS[graph].compile(checkpointer=saver)
    with full_cast().on_stage():
        await compiled.ainvoke(Command(resume=""), CONFIG, context=context)
    return as_state((await compiled.aget_state(CONFIG)).values)


async def test_the_settings_are_stored_with_the_models_that_were_chosen() -> None:
    played = await play(full_cast(), max_rounds=4)
    assert played.state["protocol"] == "adversarial"
    stored = played.state["settings"]
    assert stored == scripted_settings(max_rounds=4).model_dump(mode="json")
    assert AdversarialSettings.model_validate(stored).max_rounds == 4


@pytest.mark.parametrize("context", [None, NOTHING, {}])
async def test_a_resumed_thread_keeps_its_settings(context: Any) -> None:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round", min_rounds=2, max_rounds=2)
    await go_on(saver, context)
    state = await go_on(saver, context)
    assert state["stop"].reason == "max_rounds"
    assert state["round"] == 2


async def test_a_given_setting_replaces_the_stored_one_and_updates_its_seat() -> None:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round")
    context = {"proposer_model": "scripted:synthesizer", "max_rounds": 4}
    state = await go_on(saver, context)
    assert state["settings"]["max_rounds"] == 4
    assert state["seats"][0].model == state["turns"][2].model == "scripted:synthesizer"
    assert state["seats"][0].temperature == 0.7
    assert [seat.model for seat in state["seats"][1:]] == [
        *("scripted:skeptic", "scripted:synthesizer", "scripted:judge")
    ]


async def test_stores_a_changed_model_with_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    async def accept(*_: Any, **__: Any) -> None:
        """Ollama is not running in this test."""

    monkeypatch.setattr("contend.nodes.own_settings.preflight", accept)
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round")
    context = {"judge_model": "qwen3:8b", "judge_fallbacks": ["qwen3:4b"]}
    (judge,) = [each for each in (await go_on(saver, context))["seats"] if each.id == "judge"]
    assert (judge.model, judge.fallback_models) == ("ollama:qwen3:8b", ("ollama:qwen3:4b",))


async def test_a_changed_setting_is_reported_once() -> None:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round")
    played = await play(
        full_cast(), Command(resume=""), saver=saver, settings=AdversarialSettings(max_rounds=4)
    )
    (event,) = played.named("settings_changed")
    assert event["metadata"]["changes"] == {"max_rounds": [5, 4]}
    assert event["content"] == "max_rounds: 4 instead of 5"


async def test_the_same_settings_change_nothing() -> None:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round")
    same = scripted_settings(pause="each_round")
    played = await play(full_cast(), Command(resume=""), saver=saver, settings=same)
    assert played.named("settings_changed") == []


@pytest.mark.parametrize(
    ("context", "says"),
    [
        (AdversarialSettings(proposer_model="opnai:x"), "Did you mean 'openai:x'"),
        (AdversarialSettings(min_rounds=4), r"min_rounds \(4\) is larger than max_rounds \(3\)"),
    ],
)
async def test_settings_that_do_not_fit_are_refused(
    context: AdversarialSettings, says: str
) -> None:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round", max_rounds=3)
    with pytest.raises(BadInput, match=says):
        await go_on(saver, context)


class _TightSettings(AdversarialSettings):
    """The settings of a later release, with a lower limit."""

    max_rounds: int = Field(3, ge=1, le=3)


async def test_names_a_stored_setting_that_exceeds_a_limit() -> None:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round", max_rounds=5)
    refused = r"cannot use the thread's setting max_rounds \(5\): Input should be less than .* 3"
    with pytest.raises(BadInput, match=refused):
        await go_on(saver, _TightSettings(pause="never"))
    state = await go_on(saver, _TightSettings(max_rounds=3, pause="never"))
    assert state["settings"]["max_rounds"] == 3


@pytest.mark.parametrize("changed", ["context", "model"])
async def test_a_limit_on_cost_without_a_price_is_refused(
    changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contend.nodes.own_settings.preflight", _refuse_to_check)
    saver = InMemorySaver()
    prices = {f"scripted:{role}": (1, 1) for role in ROLES}
    limits: dict[str, Any] = {"max_cost": 1, "prices": prices}
    await play(full_cast(), saver=saver, pause="each_round", **limits if changed == "model" else {})
    context: Any = {"max_cost": 1} if changed == "context" else {"judge_model": "openai:unlisted"}
    with pytest.raises(BadInput, match="so max_cost cannot be kept"):
        await go_on(saver, context)


async def _refuse_to_check(*_: Any, **__: Any) -> None:
    raise AssertionError("The budget is checked first, because that needs no server.")


async def test_seats_cannot_be_added() -> None:
    saver, settings = InMemorySaver(), refine_settings(pause="each_round")
    await play(refining_cast(), saver=saver, settings=settings)
    more = refine_settings(["Ann", "Ben"], pause="each_round")
    with pytest.raises(BadInput, match="cannot add or remove seats"):
        await go_on(saver, more, "refine")


async def test_a_thread_of_another_protocol_is_refused() -> None:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round")
    with pytest.raises(BadInput, match="a debate of the protocol adversarial"):
        await go_on(saver, refine_settings(), "refine")


async def test_the_settings_are_stored_once() -> None:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver)
    kept = [each.checkpoint["channel_values"] async for each in saver.alist(CONFIG)]
    assert len(kept) > 10
    assert not any("settings" in values for values in kept)
