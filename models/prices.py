"""The cost of calls. An unknown price is never treated as zero."""

from collections.abc import Mapping

from contend.graph.errors import BadInput
from contend.graph.values import Usage
from contend.models.providers.registry import ModelSpec, parse_spec, provider_of

Prices = Mapping[str, tuple[float, float]]


def priced(usage: Usage, spec: ModelSpec, prices: Prices) -> Usage:
    """Add the cost: stated prices first, then zero for local models."""
    names = (key for key in (str(spec), *prices) if key in prices and _is_name_of(key, spec))
    if name := next(names, None):
        return usage.model_copy(update={"cost_usd": _cost(usage, *prices[name])})
    if provider_of(spec).is_free:
        return usage.model_copy(update={"cost_usd": 0.0})
    return usage


def _is_name_of(key: str, spec: ModelSpec) -> bool:
    try:
        return parse_spec(key) == spec
    except BadInput:
        return False  # preflight refuses it; a call already paid must not fail over it


def _cost(usage: Usage, input_price: float, output_price: float) -> float | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return (usage.input_tokens * input_price + usage.output_tokens * output_price) / 1_000_000
