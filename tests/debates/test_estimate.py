"""What a debate will take, before anything is spent."""

from datetime import date
from typing import Any

import pytest

from contend.debates.estimate import Estimate, estimate
from contend.graph.settings import AdversarialSettings
from contend.models import prices
from contend.models.prices import Price


def estimated(*models: str, **changes: Any) -> Estimate:
    names = ("proposer_model", "skeptic_model", "synthesizer_model", "judge_model")
    chosen = dict(zip(names, models * 4, strict=False))
    settings = AdversarialSettings.model_validate(chosen | changes)
    return estimate("Why?", settings, settings.build_seats())


def test_the_table_that_ships_prices_the_usual_models() -> None:
    found = estimated("openai:gpt-5-mini")
    assert found.cost_usd is not None
    assert 0 < found.cost_usd[0] < found.cost_usd[1] < 0.1
    assert found.unpriced == ()
    assert found.prices_read == prices.price_table()["openai:gpt-5-mini"].read


def test_models_without_a_price_are_named() -> None:
    found = estimated("openai:gpt-5-mini", "openai:mine")
    assert (found.cost_usd, found.unpriced) == (None, ("openai:mine",))


def test_local_models_and_the_users_own_prices_have_no_date() -> None:
    assert estimated("ollama:m").cost_usd == (0, 0)
    own = estimated("openai:gpt-5-mini", prices={"openai:gpt-5-mini": (1, 1)})
    assert (own.prices_read, own.cost_usd is None) == (None, False)


def test_the_oldest_date_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        f"openai:{name}": Price(1, 2, read=date(year, 1, 1))
        for name, year in (("old", 2024), ("new", 2026))
    }
    monkeypatch.setattr(prices, "price_table", lambda: table)
    assert estimated("openai:new", "openai:old").prices_read == date(2024, 1, 1)
