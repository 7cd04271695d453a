"""Estimating calls, tokens and cost before a debate starts."""

from datetime import date
from typing import Any

import pytest

from contend.debates.estimate import Estimate, estimate
from contend.debates.past import PastDebate
from contend.graph.settings import SETTINGS, AdversarialSettings, RefineSettings
from contend.models import prices
from contend.models.prices import Price
from tests.support.states import state, stopped, turn


def estimated(*models: str, **changes: Any) -> Estimate:
    names = ("proposer_model", "skeptic_model", "synthesizer_model", "judge_model")
    chosen = dict(zip(names, models * 4, strict=False))
    settings = AdversarialSettings.model_validate(chosen | changes)
    return estimate("Why?", settings, settings.build_seats())


def test_the_bundled_price_table_covers_common_models() -> None:
    found = estimated("openai:gpt-5-mini")
    assert found.cost_usd is not None
    assert 0 < found.cost_usd[0] < found.cost_usd[1] < 0.1
    assert found.unpriced == ()
    assert found.prices_read == prices.price_table()["openai:gpt-5-mini"].read


def test_lists_models_without_a_price() -> None:
    found = estimated("openai:gpt-5-mini", "openai:mine")
    assert (found.cost_usd, found.unpriced) == (None, ("openai:mine",))


def test_local_models_and_user_prices_have_no_price_date() -> None:
    assert estimated("ollama:m").cost_usd == (0, 0)
    own = estimated("openai:gpt-5-mini", prices={"openai:gpt-5-mini": (1, 1)})
    assert (own.prices_read, own.cost_usd is None) == (None, False)


def test_shows_the_oldest_price_date(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {
        f"openai:{name}": Price(1, 2, read=date(year, 1, 1))
        for name, year in (("old", 2024), ("new", 2026))
    }
    monkeypatch.setattr(prices, "price_table", lambda: table)
    assert estimated("openai:new", "openai:old").prices_read == date(2024, 1, 1)


@pytest.mark.parametrize(
    ("protocol", "people", "calls"),
    [
        ("adversarial", ["skeptic_model"], (1 + 2, 5 + 2)),
        ("adversarial", ["proposer_model", "skeptic_model", "synthesizer_model"], (1, 1)),
        ("refine", ["judge_model"], (9, 9)),
    ],
)
def test_turns_of_people_are_not_counted_as_calls(
    protocol: str, people: list[str], calls: tuple[int, int]
) -> None:
    settings = SETTINGS[protocol].model_validate(dict.fromkeys(people, "human"))
    assert estimate("Why?", settings, settings.build_seats()).calls == calls


def test_human_debaters_reduce_the_number_of_calls() -> None:
    seats: Any = [{"name": "Ann", "model": "human"}, {"name": "Ben", "model": "openai:m"}]
    settings = RefineSettings(seats=seats, max_debate_rounds=2)
    assert estimate("Why?", settings, settings.build_seats()).calls[1] == 3 + 2 + 2


def test_human_turns_before_a_pause_are_not_counted_as_calls() -> None:
    settings = AdversarialSettings(skeptic_model="human", max_rounds=3)
    answer, critique = turn("propose", 1, "Keep it."), turn("critique", 1, "Why?")
    said = [answer, critique.model_copy(update={"status": "human"})]
    found = estimate("Why?", settings, settings.build_seats(), stopped=state(turns=said))
    assert found.calls == (1 + 2 - 1, 3 + 2 - 1)
    ended = state(turns=said, seats=settings.build_seats(), stop=stopped(1))
    assert estimate("Why?", settings, settings.build_seats(), stopped=ended).calls == (2, 2)


@pytest.mark.parametrize("tokens", [10, 1_000_000])
def test_the_token_range_includes_the_users_past_debates(tokens: int) -> None:
    past = [PastDebate(8, tokens, 10, frozenset({"openai:gpt-5-mini"}))]
    settings = AdversarialSettings()
    seats = [
        seat.model_copy(update={"model": "openai:gpt-5-mini"}) for seat in settings.build_seats()
    ]
    found = estimate("Why?", settings, seats, past)
    assert found.likely is not None
    assert found.tokens[0] <= found.likely.tokens <= found.tokens[1]


def test_past_debates_do_not_lower_the_highest_cost() -> None:
    without = estimated("openai:gpt-5-mini")
    past = [PastDebate(8, 72_000, 1600, frozenset({"openai:gpt-5-mini"}))]
    settings = AdversarialSettings.model_validate(
        {f"{role}_model": "openai:gpt-5-mini" for role in ("proposer", "skeptic", "synthesizer")}
        | {"judge_model": "openai:gpt-5-mini"}
    )
    found = estimate("Why?", settings, settings.build_seats(), past)
    assert found.cost_usd is not None
    assert without.cost_usd is not None
    assert found.cost_usd[1] >= without.cost_usd[1]


def test_ignores_past_debates_of_the_built_in_model() -> None:
    past = [PastDebate(6, 900, 600, frozenset({"embedded:smollm2-135m"}))]
    settings = AdversarialSettings()
    found = estimate("Why?", settings, settings.build_seats(), past)
    assert found.likely is not None
    assert found.likely.debates == 0


def test_estimates_shorter_prompts_for_small_models() -> None:
    small, usual = estimated("embedded:smollm2-135m"), estimated("openai:gpt-5-mini")
    assert small.calls == usual.calls
    assert small.tokens[1] < usual.tokens[1] / 2
