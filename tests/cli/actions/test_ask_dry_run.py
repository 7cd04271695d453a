"""`contend ask --dry-run` checks everything, prints the plan, and starts nothing."""

from pathlib import Path

import pytest

from contend.models.prices import price_table
from tests.cli.support import ASK, QUESTION, Command
from tests.support.model_server import ModelServer

PRICES = ["--set", 'prices={"openai:m": [1, 2]}']


def test_a_dry_run_prints_the_plan_and_starts_nothing(
    contend: Command, models: ModelServer
) -> None:
    ended = contend.here(*ASK, *PRICES, "--set", "judge_fallbacks=[ollama:m]", "--dry-run")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "adversarial",
        "Proposer     openai:m",
        "Skeptic      openai:m",
        "Synthesizer  openai:m",
        "Judge        openai:m, then ollama:m",
        "All models chosen by you.",
        "openai:m: $1 in, $2 out per million tokens (your settings)",
        "ollama:m: free (this machine)",
        "Estimate: 4 to 6 calls, about 6k to 20k tokens, $0.007 to $0.02; "
        "likely 5 calls, 11k tokens, $0.01.",
        "Nothing was started: no model was called and nothing is recorded.",
    ]
    assert (models.calls, contend.home.exists()) == ([], False)


def test_dry_run_prints_json_or_a_short_estimate(contend: Command) -> None:
    plan = contend.here(*ASK, "--dry-run", "--json").json
    assert (plan["question"], plan["protocol"]) == (QUESTION, "adversarial")
    assert [seat["model"] for seat in plan["seats"]] == ["openai:m"] * 4
    expected = {"calls": [4, 6], "cost_usd": None, "unpriced": ["openai:m"], "prices_read": None}
    assert plan["estimate"].items() >= expected.items()
    assert plan["prices"] == {"openai:m": None}
    short = contend.here(*ASK, *PRICES, "--dry-run", "--quiet")
    assert short.out == (
        "Estimate: 4 to 6 calls, about 6k to 20k tokens, $0.007 to $0.02; likely 5 calls, "
        "11k tokens, $0.01.\n"
    )
    refused = contend.here(*ASK, "--dry-run", "--events")
    assert (refused.code, "use --json instead" in refused.err) == (2, True)


def test_a_dry_run_as_json_has_the_price_of_each_model_with_its_source(
    contend: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    also = ["--set", "judge_fallbacks=[ollama:m]"]
    own = contend.here(*ASK, *PRICES, *also, "--dry-run", "--json").json["prices"]
    assert [*own] == ["openai:m", "ollama:m"]
    known = {"input": 1.0, "output": 2.0, "cached": None, "cache_write": None}
    source = {"source": "your settings", "read": None, "until": None}
    assert own["openai:m"] == known | source
    assert own["ollama:m"].items() >= {"input": 0.0, "source": "this machine"}.items()
    listed = price_table()["openai:gpt-5-mini"]  # a test's server has no list prices
    monkeypatch.setattr("contend.cli.view.plan.price_of", lambda *_: listed)
    (price,) = contend.here(*ASK, "--dry-run", "--json").json["prices"].values()
    assert (price["source"], price["read"]) == (listed.source, str(listed.read))


def test_a_dry_run_refuses_what_a_debate_would_refuse(contend: Command) -> None:
    missing = contend.here("ask", "Why?", "-m", "ollama:nope", "--dry-run")
    assert (missing.code, "`ollama pull nope`" in missing.err) == (2, True)
    unreadable = contend.here(*ASK, "--docs", "nowhere.txt", "--dry-run")
    assert (unreadable.code, unreadable.out) == (2, "")


def test_a_dry_run_stores_and_downloads_nothing(contend: Command, tmp_path: Path) -> None:
    (tmp_path / "contract.txt").write_text("Pets need consent.")
    ended = contend.here(*ASK, "--docs", "contract.txt", "--dry-run")
    assert (ended.code, contend.home.exists()) == (0, False)
    embedded = contend.here("ask", "Why?", "-m", "embedded:smollm2-135m", "--dry-run")
    assert embedded.code == 0
    assert embedded.err == "Note: smollm2-135m (98 MB) would be downloaded first.\n"
    assert "free (local);" in embedded.out
    assert not contend.home.exists()
