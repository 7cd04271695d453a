"""A price nobody stated is unknown, never zero."""

import pytest

from contend.graph.values import Usage
from contend.models.prices import priced
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
