"""Estimates what a debate will take, before anything is spent."""

from collections.abc import Iterable
from dataclasses import dataclass

from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.values import Seat, Usage
from contend.models.prices import priced
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


def estimate(question: str, settings: DebateSettings, seats: Iterable[Seat]) -> Estimate:
    calls = strategy_for(settings).expected_calls()
    asked = estimate_tokens(question)
    low = _usage(calls[0], asked, _SHORT_TURN)
    high = _usage(calls[1], asked, _LONG_TURN)
    costs = _costs(settings, list(seats), low, high)
    return Estimate(calls, (_total(low), _total(high)), costs)


def _usage(calls: int, question: int, turn: int) -> Usage:
    shown = sum(min(number, _TURNS_SHOWN) * turn for number in range(calls))
    prompts = calls * (_INSTRUCTIONS + question) + shown
    return Usage(input_tokens=prompts, output_tokens=calls * turn)


def _total(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _costs(settings: DebateSettings, seats: list[Seat], low: Usage, high: Usage) -> Range | None:
    """Return the cost if the cheapest or the dearest model took all calls."""
    specs = [parse_spec(seat.model) for seat in seats]
    cheap = [priced(low, spec, settings.prices).cost_usd for spec in specs]
    dear = [priced(high, spec, settings.prices).cost_usd for spec in specs]
    known = [cost for cost in (*cheap, *dear) if cost is not None]
    if not specs or len(known) < 2 * len(specs):
        return None
    return min(known[: len(specs)]), max(known[len(specs) :])
