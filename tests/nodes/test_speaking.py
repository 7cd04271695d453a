"""Turns get ids that no other turn has, and that a resumed debate gives again."""

import pytest

from nodes.speaking import next_turn_id
from tests.support.states import state, turn


@pytest.mark.parametrize(
    ("there", "given"),
    [
        ([], "r1.propose.a"),
        (["r1.propose.a"], "r1.propose.a.2"),
        (["r1.propose.a", "r1.propose.a.2"], "r1.propose.a.3"),
        # a seat whose name begins with another's
        (["r1.propose.ab"], "r1.propose.a"),
        (["r1.propose.a-2"], "r1.propose.a"),
        (["r0.propose.a", "r11.propose.a"], "r1.propose.a"),
    ],
)
def test_a_turns_id(there: list[str], given: str) -> None:
    debate = state(turns=[turn("propose", id=each) for each in there])
    assert next_turn_id(debate, "propose", "a") == given
