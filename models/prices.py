"""The cost of calls. An unknown price is never treated as zero."""

from collections.abc import Mapping

from contend.graph.errors import BadInput
from contend.graph.values import Usage
from contend.models.providers.registry import ModelSpec, parse_spec, provider_of

Prices = Mapping[str, tuple[float, float]]


def priced(usage: Usage, spec: ModelSpec, prices: Prices) -> Usage:
    """Add the cost: stated prices first, then zero for local models."""
    if (stated := _find_price(spec, prices)) is not None:
        return usage.model_copy(update={"cost_usd": _cost(usage, stated)})
    if provider_of(spec).is_free:
        return usage.model_copy(update={"cost_usd": 0.0})
    return usage


def _find_price(spec: ModelSpec, prices: Prices) -> tuple[float, float] | None:
    if str(spec) in prices:
        return prices[str(spec)]
    return next((price for key, price in prices.items() if _is_name_of(key, spec)), None)


def _is_name_of(key: str, spec: ModelSpec) -> bool:
    try:
        return parse_spec(key) == spec
    except BadInput:
        return False  # preflight refuses it; a call already paid must not fail over it


def _cost(usage: Usage, per_million: tuple[float, float]) -> float | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    paid = usage.input_tokens * per_million[0] + usage.output_tokens * per_million[1]
    return paid / 1_000_000
