"""What clients may write into a thread, and from where."""

from typing import Any, cast

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Overwrite, StateUpdate

from contend.graph.errors import BadInput
from contend.graph.settings import AdversarialSettings
from contend.graph.values import Degradation
from tests.support.scripted import BUILDERS, THREAD, full_cast, play

CONFIG: Any = {"configurable": {"thread_id": THREAD}}


@pytest.fixture
async def graph() -> Any:
    saver = InMemorySaver()
    await play(full_cast(), saver=saver, pause="each_round", max_rounds=4)
    return BUILDERS["adversarial"].compile(checkpointer=saver)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"bogus": 1}, "A debate has no field bogus"),
        ({"protocol": "forum"}, "protocol of a debate cannot be changed"),
        ({"protocol": "bogus"}, "protocol of a debate cannot be changed"),
        ({"settings": {"max_rounds": "many"}}, r"settings\.max_rounds is not well-formed"),
        ({"settings": {"max_round": 3}}, "A debate has no setting max_round"),
        ({"settings": {"min_rounds": 5}}, r"settings is not well-formed: .*min_rounds"),
        ({"settings": "none"}, "settings is not well-formed"),
    ],
)
async def test_an_edit_that_does_not_fit_is_refused(graph: Any, edit: Any, says: str) -> None:
    before = await graph.aget_state(CONFIG)
    with pytest.raises(BadInput, match=says):
        await graph.aupdate_state(CONFIG, edit, as_node="critique")
    with pytest.raises(BadInput, match=says):
        await graph.ainvoke(Command(update=edit, resume=""), CONFIG)
    assert await graph.aget_state(CONFIG) == before


async def test_edited_settings_are_merged_into_those_of_the_thread(graph: Any) -> None:
    before = (await graph.aget_state(CONFIG)).values["settings"]
    await graph.aupdate_state(CONFIG, {"settings": {"max_rounds": 5}}, as_node="critique")
    after = (await graph.aget_state(CONFIG)).values["settings"]
    assert after == before | {"max_rounds": 5}


async def test_an_unknown_checkpoint_does_not_become_the_newest_one(graph: Any) -> None:
    before = await graph.aget_state(CONFIG)
    unknown: Any = {"configurable": {"thread_id": THREAD, "checkpoint_id": "nope"}}
    with pytest.raises(BadInput, match="The thread has no checkpoint nope"):
        await graph.aupdate_state(unknown, {"finish": True}, as_node="critique")
    inputs: list[Any] = [{"question": "And now?"}, None, Command(resume="")]
    for given in inputs:
        with pytest.raises(BadInput, match="The thread has no checkpoint nope"):
            await graph.ainvoke(given, unknown, context=AdversarialSettings())
    assert await graph.aget_state(CONFIG) == before


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (None, "no debate to continue here"),
        (Command(resume=[]), "The question is empty"),
        (Command(resume="", goto=cast("Any", None)), "The question is empty"),
    ],
)
async def test_a_thread_without_a_debate_cannot_continue(given: Any, says: str) -> None:
    graph: Any = BUILDERS["adversarial"].compile(checkpointer=InMemorySaver())
    with pytest.raises(BadInput, match=says):
        await graph.ainvoke(given, CONFIG)


@pytest.mark.parametrize("given", ["Why?", ["Why?"], 7])
async def test_an_input_is_an_object(given: Any) -> None:
    graph: Any = BUILDERS["adversarial"].compile(checkpointer=InMemorySaver())
    with pytest.raises(BadInput, match="The input must be an object"):
        await graph.ainvoke(given, CONFIG)


async def test_edits_made_together_are_merged_in_order(graph: Any) -> None:
    before = (await graph.aget_state(CONFIG)).values["settings"]
    edits: list[dict[str, Any]] = [
        {"settings": {"pause": "never"}},
        {"settings": {"max_rounds": 5}},
    ]
    steps = [[StateUpdate(edit, "critique")] for edit in edits]
    await graph.abulk_update_state(CONFIG, steps)
    after = (await graph.aget_state(CONFIG)).values["settings"]
    assert after == before | {"pause": "never", "max_rounds": 5}


async def test_a_command_keeps_every_update_of_a_channel(graph: Any) -> None:
    problems = [Degradation(round=1, what=what, why="Why.") for what in ("one", "two")]
    update: Any = [("degraded", [each]) for each in problems]
    checked = await graph._checked_input(Command(update=update, resume=""), CONFIG)
    assert checked.update == update


async def test_an_overwrite_of_settings_is_checked_too(graph: Any) -> None:
    edit = {"settings": Overwrite({"bogus": 1})}
    with pytest.raises(BadInput, match="A debate has no setting bogus"):
        await graph.aupdate_state(CONFIG, edit, as_node="critique")
