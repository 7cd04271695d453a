"""All seats are sent prompts that begin alike, so that a provider's cache serves each of them."""

import re
from itertools import pairwise

import pytest

from tests.support.floor import debate, floor_cast
from tests.support.forecasting import forecasted
from tests.support.scripted import (
    Played,
    Sent,
    forum_cast,
    forum_settings,
    full_cast,
    play,
    refine_settings,
    refining_cast,
)

_DEBATE = re.compile(
    r"## (?:Question|Topic)\n.*\n\n"
    r"## (?:The debate so far|Previous exchanges|The answers so far)\n"
    r"(?:(?!\n\n## ).)*</\w+ \w+>(?=\n\n## )",
    re.DOTALL,
)


async def _play(protocol: str, *, concede: bool = False) -> Played:
    if protocol == "moderated":
        return await debate(floor_cast(), round_count=3)
    if protocol == "forecast":
        return await forecasted()
    if protocol == "refine":
        return await play(refining_cast(), settings=refine_settings(max_debate_rounds=3))
    if protocol == "forum":
        mode = "self_convergence" if concede else "external_judge"
        return await play(forum_cast(), settings=forum_settings(max_rounds=3, judge_mode=mode))
    return await play(full_cast(), min_rounds=3, max_rounds=3)


def _speeches(played: Played) -> list[Sent]:
    return [sent for sent in played.cast.sent if sent.schema is None]


def _debates(played: Played) -> list[str]:
    """Return each prompt up to the end of the debate that it shows."""
    found = (_DEBATE.match(sent.user) for sent in _speeches(played))
    return [each[0] for each in found if each]


@pytest.mark.parametrize("protocol", ["adversarial", "forum", "refine", "moderated", "forecast"])
async def test_all_seats_are_sent_the_same_system_message(protocol: str) -> None:
    assert len({sent.system for sent in _speeches(await _play(protocol))}) == 1


@pytest.mark.parametrize(
    ("protocol", "concede", "shown"),
    [("adversarial", False, 6), ("forum", False, 9), ("forum", True, 10), ("moderated", False, 35)],
)
async def test_each_prompt_begins_with_the_debate_that_the_one_before_showed(
    protocol: str, concede: bool, shown: int
) -> None:
    debates = _debates(await _play(protocol, concede=concede))
    assert len(debates) == shown
    assert all(after.startswith(before) for before, after in pairwise(debates))


async def test_debaters_are_sent_the_answers_as_the_judge_was() -> None:
    debates = _debates(await _play("refine"))
    rounds = [debates[at : at + 4] for at in range(0, 12, 4)]
    assert [len({*each}) for each in rounds] == [1, 1, 1]
