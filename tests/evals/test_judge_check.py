"""Measuring the accuracy and bias of a judge."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from contend.evals.judge_check import (
    JudgeCheck,
    JudgeFigures,
    JudgePair,
    planted_flaws,
    read_llmbar,
    sum_up_judge,
)
from contend.evals.run_store import RunStore
from contend.graph.errors import BadInput
from tests.support.scripted import Cast, Sent

PAIRS = [
    JudgePair(id=f"p{n}", question=f"What is {n}?", good=f"good {n}", bad=f"bad {n}")
    for n in range(4)
]


def _prefers(choose: Callable[[str, str], str]) -> Callable[[Sent], str]:
    def say(sent: Sent) -> str:
        first, _, second = sent.user.partition("<second")
        return json.dumps({"better": choose(first.partition("<first")[2], second)})

    return say


def _knows(first: str, second: str) -> str:
    return "first" if "good" in first else "second"


async def _judge(folder: Path, cast: Cast, pairs: list[JudgePair] = PAIRS) -> JudgeFigures:
    store = RunStore(folder)
    with store.locked(), cast.on_stage():
        store.open({"judge": "scripted:judge"})
        check = JudgeCheck("scripted:judge", store, lambda: None)
        return sum_up_judge(await check.judge(pairs, 2))


async def test_measures_an_accurate_judge(tmp_path: Path) -> None:
    found = await _judge(tmp_path, Cast(judge=_prefers(_knows)))
    assert (found.accuracy.count, found.accuracy.n) == (8, 8)
    assert (found.both_orders.count, found.consistent.count, found.both_orders.n) == (4, 4, 4)
    assert (found.first_chosen.count, found.first_chosen.n) == (4, 8)
    # A second check of the same judge pays nothing.
    silent = Cast(judge="not JSON")
    assert await _judge(tmp_path, silent) == found
    assert silent.sent == []


async def test_measures_a_judge_that_always_chooses_the_first(tmp_path: Path) -> None:
    found = await _judge(tmp_path, Cast(judge=_prefers(lambda *_: "first")))
    assert (found.accuracy.count, found.both_orders.count, found.consistent.count) == (4, 0, 0)
    assert found.first_chosen.value == 1.0


async def test_counts_undecided_unreadable_and_failed_separately(tmp_path: Path) -> None:
    def moody(sent: Sent) -> str:
        if "What is 0" in sent.user:
            return '{"better": "undecided"}'
        if "What is 1" in sent.user:
            return "I like both."
        if "What is 2" in sent.user:
            raise RuntimeError("the model is down")
        return _prefers(_knows)(sent)

    found = await _judge(tmp_path, Cast(judge=moody))
    assert (found.pairs, found.failed, found.unreadable, found.undecided) == (4, 1, 2, 2)
    assert (found.accuracy.count, found.accuracy.n) == (2, 4)
    assert (found.both_orders.count, found.both_orders.n) == (1, 2)


async def test_measures_a_judge_that_prefers_its_own_answers(tmp_path: Path) -> None:
    def vain(sent: Sent) -> str:
        if "<request" not in sent.text:
            return "My own words."
        return _prefers(lambda first, _: "first" if "My own" in first else "second")(sent)

    cast, store = Cast(judge=vain, rival="Other words."), RunStore(tmp_path)
    with store.locked(), cast.on_stage():
        store.open({"judge": "scripted:judge"})
        check = JudgeCheck("scripted:judge", store, lambda: None)
        found = await check.compare_with("scripted:rival", 5, 2)
    assert (found.n, found.own.count, found.own.n) == (5, 5, 5)
    assert len(cast.sent) == 5 * (1 + 1 + 2)


def test_reads_llmbar_pairs_and_the_bundled_flaws(tmp_path: Path) -> None:
    row = {"input": "Name one.", "output_1": "One, two.", "output_2": "One.", "label": 2}
    (tmp_path / "manual.json").write_text(json.dumps([row]))
    (pair,) = read_llmbar(tmp_path)
    assert (pair.good, pair.bad, pair.kind) == ("One.", "One, two.", "manual")
    (tmp_path / "manual.json").write_text(json.dumps([{**row, "label": 3}]))
    with pytest.raises(BadInput, match="pair 1 is not in the form of LLMBar"):
        read_llmbar(tmp_path)
    flaws = planted_flaws()
    assert len(flaws) >= 12
    # The flawed answer is often the longer one, so that length alone is no help.
    assert sum(len(each.bad) > len(each.good) for each in flaws) > len(flaws) / 2
