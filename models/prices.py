"""Computes the cost of calls. An unknown price never counts as zero."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

from contend.graph.errors import BadInput
from contend.graph.values import Usage
from contend.models.files import parse_yaml
from contend.models.providers.registry import ModelSpec, parse_spec, provider_of

Prices = Mapping[str, tuple[float, ...]]

_TABLE = Path(__file__).parent / "prices.yaml"
_SNAPSHOT = re.compile(r"-(\d{4})-?(\d{2})-?(\d{2})$")


# Anthropic's factor on the input price for tokens that it caches for five minutes.
_CACHE_WRITE = 1.25


@dataclass(frozen=True)
class Price:
    """A model's prices in US dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None  # for input that the provider adds to its cache
    source: str = ""
    read: date | None = None  # set if it is from the built-in table
    until: date | None = None


def priced(usage: Usage, spec: ModelSpec, prices: Prices, cache_writes: int = 0) -> Usage:
    price = price_of(spec, prices)
    cost = cost_of(usage, price, cache_writes) if price else None
    return usage.model_copy(update={"cost_usd": cost}) if price else usage


def price_of(spec: ModelSpec, prices: Prices, today: date | None = None) -> Price | None:
    """Return the user's price, else zero for a local model, else the built-in price, else None."""
    price = _price_of(spec, prices, today)
    if price is None or not provider_of(spec).caches_marked_parts:
        return price
    return replace(price, cache_write=_CACHE_WRITE * price.input)


def _price_of(spec: ModelSpec, prices: Prices, today: date | None) -> Price | None:
    names = (key for key in (str(spec), *prices) if key in prices and _is_name_of(key, spec))
    if name := next(names, None):
        sent, written, *cached = prices[name]
        return Price(sent, written, cached[0] if cached else None, None, "your settings")
    provider = provider_of(spec)
    if provider.is_free:
        return Price(0.0, 0.0, source="this machine")
    found = _listed(spec) if provider.has_list_prices() else None
    ended = found and found.until and (today or datetime.now(UTC).date()) > found.until
    return None if ended else found


@cache
def price_table() -> dict[str, Price]:
    prices = {}
    for source in _read_table()["sources"]:
        for spec, (sent, cached, written) in source["prices"].items():
            known = {"source": source["title"], "read": source["read"]}
            prices[spec] = Price(sent, written, cached, None, **known, until=source.get("until"))
    return prices


@cache
def _read_table() -> dict[str, Any]:
    table: dict[str, Any] = parse_yaml(_TABLE.read_text("utf-8"), fast=True)
    return table


def _listed(spec: ModelSpec) -> Price | None:
    if spec.provider != "openrouter":
        return _of_model(str(spec))
    passed = _read_table()["openrouter"]
    vendor, _, model = spec.name.partition("/")
    name = f"{passed['vendors'].get(vendor)}:{model}"
    # OpenRouter writes Claude's names with dots.
    price = _of_model(name) or _of_model(name.replace(".", "-"))
    return replace(price, source=f"{passed['title']}; {price.source}") if price else None


def _of_model(name: str) -> Price | None:
    table = price_table()
    if not (dated := _SNAPSHOT.search(name)) or name in table:
        return table.get(name)
    price = table.get(name[: dated.start()])
    is_newer = price and price.read and "-".join(dated.groups()) > price.read.isoformat()
    return None if is_newer or name in _read_table()["exceptions"] else price


def _is_name_of(key: str, spec: ModelSpec) -> bool:
    try:
        return parse_spec(key) == spec
    except BadInput:
        return False  # preflight reports the error; here it must not fail a paid call


def cost_of(usage: Usage, price: Price, cache_writes: int = 0) -> float | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    rate = price.input if price.cached is None else price.cached
    fresh = (usage.input_tokens - cached) * price.input
    if price.cache_write is not None:
        fresh += cache_writes * (price.cache_write - price.input)
    return (fresh + cached * rate + usage.output_tokens * price.output) / 1_000_000
