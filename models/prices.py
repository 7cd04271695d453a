"""What a call costs. A price nobody stated is unknown, never zero."""

from collections.abc import Mapping

from graph.state import Usage
from models.providers import ModelSpec, provider_of

Prices = Mapping[str, tuple[float, float]]


def priced(usage: Usage, spec: ModelSpec, prices: Prices) -> Usage:
    """Add the cost: stated prices first, nothing for models that run on the user's machine."""
    if str(spec) in prices:
        return usage.model_copy(update={"cost_usd": _cost(usage, prices[str(spec)])})
    if provider_of(spec).is_free:
        return usage.model_copy(update={"cost_usd": 0.0})
    return usage


def _cost(usage: Usage, per_million: tuple[float, float]) -> float | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    paid = usage.input_tokens * per_million[0] + usage.output_tokens * per_million[1]
    return paid / 1_000_000
