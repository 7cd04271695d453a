"""What a debate has spent is known after every crash, on both databases."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from contend.debates.repository import Repository
from contend.debates.run import open_repository
from contend.debates.settings_sources import Given
from contend.debates.spending import open_ledger, spent_by, with_budget
from contend.graph.errors import BadInput
from contend.graph.settings import AdversarialSettings
from contend.models.budget import NOTHING, Amount
from contend.models.recording import CallKey, RecordedCall
from tests.debates.test_repository import begin

SETTINGS = AdversarialSettings(budget=10_000)


@pytest.fixture
def records(database: str) -> Iterator[Repository]:
    with closing(open_repository()) as opened:
        yield opened


def recorded(usage: dict[str, Any]) -> RecordedCall:
    answer = {"model": "openai:m", "fell_back": False, "result": {"text": "Yes.", "usage": usage}}
    return RecordedCall(model="openai:m", parameters={}, received=[], seconds=1, answer=answer)


def test_an_entry_is_replaced_by_what_the_call_really_cost(records: Repository) -> None:
    debate = begin(records)
    assert records.spending.total(debate) == NOTHING
    records.spending.put(debate, "a", Amount(5_000, 0.5))
    records.spending.put(debate, "b", Amount(5_000, 0.25))
    records.spending.put(debate, "a", Amount(700, 0.125))
    assert records.spending.total(debate) == Amount(5_700, 0.375)
    records.delete(debate)
    assert records.spending.total(debate) == NOTHING


async def test_a_call_that_was_running_at_a_crash_counts_as_reserved(records: Repository) -> None:
    debate = begin(records)
    ledger = await open_ledger(records, debate, SETTINGS)
    assert ledger.keep
    await ledger.keep("killed", Amount(6_000))
    again = await open_ledger(records, debate, SETTINGS)
    assert again.spent == Amount(6_000)
    assert not again.warned


async def test_a_resumed_debate_is_not_warned_again(records: Repository) -> None:
    debate = begin(records)
    records.spending.put(debate, "a", Amount(8_500))
    assert (await open_ledger(records, debate, SETTINGS)).warned
    larger = AdversarialSettings(budget=100_000)
    assert not (await open_ledger(records, debate, larger)).warned


async def test_calls_from_before_the_budget_count(records: Repository) -> None:
    debate = begin(records)
    known = {"input_tokens": 900, "output_tokens": 100, "cost_usd": 0.01}
    records.recordings.add(debate, CallKey("r1.propose.a", "x"), recorded(known))
    records.recordings.add(debate, CallKey("r1.critique.b", "y"), recorded({}))
    assert spent_by(records, debate) == Amount(1_000 + 4_096, 0.01)
    ledger = await open_ledger(records, debate, SETTINGS)
    assert ledger.keep
    await ledger.keep("next", Amount(1_000))
    assert spent_by(records, debate) == Amount(2_000 + 4_096, 0.01)


async def test_without_a_budget_nothing_is_stored(records: Repository) -> None:
    ledger = await open_ledger(records, begin(records), AdversarialSettings())
    assert (ledger.spent, ledger.keep) == (NOTHING, None)


def test_a_new_budget_must_be_larger_than_what_is_spent(records: Repository) -> None:
    debate = begin(records)
    records.spending.put(debate, "a", Amount(8_500))
    found = records.find(debate)
    for value, said in (("8500", "8,500 tokens were spent before"), ("-1", "more than 0, not -1")):
        with pytest.raises(BadInput, match=said):
            with_budget(records, found, {"budget": Given(value, "--budget")})
    assert with_budget(records, found, {"budget": Given("9000", "--budget")}).budget == 9_000
