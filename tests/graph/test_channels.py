"""Typed channels convert a client's JSON to our types and refuse wrong shapes."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.errors import InvalidUpdateError
from langgraph.types import Overwrite

from contend.graph.adversarial import builder
from contend.graph.channels import CheckedDelta, CheckedList, CheckedValue, merge_turns
from contend.graph.errors import BadInput
from contend.graph.state import DebateState, Turn
from contend.graph.values import Degradation
from tests.support.states import rounds, stopped, turn

CHANNELS: dict[str, Any] = builder.compile().channels


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value.model_dump(mode="json")))


def test_every_field_of_the_state_is_checked() -> None:
    names = DebateState.__annotations__
    kinds = (CheckedValue, CheckedList, CheckedDelta)
    assert [name for name in names if not isinstance(CHANNELS[name], kinds)] == []


@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.text(max_size=2)), max_size=3)))
def test_merging_turns_does_not_depend_on_batching(
    batches: list[list[tuple[int, str]]],
) -> None:
    writes = [[turn("propose", number, text) for number, text in each] for each in batches]
    at_once = merge_turns([], writes)
    one_by_one: list[Turn] = []
    for write in writes:
        one_by_one = merge_turns(one_by_one, [write])
    assert at_once == one_by_one
    assert len({each.id for each in at_once}) == len(at_once)


def test_turn_with_a_known_id_replaces_the_old_one_in_place() -> None:
    before = rounds(2)
    edited = before[1].model_copy(update={"text": "Edited."})
    assert merge_turns(before, [[edited]]) == [before[0], edited, *before[2:]]


def test_turns_enter_as_json() -> None:
    channel = CHANNELS["turns"].from_checkpoint([])
    channel.update([[plain(each) for each in rounds(1)]])
    assert channel.get() == rounds(1)


def test_overwriting_turns_are_accepted_as_json() -> None:
    written = {"__overwrite__": [plain(rounds(1)[0])]}
    channel = CHANNELS["turns"].from_checkpoint(rounds(2))
    channel.update([written])
    assert channel.get() == rounds(1)[:1]
    replayed = CHANNELS["turns"].from_checkpoint(rounds(2))
    replayed.replay_writes([("task", "turns", written)])
    assert replayed.get() == rounds(1)[:1]


def test_list_items_are_accepted_as_json() -> None:
    channel = CHANNELS["degraded"].from_checkpoint([Degradation(what="a", why="b")])
    channel.update([[{"what": "c", "why": "d"}]])
    assert channel.get() == [Degradation(what="a", why="b"), Degradation(what="c", why="d")]
    channel.update([Overwrite(None)])
    assert channel.get() == []


@pytest.mark.parametrize("empty", [Overwrite({}), Overwrite(None), {"__overwrite__": {}}])
def test_settings_can_be_overwritten_with_nothing(empty: Any) -> None:
    channel = CHANNELS["settings"].from_checkpoint({"max_rounds": 3})
    channel.update([empty])
    assert channel.get() == {}


def test_values_stored_as_plain_data_are_restored() -> None:
    channel = CHANNELS["stop"].from_checkpoint(plain(stopped()))
    assert channel.get() == stopped()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("turns", [{"id": "x"}], r"turns\.0\.round is not well-formed: Field required"),
        ("seats", [7], r"seats\.0 is not well-formed"),
        ("stop", {"reason": "tired"}, r"stop\.reason"),
        ("settings", "none", "settings is not well-formed"),
        ("spans", {}, "spans is not well-formed"),
    ],
)
def test_a_wrong_shape_is_refused(name: str, value: Any, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        CHANNELS[name].copy().update([value])


def test_nodes_of_one_step_may_write_the_same_value_only() -> None:
    channel = CHANNELS["round"].copy()
    channel.update([2, 2])
    assert channel.get() == 2
    with pytest.raises(InvalidUpdateError):
        channel.update([2, 3])
