"""The effect of a budget on a debate: fewer rounds, then no final answer."""

from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages.ai import UsageMetadata

from contend.graph.errors import BUDGET, BadInput, ModelFailed
from contend.graph.values import NO_USAGE, Usage
from contend.models.budget import NOTHING, UNKNOWN, Amount
from contend.nodes.budget import budget_stop, check_budget, paid_by, used_by
from tests.support import scripted
from tests.support.scripted import (
    Played,
    as_state,
    full_cast,
    play,
    refine_settings,
    refining_cast,
    scripted_settings,
)

LONG = "On and on and on. " * 600


async def played(**given: Any) -> Played:
    """Play a debate under a new id, because ledgers are kept per debate id."""
    return await play(given.pop("cast", full_cast()), thread=str(uuid4()), **given)


async def test_a_large_budget_changes_nothing() -> None:
    free, limited = await played(max_rounds=3), await played(max_rounds=3, budget=1_000_000)
    assert limited.path == free.path
    assert [each["event"] for each in limited.events] == [each["event"] for each in free.events]


async def test_a_small_budget_ends_the_rounds_but_not_the_final_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = UsageMetadata(input_tokens=900, output_tokens=600, total_tokens=1500)
    monkeypatch.setattr(scripted, "USAGE", usage)
    debate = await played(max_rounds=5, min_rounds=5, budget=20_000)
    stop = debate.state["stop"]
    assert (stop.reason, stop.early, debate.rounds < 5) == ("budget", True, True)
    assert "the budget of 20,000 tokens might not pay for another round" in stop.evidence
    assert debate.state["final_answer"]
    assert debate.degraded == []


async def test_a_call_that_does_not_fit_ends_the_round_in_the_middle() -> None:
    debate = await played(cast=full_cast(proposer=LONG), budget=16_000)
    assert debate.stop_reason == "budget"
    assert [turn.phase for turn in debate.turns] == ["propose", "synthesize", "score"]
    assert [each.what for each in debate.degraded] == ["out_of_budget"]
    (decided,), (ended,) = debate.named("judge_decision"), debate.named("early_stop")
    assert (decided["metadata"]["decision"], ended["metadata"]["reason"]) == ("stop", "budget")
    assert debate.cast.sent_to("skeptic") == []


async def test_a_refine_debate_over_budget_still_has_a_final_answer() -> None:
    cast = refining_cast(ann=LONG, ben=LONG, cyd=LONG)
    debate = await played(cast=cast, settings=refine_settings(budget=40_000))
    assert debate.stop_reason == "budget"
    assert debate.state["final_answer"]


async def test_debate_fails_if_the_budget_does_not_cover_the_final_answer() -> None:
    with pytest.raises(ModelFailed) as failed:
        await played(cast=full_cast(proposer=LONG * 5), budget=16_000)
    assert (failed.value.kind, failed.value.seat) == (BUDGET, "Synthesizer")


async def test_viewers_are_warned_once_when_four_fifths_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usage = UsageMetadata(input_tokens=2_000, output_tokens=100, total_tokens=2_100)
    monkeypatch.setattr(scripted, "USAGE", usage)
    debate = await played(max_rounds=6, min_rounds=6, budget=20_000)
    (warned,) = debate.named("budget")
    used = warned["metadata"]["tokens"]
    assert 16_000 <= used < 16_000 + 2_100
    assert f"% of the budget is used: {used:,} tokens of 20,000 tokens" in warned["content"]


def test_a_fork_does_not_pay_for_the_calls_of_its_parent() -> None:
    state = as_state({"turns": [], "spans": [], "paid_before": NO_USAGE})
    assert used_by(state, scripted_settings()) == NOTHING
    assert paid_by(state, scripted_settings()) == Usage(
        input_tokens=0, output_tokens=0, cost_usd=0.0
    )


async def test_a_fork_counts_from_where_it_begins() -> None:
    debate = await played(max_rounds=1, min_rounds=1)
    forked = as_state({**debate.state, "paid_before": paid_by(debate.state, scripted_settings())})
    assert used_by(debate.state, scripted_settings()) == Amount(15 * len(debate.cast.sent))
    assert used_by(forked, scripted_settings()) == NOTHING


async def test_a_turn_of_unknown_usage_counts() -> None:
    debate = await played(max_rounds=1, min_rounds=1)
    turns = [turn.model_copy(update={"usage": Usage()}) for turn in debate.turns]
    counted = used_by(as_state({**debate.state, "turns": turns}), scripted_settings())
    assert counted.tokens == len(turns) * UNKNOWN.tokens


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(), 2 * 4_096e-6),
        (Usage(input_tokens=1_000, output_tokens=500), 1_000e-6 + 2 * 500e-6),
        (Usage(input_tokens=1_000, output_tokens=500, cost_usd=0.5), 0.5),
    ],
)
async def test_unreported_costs_are_computed_from_the_models_price(
    usage: Usage, cost: float
) -> None:
    debate = await played(max_rounds=1, min_rounds=1)
    turns = [turn.model_copy(update={"usage": usage}) for turn in debate.turns]
    prices = {turn.model: (1.0, 2.0) for turn in turns}
    priced = scripted_settings(prices=prices)
    counted = used_by(as_state({**debate.state, "turns": turns}), priced)
    assert counted.cost == pytest.approx(cost * len(turns))


@pytest.mark.parametrize("budget", [2, 900, 5_000])
def test_a_budget_that_pays_for_nothing_is_refused(budget: int) -> None:
    settings = scripted_settings(budget=budget)
    state = as_state({"question": "Why?", "seats": settings.build_seats()})
    with pytest.raises(BadInput, match=f"{budget:,} tokens does not pay for one call"):
        check_budget(state, settings)
    check_budget(state, scripted_settings(budget=50_000))
    check_budget(state, scripted_settings())


async def test_without_a_budget_no_stop_is_planned() -> None:
    debate = await played(max_rounds=1, min_rounds=1)
    assert budget_stop(debate.state, scripted_settings()) is None
    assert budget_stop(debate.state, scripted_settings(budget=100_000)) is None
    assert budget_stop(debate.state, scripted_settings(budget=1_000)) is not None
