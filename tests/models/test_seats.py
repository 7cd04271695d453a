"""The choice of default models for seats, and the preflight checks."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from contend.graph.errors import BadInput
from contend.graph.settings import AdversarialSettings, ForumSettings, data_home
from contend.models.keys import store_key
from contend.models.providers import weights
from contend.models.providers.registry import Options, check_models, parse_spec, provider_of
from contend.models.providers.weights import DEFAULT, KNOWN, SMALLEST, weights_path
from contend.models.seats import (
    choose_seats,
    is_demonstration,
    is_demonstration_model,
    preflight,
    window_for,
)
from tests.support import model_server
from tests.support.model_server import ModelServer
from tests.support.scripted import scripted_settings

OLLAMA = ["qwen3:32b", "llama3.3:70b"]
EMBEDDED, BETTER = f"embedded:{SMALLEST}", f"embedded:{DEFAULT}"


async def seated(**named: Any) -> tuple[list[str], str]:
    seating = await choose_seats(AdversarialSettings.model_validate(named))
    assert [seat.id for seat in seating.seats] == ["proposer", "skeptic", "synthesizer", "judge"]
    return [seat.model for seat in seating.seats], seating.notice


async def test_prefers_ollama_if_it_has_the_default_models(server: ModelServer) -> None:
    server.models = [*OLLAMA, "gemma3:27b"]
    models, notice = await seated()
    assert models == [
        "ollama:qwen3:32b",
        "ollama:llama3.3:70b",
        "ollama:qwen3:32b",
        "ollama:gemma3:27b",
    ]
    assert "Ollama" in notice


async def test_reports_that_the_judge_shares_a_model_if_its_own_is_missing(
    server: ModelServer,
) -> None:
    server.models = OLLAMA
    models, notice = await seated()
    assert models[3] == "ollama:qwen3:32b"
    assert notice.endswith(
        "The judge uses the same model as Proposer; choose another with "
        "--set judge_model=PROVIDER:NAME."
    )


async def test_an_unnamed_judge_gets_a_model_that_no_debater_uses(server: ModelServer) -> None:
    embedding, small, huge = "nomic-embed-text", "smollm2:135m", "llama4:400b"
    server.models = [*OLLAMA, "gemma3:27b", embedding, small, huge, "mistral:24b", "phi4:14b"]
    server.embedders = {embedding}
    server.sizes = {small: 0.1, huge: 9, "phi4:14b": 0.7}
    plan = await choose_seats(ForumSettings())  # its own default judge is also Debater 3
    assert [seat.model for seat in plan.seats][2:] == ["ollama:gemma3:27b", "ollama:mistral:24b"]
    assert plan.notice.endswith("The judge is ollama:mistral:24b, because no debater uses it.")
    server.models = [*OLLAMA, "gemma3:27b", embedding, small, huge]
    plan = await choose_seats(ForumSettings())
    assert plan.seats[3].model == "ollama:gemma3:27b"
    assert "The judge uses the same model as Debater 3; choose another with" in plan.notice
    server.models = ["gemma3:latest", "qwen3:32b"]
    pair = [{"name": "A", "model": "gemma3"}, {"name": "B", "model": "qwen3:32b"}]
    tagged = {"seats": pair, "judge_mode": "self_convergence"}
    plan = await choose_seats(ForumSettings.model_validate(tagged))
    assert plan.seats[2].model == "ollama:gemma3"  # gemma3:latest is the same model
    named = await choose_seats(ForumSettings(judge_model="ollama:gemma3:27b"))
    assert "judge" not in named.notice


async def test_prefers_a_key_over_ollama_without_the_default_models(server: ModelServer) -> None:
    server.models = ["qwen3:32b"]
    models, notice = await seated()
    assert set(models) == {"openai:gpt-5-mini"}
    assert "OPENAI_API_KEY" in notice


async def test_without_ollama_a_key_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", "or-canary-0123456789abcdef")
    models, notice = await seated()
    assert set(models) == {"openrouter:openai/gpt-5-mini"}
    assert "OPENROUTER_API_KEY" in notice
    assert "canary" not in notice
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    models, _ = await seated()
    assert set(models) == {"openai:gpt-5-mini"}


@pytest.mark.parametrize(("memory", "model"), [(4_000_000_000, BETTER), (3_999_999_999, EMBEDDED)])
async def test_uses_the_best_embedded_model_that_fits_in_memory(
    memory: int, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "total_memory", lambda: memory)
    models, notice = await seated()
    assert set(models) == {model}
    assert f"using the built-in model {model}." in notice
    assert ("A smaller one is --model embedded:smollm2-135m" in notice) == (model == BETTER)


async def test_prefers_a_downloaded_embedded_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = weights_path(KNOWN[SMALLEST], data_home())
    small.parent.mkdir(parents=True)
    with small.open("wb") as file:
        file.truncate(KNOWN[SMALLEST].size)
    models, notice = await seated()
    assert set(models) == {EMBEDDED}
    assert "`contend models pull qwen2.5-coder-1.5b` downloads a better one (1.1 GB)." in notice
    monkeypatch.setattr(weights, "total_memory", lambda: 2_000_000_000)
    assert "pull" not in (await seated())[1]


async def test_ignores_a_blank_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    models, _ = await seated()
    assert set(models) <= {EMBEDDED, BETTER}


async def test_uses_the_chosen_model_for_the_other_seats_too() -> None:
    models, notice = await seated(skeptic_model="openai:m1")
    assert set(models) == {"openai:m1"}
    assert notice == (
        "No model chosen for Proposer, Synthesizer, Judge; using openai:m1. The judge uses the "
        "same model as Proposer, Skeptic; choose another with --set judge_model=PROVIDER:NAME."
    )


async def test_combines_chosen_models_with_ollama_models(server: ModelServer) -> None:
    server.models = OLLAMA
    models, _ = await seated(skeptic_model="openai:m1")
    assert models == ["ollama:qwen3:32b", "openai:m1", "ollama:qwen3:32b", "ollama:llama3.3:70b"]


async def test_uses_all_models_as_chosen() -> None:
    names = {f"{role}_model": f"m-{role}:7b" for role in ("proposer", "skeptic", "synthesizer")}
    models, notice = await seated(**names, judge_model="openai:m1", skeptic_fallbacks=["qwen3:8b"])
    assert models == [f"ollama:{name}" for name in names.values()] + ["openai:m1"]
    assert notice == "All models chosen by you."


async def test_stores_model_specs_with_their_provider() -> None:
    settings = AdversarialSettings(proposer_model="qwen3:32b", proposer_fallbacks=("qwen3:8b",))
    proposer = (await choose_seats(settings)).seats[0]
    assert (proposer.model, proposer.fallback_models) == ("ollama:qwen3:32b", ("ollama:qwen3:8b",))


def seats_on(model: str, **changes: Any) -> AdversarialSettings:
    models = dict.fromkeys(("proposer", "skeptic", "synthesizer", "judge"), model)
    return AdversarialSettings.model_validate(
        {f"{role}_model": spec for role, spec in models.items()} | changes
    )


async def refused(settings: AdversarialSettings, question: str = "Why?") -> str:
    with pytest.raises(BadInput) as caught:
        await preflight(settings.build_seats(), settings, question)
    return str(caught.value)


async def test_preflight_accepts_available_models(server: ModelServer) -> None:
    settings = seats_on("ollama:m1", skeptic_fallbacks=("openai:m2",))
    await preflight(settings.build_seats(), settings, "Why?")
    assert server.calls == []


async def test_preflight_looks_at_fallbacks_too(server: ModelServer) -> None:
    assert "`ollama pull m9`" in await refused(
        seats_on("openai:m1", judge_fallbacks=("ollama:m9",))
    )


async def test_preflight_finds_what_would_fail(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "`ollama pull m9`" in await refused(seats_on("ollama:m9"))
    assert "Did you mean 'openai:m1'" in await refused(seats_on("opnai:m1"))
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY is not set" in await refused(seats_on("openai:m1"))
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:1")
    assert "not running" in await refused(seats_on("ollama:m1"))
    assert server.calls == []


async def test_a_question_too_long_for_the_window_is_refused() -> None:
    settings = scripted_settings(context_tokens=1000)
    await preflight(settings.build_seats(), settings, "x" * 1500)
    said = await refused(settings, "x" * 1600)
    assert "too long for Proposer's model scripted:proposer" in said
    assert "1,000 tokens" in said


async def test_the_length_is_counted_in_bytes_not_letters() -> None:
    settings = scripted_settings(context_tokens=1000)
    assert "too long" in await refused(settings, "問" * 600)


@pytest.fixture
def trained_for(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    return lambda tokens: monkeypatch.setattr(model_server, "_CONTEXT_LENGTH", tokens)


def num_ctx(**options: Any) -> int:
    spec = parse_spec("ollama:m1")
    model: Any = provider_of(spec).open(spec.name, Options(**options)).model
    return int(model.num_ctx)


async def test_default_ollama_window_fits_a_question_of_50_kilobytes(
    server: ModelServer, trained_for: Callable[[int], None]
) -> None:
    trained_for(131_072)
    settings = seats_on("ollama:m1")
    await preflight(settings.build_seats(), settings, "x" * 51_200)
    assert window_for("m1", settings) == num_ctx() == 32_768


async def test_names_the_setting_that_allows_a_longer_question(
    server: ModelServer, trained_for: Callable[[int], None]
) -> None:
    trained_for(131_072)
    said = await refused(seats_on("ollama:m1"), "x" * 100_000)
    assert "32,768 tokens" in said
    assert "--set context_tokens=46080" in said
    settings = seats_on("ollama:m1", context_tokens=46_080)
    await preflight(settings.build_seats(), settings, "x" * 100_000)
    assert window_for("ollama:m1", settings) == num_ctx(context_tokens=46_080) == 46_080


async def test_an_ollama_model_gets_no_more_than_it_was_trained_for(
    server: ModelServer, trained_for: Callable[[int], None]
) -> None:
    trained_for(8192)
    settings = seats_on("ollama:m1", context_tokens=65_536)
    said = await refused(settings, "x" * 50_000)
    assert "8,192 tokens. Shorten it, or choose a model with a larger window." in said
    assert window_for("ollama:m1", settings) == num_ctx(context_tokens=65_536) == 8192
    assert num_ctx() == 8192
    assert num_ctx(context_tokens=4096) == 4096


async def test_an_embedded_models_window_cannot_be_raised() -> None:
    assert window_for(EMBEDDED, scripted_settings(context_tokens=65_536)) == 8192
    assert window_for(EMBEDDED, scripted_settings(context_tokens=4096)) == 4096
    assert window_for(EMBEDDED, scripted_settings()) == 8192


def test_hosted_models_have_only_the_window_set_by_the_user() -> None:
    assert window_for("openai:m1", scripted_settings()) is None
    assert window_for("openai:m1", scripted_settings(context_tokens=4096)) == 4096


async def test_refuses_a_price_for_an_unknown_provider() -> None:
    settings = scripted_settings(prices={"opnai:m1": (1, 1)})
    assert "Did you mean 'openai:m1'" in await refused(settings)


def test_recognizes_the_demonstration_model() -> None:
    assert is_demonstration(seats_on(EMBEDDED).build_seats())
    assert not is_demonstration(scripted_settings().build_seats())


def test_a_demonstration_fallback_does_not_mark_the_whole_debate() -> None:
    assert not is_demonstration(seats_on("openai:m1", judge_fallbacks=(EMBEDDED,)).build_seats())
    assert is_demonstration_model(EMBEDDED)
    assert not is_demonstration_model("openai:m1")
    assert not is_demonstration_model("embedded:/models/own.gguf")


@pytest.mark.parametrize(
    ("spec", "able"),
    [
        ("openai:gpt-5-mini", True),
        ("openrouter:openai/gpt-5-mini", True),
        ("openai:a-model-of-my-own", None),
        ("ollama:m1", True),
        ("ollama:m2", False),
        (EMBEDDED, False),
        ("embedded:/models/own.gguf", False),
    ],
)
async def test_knows_which_models_can_use_tools(
    server: ModelServer, spec: str, able: bool | None
) -> None:
    server.tool_users = {"m1"}
    await check_models(["ollama:m1", "ollama:m2"])
    parsed = parse_spec(spec)
    assert provider_of(parsed).takes_tools(parsed.name) is able


async def test_uses_a_stored_key_to_choose_models(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        del os.environ[name]
    os.environ["OLLAMA_HOST"] = "http://127.0.0.1:1"
    store_key("OPENAI_API_KEY", "sk-stored-0123456789")
    plan = await choose_seats(AdversarialSettings())
    assert {seat.model for seat in plan.seats} == {"openai:gpt-5-mini"}
    assert os.environ["OPENAI_API_KEY"] == "sk-stored-0123456789"
