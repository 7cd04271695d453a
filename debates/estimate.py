from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from statistics import median
from typing import NamedTuple

from contend.debates.past import PastDebate
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState
from contend.graph.values import Seat, Usage
from contend.models.prices import Price, cost_of, price_of
from contend.models.providers.registry import parse_spec
from contend.models.seats import is_small
from contend.models.tokens import estimate_tokens
from contend.nodes.budget import calls_after
from contend.nodes.timing import spoken_by_models

# A prompt contains at most about this many earlier turns in full.
_TURNS_SHOWN = 8

Range = tuple[float, float]


class _Lengths(NamedTuple):
    """Typical token counts of a prompt's instructions and of short, usual and long turns."""

    instructions: int
    short_turn: int
    usual_turn: int
    long_turn: int


_USUAL = _Lengths(900, 250, 450, 700)
_SMALL_MODELS = _Lengths(150, 50, 100, 200)


@dataclass(frozen=True)
class Likely:
    calls: int
    tokens: int
    cost_usd: float | None
    debates: int = 0  # the number of past debates it is based on


@dataclass(frozen=True)
class Estimate:
    calls: tuple[int, int]
    tokens: tuple[int, int]
    cost_usd: Range | None
    """None if any model's price is unknown."""
    unpriced: tuple[str, ...] = ()  # the models whose price is unknown
    prices_read: date | None = None  # the oldest date of a built-in price
    likely: Likely | None = None


def estimate(
    question: str,
    settings: DebateSettings,
    seats: Iterable[Seat],
    past: Sequence[PastDebate] = (),
    stopped: DebateState | None = None,
) -> Estimate:
    """Estimate a whole debate or, if `stopped` is given, what remains after that state."""
    seats = list(seats)
    people = [seat for seat in seats if seat.is_human]
    made = len(spoken_by_models(stopped)) if stopped else 0
    calls = _calls(settings, people, stopped or {}, made)
    asked = estimate_tokens(question)
    lengths = _SMALL_MODELS if is_small(seats) else _USUAL
    prompt = lengths.instructions + asked
    low = _usage(calls[0], prompt, lengths.short_turn, made)
    high = _usage(calls[1], prompt, lengths.long_turn, made)
    models = dict.fromkeys(seat.model for seat in seats if not seat.is_human)
    prices = {model: price_of(parse_spec(model), settings.prices) for model in models}
    known = [price for price in prices.values() if price]
    unpriced = tuple(model for model, price in prices.items() if not price)
    is_priced = not unpriced
    similar = _similar(past, models)
    middle = round(sum(calls) / 2)
    likely = middle, _usage(middle, prompt, lengths.usual_turn, made)
    if similar:
        likely = _median(similar, calls, made)
        low, high = _extended(min, low, likely[1]), _extended(max, high, likely[1])
    mean = sum(cost_of(likely[1], price) or 0.0 for price in known) / len(known) if known else 0.0
    return Estimate(
        calls,
        (_total(low), _total(high)),
        _costs(known, low, high) if is_priced else None,
        unpriced,
        min((price.read for price in known if price.read), default=None),
        Likely(likely[0], _total(likely[1]), mean if is_priced else None, len(similar)),
    )


def _calls(
    settings: DebateSettings, people: Sequence[Seat], state: DebateState, made: int
) -> tuple[int, int]:
    least = 0 if people else 1
    if state.get("stop"):  # only the calls after the rounds are left
        calls = calls_after(state, settings, "")
        left = max(sum(not call.seat.is_human for call in calls), least)
        return left, left
    fewest, most = strategy_for(settings).expected_calls(people)
    return max(fewest - made, least), max(most - made, least)


def estimate_all(estimates: Sequence[Estimate]) -> Estimate:
    first, *others = estimates
    return _sum(first, estimate_all(others)) if others else first


def _sum(one: Estimate, other: Estimate) -> Estimate:
    costs = (one.cost_usd, other.cost_usd)
    read = [each for each in (one.prices_read, other.prices_read) if each]
    return Estimate(
        (one.calls[0] + other.calls[0], one.calls[1] + other.calls[1]),
        (one.tokens[0] + other.tokens[0], one.tokens[1] + other.tokens[1]),
        (costs[0][0] + costs[1][0], costs[0][1] + costs[1][1]) if costs[0] and costs[1] else None,
        tuple(dict.fromkeys((*one.unpriced, *other.unpriced))),
        min(read, default=None),
        _likely_sum(one.likely, other.likely),
    )


def _likely_sum(one: Likely | None, other: Likely | None) -> Likely | None:
    if one is None or other is None:
        return None
    unknown = one.cost_usd is None or other.cost_usd is None
    cost = None if unknown else (one.cost_usd or 0) + (other.cost_usd or 0)
    both = replace(one, calls=one.calls + other.calls, tokens=one.tokens + other.tokens)
    return replace(both, cost_usd=cost, debates=max(one.debates, other.debates))


def _similar(past: Sequence[PastDebate], models: Iterable[str]) -> list[PastDebate]:
    wanted = set(models)
    same = [each for each in past if wanted == each.models]
    # Built-in models get shorter prompts than all others.
    return same or [each for each in past if _are_embedded(each.models) == _are_embedded(wanted)]


def _are_embedded(models: Iterable[str]) -> bool:
    return any(model.startswith("embedded:") for model in models)


def _median(past: Sequence[PastDebate], calls: tuple[int, int], made: int) -> tuple[int, Usage]:
    usual = min(max(round(median(each.calls for each in past)) - made, calls[0]), calls[1])
    sent = median(each.input_tokens / each.calls for each in past)
    written = median(each.output_tokens / each.calls for each in past)
    return usual, Usage(input_tokens=round(usual * sent), output_tokens=round(usual * written))


def _extended(choose: Callable[[int, int], int], limit: Usage, likely: Usage) -> Usage:
    return Usage(
        input_tokens=choose(limit.input_tokens or 0, likely.input_tokens or 0),
        output_tokens=choose(limit.output_tokens or 0, likely.output_tokens or 0),
    )


def _usage(calls: int, prompt: int, turn: int, made: int) -> Usage:
    numbers = range(made, made + calls)
    shown = sum(min(number, _TURNS_SHOWN) * turn for number in numbers)
    return Usage(input_tokens=calls * prompt + shown, output_tokens=calls * turn)


def _total(usage: Usage) -> int:
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _costs(prices: list[Price], low: Usage, high: Usage) -> Range:
    cheap = (cost_of(low, price) or 0.0 for price in prices)
    dear = (cost_of(high, price) or 0.0 for price in prices)
    return min(cheap, default=0.0), max(dear, default=0.0)
