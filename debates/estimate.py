"""Estimates what a debate will take, before anything is spent."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.values import Seat, Usage
from contend.models.prices import Price, cost_of, price_of
from contend.models.providers.registry import parse_spec
from contend.models.tokens import estimate_tokens

# Tokens of instructions in a prompt, and of short and long turns, as models usually write them.
_INSTRUCTIONS = 900
_SHORT_TURN, _LONG_TURN = 250, 700
# Later prompts show no more than about this many earlier turns whole.
_TURNS_SHOWN = 8

Range = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    calls: tuple[int, int]
    tokens: tuple[int, int]
    cost_usd: Range | None
    """None if the price of a model is unknown."""
    unpriced: tuple[str, ...] = ()  # the models whose price is unknown
    prices_read: date | None = None  # the oldest day on which a price of the table was read


def estimate(question: str, settings: DebateSettings, seats: Iterable[Seat]) -> Estimate:
    calls = strategy_for(settings).expected_calls()
    asked = estimate_tokens(question)
    low = _usage(calls[0], asked, _SHORT_TURN)
    high = _usage(calls[1], asked, _LONG_TURN)
    models = dict.fromkeys(seat.model for seat in seats if not seat.is_human)
    prices = {model: price_of(parse_spec(model), settings.prices) for model in models}
    known = [price for price in prices.values() if price]
    unpriced = tuple(model for model, price in prices.items() if not price)
    return Estimate(
        calls,
        (_total(low), _total(high)),
        None if unpriced else _costs(known, low, high),
        unpriced,
        min((price.read for price in known if price.read), default=None),
    )


def _usage(calls: int, question: int, turn: int) -> Usage:
    shown = sum(min(number, _TURNS_SHOWN) * turn for number in range(calls))
    prompts = calls * (_INSTRUCTIONS + question) + shown
    return Usage(input_tokens=prompts, output_tokens=calls * turn)


def _total(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _costs(prices: list[Price], low: Usage, high: Usage) -> Range:
    """Return the cost if the cheapest or the dearest model took all calls."""
    cheap = (cost_of(low, price) or 0.0 for price in prices)
    dear = (cost_of(high, price) or 0.0 for price in prices)
    return min(cheap, default=0.0), max(dear, default=0.0)
