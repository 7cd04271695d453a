"""Recorded spending survives crashes, on both databases."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.settings_sources import Given
from contend.debates.spending import (
    Limits,
    close_ledger,
    limits_over_time,
    open_ledger,
    spent_by,
    with_budget,
)
from contend.graph.errors import BadInput
from contend.graph.settings import AdversarialSettings
from contend.graph.state import DebateState
from contend.graph.values import Usage
from contend.models.budget import NOTHING, Amount
from contend.models.failures import Failure
from contend.models.recording import CallKey, Received, RecordedCall
from contend.models.retries import FailedAttempt
from tests.debates.test_repository import begin, state, turn

SETTINGS = AdversarialSettings(budget=10_000)
NEW: DebateState = {}


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    with closing(open_repository()) as opened:
        yield opened


def recorded(usage: dict[str, Any]) -> RecordedCall:
    answer = {"model": "openai:m", "fell_back": False, "result": {"text": "Yes.", "usage": usage}}
    return RecordedCall(model="openai:m", parameters={}, received=[], seconds=1, answer=answer)


def test_the_actual_cost_replaces_the_reserved_amount(records: Repository) -> None:
    debate = begin(records)
    assert records.spending.total(debate) == NOTHING
    records.spending.put(debate, "a", Amount(5_000, 0.5))
    records.spending.put(debate, "b", Amount(5_000, 0.25))
    records.spending.put(debate, "a", Amount(700, 0.125))
    assert records.spending.total(debate) == Amount(5_700, 0.375)
    records.delete(debate)
    assert records.spending.total(debate) == NOTHING


async def test_a_call_running_at_a_crash_counts_as_its_reserved_amount(records: Repository) -> None:
    debate = begin(records)
    ledger = await open_ledger(records, debate, SETTINGS, NEW)
    assert ledger.save
    await ledger.save("killed", Amount(6_000))
    again = await open_ledger(records, debate, SETTINGS, NEW)
    assert again.spent == Amount(6_000)
    assert not again.warned


async def test_a_resumed_debate_is_not_warned_again(records: Repository) -> None:
    debate = begin(records)
    records.spending.put(debate, "a", Amount(8_500))
    assert (await open_ledger(records, debate, SETTINGS, NEW)).warned
    larger = AdversarialSettings(budget=100_000)
    assert not (await open_ledger(records, debate, larger, NEW)).warned


async def test_calls_made_before_the_budget_was_set_are_counted(records: Repository) -> None:
    debate = begin(records)
    known = {"input_tokens": 900, "output_tokens": 100, "cost_usd": 0.01}
    records.recordings.add(debate, CallKey("r1.propose.a", "x"), recorded(known))
    records.recordings.add(debate, CallKey("r1.critique.b", "y"), recorded({}))
    assert spent_by(records, debate, SETTINGS, NEW) == Amount(1_000 + 4_096, 0.01)
    ledger = await open_ledger(records, debate, SETTINGS, NEW)
    assert ledger.save
    await ledger.save("next", Amount(1_000))
    assert spent_by(records, debate, SETTINGS, NEW) == Amount(2_000 + 4_096, 0.01)


def spoken(*tokens: int) -> DebateState:
    """Return a LangGraph server's state whose turns used these tokens."""
    usages = [Usage(input_tokens=each, output_tokens=0, cost_usd=0.0) for each in tokens]
    said = [turn(number, "Said.") for number in range(1, len(tokens) + 1)]
    return state(*(t.model_copy(update={"usage": u}) for t, u in zip(said, usages, strict=True)))


async def test_calls_made_by_a_langgraph_server_are_counted(records: Repository) -> None:
    debate = begin(records)
    first = await open_ledger(records, debate, SETTINGS, spoken(3_000))
    assert first.spent == records.spending.total(debate) == Amount(3_000)
    assert first.save
    await first.save("killed", Amount(1_000))
    again = await open_ledger(records, debate, SETTINGS, spoken(3_000, 2_500))
    assert again.spent == records.spending.total(debate) == Amount(5_500)
    assert again.save
    await again.save("next", Amount(500))
    assert spent_by(records, debate, SETTINGS, spoken(3_000)) == Amount(6_000)


@pytest.mark.parametrize("settings", [SETTINGS, AdversarialSettings()])
async def test_spending_of_a_server_between_local_runs_is_added(
    settings: AdversarialSettings, records: Repository
) -> None:
    """The local ledger and the server state each contain calls that the other lacks."""
    debate = records.find(begin(records))

    async def spend(call: str, tokens: int) -> None:
        usage = {"input_tokens": tokens, "output_tokens": 0, "cost_usd": 0.0}
        records.recordings.add(debate.id, CallKey(call, "x"), recorded(usage))

    await open_ledger(records, debate.id, settings, NEW)
    await spend("r1.propose.a", 1_000)
    await spend("lost", 2_000)
    await close_ledger(records, debate, settings, spoken(1_000))
    by_server = spoken(1_000, 1_500)
    assert spent_by(records, debate.id, SETTINGS, by_server) == Amount(4_500)
    await open_ledger(records, debate.id, settings, by_server)
    await spend("r3.propose.a", 500)
    await close_ledger(records, debate, settings, spoken(1_000, 1_500, 500))
    found = spent_by(records, debate.id, SETTINGS, spoken(1_000, 1_500, 500))
    assert found == Amount(5_000)
    assert spent_by(records, debate.id, SETTINGS, spoken(1_000, 1_500, 500, 100)) == Amount(5_100)


def test_a_new_budget_must_exceed_the_spending_of_a_server(records: Repository) -> None:
    debate = records.find(begin(records))
    debate = debate.with_state("paused", spoken(8_500), None)
    with pytest.raises(BadInput, match="8,500 tokens were spent before"):
        with_budget(records, debate, {"budget": Given("8500", "--budget")})


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({}, 2 * 4_096e-6),
        ({"input_tokens": 900, "output_tokens": 100}, 900e-6 + 2 * 100e-6),
    ],
)
async def test_calls_without_a_reported_cost_are_not_free(
    records: Repository, usage: dict[str, Any], cost: float
) -> None:
    debate = begin(records)
    records.recordings.add(debate, CallKey("r1.propose.a", "x"), recorded(usage))
    failed = FailedAttempt("retried", "openai:m", Failure("total", "too slow"), Usage(**usage))
    received = [Received(at=0, trouble=failed)]
    retried = recorded({"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.0})
    key = CallKey("r1.critique.b", "y")
    records.recordings.add(debate, key, retried.model_copy(update={"received": received}))
    priced = AdversarialSettings(max_cost=1, prices={"openai:m": (1.0, 2.0)})
    ledger = await open_ledger(records, debate, priced, NEW)
    assert ledger.spent.cost == pytest.approx(2 * cost)


def test_returns_the_budget_at_each_point_in_time() -> None:
    def event(name: str, hour: int, **metadata: Any) -> Any:
        return {"event": name, "ts": f"2027-01-01T{hour:02}:00:00+00:00", "metadata": metadata}

    def limits(budget: int | None) -> Limits:
        return {"budget": budget, "max_cost": None}

    said = [
        event("debate_start", 1, settings={"max_rounds": 3, **limits(10)}),
        event("paused", 2, reason="budget", **limits(10)),
        event("resumed", 3),  # by release 0.2, which did not store the budget here
        event("paused", 4, reason="budget", **limits(20)),
        event("resumed", 5, **limits(30)),
        event("paused", 6),
        event("resumed", 7),
    ]
    found = limits_over_time(said, limits(None))
    assert [(since.hour, each["budget"]) for since, each in found] == [
        *((1, 10), (3, 20), (5, 30), (7, None)),
    ]


async def test_without_a_budget_nothing_is_stored(records: Repository) -> None:
    ledger = await open_ledger(records, begin(records), AdversarialSettings(), NEW)
    assert (ledger.spent, ledger.save) == (NOTHING, None)


def test_a_new_budget_must_exceed_the_amount_spent(records: Repository) -> None:
    debate = begin(records)
    records.spending.put(debate, "a", Amount(8_500))
    found = records.find(debate)
    for value, said in (("8500", "8,500 tokens were spent before"), ("-1", "more than 0, not -1")):
        with pytest.raises(BadInput, match=said):
            with_budget(records, found, {"budget": Given(value, "--budget")})
    assert with_budget(records, found, {"budget": Given("9000", "--budget")}).budget == 9_000
