"""Prices of calls; an unlisted price is unknown, not zero."""

from datetime import UTC, date, datetime
from urllib.parse import urlsplit

import pytest

from contend.graph.values import Usage
from contend.models import prices as prices_module
from contend.models.prices import Price, price_of, price_table, priced
from contend.models.providers.registry import parse_spec

USED = Usage(input_tokens=2000, output_tokens=300)


@pytest.mark.parametrize(
    ("spec", "prices", "cost"),
    [
        ("openai:m1", {}, None),
        ("openai:m1", {"openai:m1": (1.0, 4.0)}, 0.0032),
        ("openai:m1", {"openai:m1": (0.0, 0.0)}, 0.0),
        ("openai:m1", {"openai:m2": (1.0, 4.0)}, None),
        ("openrouter:a/b", {}, None),
        ("ollama:m1", {}, 0.0),
        ("m1:7b", {}, 0.0),
        ("ollama:m1", {"ollama:m1": (1.0, 0.0)}, 0.002),
        ("ollama:m1", {"m1": (1.0, 0.0)}, 0.002),
        ("ollama:qwen3:32b", {"qwen3:32b": (1.0, 0.0)}, 0.002),
        ("ollama:m1", {"m1": (9.0, 9.0), "ollama:m1": (1.0, 0.0)}, 0.002),
        ("openai:m1", {"m1": (1.0, 0.0)}, None),
        ("openai:m1", {" openai:m1 ": (1.0, 0.0), "opnai:m1": (9.0, 9.0)}, 0.002),
        ("openai:m1", {"opnai:m1": (9.0, 9.0)}, None),
    ],
)
def test_the_cost_of_a_call(
    spec: str, prices: dict[str, tuple[float, float]], cost: float | None
) -> None:
    assert priced(USED, parse_spec(spec), prices).cost_usd == cost


@pytest.mark.parametrize("used", [Usage(), Usage(input_tokens=5), Usage(output_tokens=5)])
def test_a_price_of_unknown_tokens_is_unknown(used: Usage) -> None:
    assert priced(used, parse_spec("openai:m1"), {"openai:m1": (1.0, 1.0)}).cost_usd is None


def test_a_sum_with_an_unknown_is_unknown() -> None:
    known = Usage(input_tokens=1, output_tokens=2, cost_usd=0.5)
    assert known + known == Usage(input_tokens=2, output_tokens=4, cost_usd=1.0)
    assert known + Usage(input_tokens=1, output_tokens=1) == Usage(input_tokens=2, output_tokens=3)


CACHED = Usage(input_tokens=2000, output_tokens=300, cached_tokens=1500)


def test_price_table_lists_default_models_with_sources() -> None:
    table, today = price_table(), datetime.now(UTC).date()
    assert {"openai:gpt-5-mini", "anthropic:claude-haiku-4-5", "xai:grok-4.7"} <= table.keys()
    for name, price in table.items():
        assert str(parse_spec(name)) == name
        assert 0 < price.input <= price.output, name
        assert price.cached is None or 0 < price.cached < price.input, name
        assert price.source, name
        assert price.read is not None, name
        assert price.read <= max(today, date(2026, 11, 18)), name
    assert all(
        urlsplit(source["url"]).scheme == "https"
        for source in prices_module._read_table()["sources"]
    )


def found(spec: str) -> tuple[float, float | None, float] | None:
    price = price_of(parse_spec(spec), {}, date(2026, 11, 18))
    return (price.input, price.cached, price.output) if price else None


@pytest.mark.parametrize(
    ("spec", "price"),
    [
        ("openai:gpt-5-mini", (0.25, 0.025, 2)),
        ("openai:gpt-5-mini-2025-08-07", (0.25, 0.025, 2)),
        ("anthropic:claude-haiku-4-5-20251001", (1, 0.1, 5)),
        ("openai:gpt-4o-2024-08-06", (2.5, 1.25, 10)),
        ("openai:gpt-4o-2024-05-13", None),
        ("openrouter:openai/gpt-4o-2024-05-13", None),
        ("openai:gpt-5-mini-2026-11-18", (0.25, 0.025, 2)),
        ("openai:gpt-5-mini-2026-11-19", None),
        ("anthropic:claude-haiku-4-5-20270101", None),
        ("openrouter:openai/gpt-5-mini", (0.25, 0.025, 2)),
        ("openrouter:anthropic/claude-haiku-4.5", (1, 0.1, 5)),
        ("openrouter:google/gemini-3.8-flash", (0.75, 0.075, 3.75)),
        ("openrouter:openai/gpt-5-mini:nitro", None),
        ("openrouter:somebody/gpt-5-mini", None),
        ("openai:gpt-5-minimal", None),
        ("openai:gpt-5-mini-20", None),
        ("groq:gpt-5-mini", None),
        ("ollama:gpt-5-mini", (0.0, None, 0.0)),
    ],
)
def test_finds_the_listed_price_of_a_model(spec: str, price: tuple[float, ...] | None) -> None:
    assert found(spec) == price


def test_the_users_own_price_comes_first() -> None:
    own = {"openai:gpt-5-mini": (9.0, 9.0)}
    price = price_of(parse_spec("openai:gpt-5-mini"), own)
    assert price == Price(9.0, 9.0, source="your settings")


def test_a_temporary_price_expires() -> None:
    spec = parse_spec("google_genai:gemini-3.8-flash")
    assert price_of(spec, {}, date(2026, 12, 31))
    assert price_of(spec, {}, date(2027, 1, 1)) is None


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("OPENAI_BASE_URL", "openai:gpt-5-mini"),
        ("OPENROUTER_BASE_URL", "openrouter:openai/gpt-5-mini"),
        ("ANTHROPIC_BASE_URL", "anthropic:claude-haiku-4-5"),
        ("ANTHROPIC_API_URL", "anthropic:claude-haiku-4-5"),
        ("GOOGLE_GEMINI_BASE_URL", "google_genai:gemini-2.5-pro"),
        ("GROQ_API_BASE", "groq:openai/gpt-oss-120b"),
        ("MISTRAL_BASE_URL", "mistralai:codestral-latest"),
    ],
)
def test_price_is_unknown_with_a_custom_base_url(
    name: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = parse_spec(model)
    assert price_of(spec, {})
    monkeypatch.setenv(name, "http://127.0.0.1:8000/v1")
    assert price_of(spec, {}) is None


def test_cached_input_costs_less_where_its_price_is_known() -> None:
    spec = parse_spec("openai:gpt-5-mini")
    assert priced(CACHED, spec, {}).cost_usd == pytest.approx(0.0007625)
    assert priced(USED, spec, {}).cost_usd == pytest.approx(0.0011)
    own = {"openai:gpt-5-mini": (0.25, 2.0)}
    assert priced(CACHED, spec, own).cost_usd == pytest.approx(0.0011)
    with_cached = {"openai:gpt-5-mini": (0.25, 2.0, 0.0)}
    assert priced(CACHED, spec, with_cached).cost_usd == pytest.approx(0.000725)


def test_usage_without_cached_tokens_can_be_read() -> None:
    old = Usage.model_validate({"input_tokens": 1, "output_tokens": 2, "cost_usd": None})
    assert old.cached_tokens is None
    assert (CACHED + CACHED).cached_tokens == 3000
    assert (CACHED + old).cached_tokens is None
