"""From a spec to a model, and the checks before anything is paid."""

import asyncio

import pytest

from graph.errors import BadInput
from models import providers
from models.providers import (
    ModelSpec,
    Opened,
    Options,
    Provider,
    check_models,
    close_models,
    open_model,
    parse_spec,
    register,
)
from tests.support.model_server import ModelServer
from tests.support.scripted import ScriptedChat


@pytest.mark.parametrize(
    ("written", "provider", "name"),
    [
        ("ollama:qwen3:32b", "ollama", "qwen3:32b"),
        ("qwen3:32b", "ollama", "qwen3:32b"),
        ("nomic-embed-text", "ollama", "nomic-embed-text"),
        (" openai:gpt-5-mini ", "openai", "gpt-5-mini"),
        ("openrouter:vendor/model:free", "openrouter", "vendor/model:free"),
        ("embedded:smollm2", "embedded", "smollm2"),
        ("anthropic:some-model", "anthropic", "some-model"),
        # names of Ollama models that look a little like providers
        ("llama3:8b", "ollama", "llama3:8b"),
        ("llama3.3:70b", "ollama", "llama3.3:70b"),
        ("codellama:7b", "ollama", "codellama:7b"),
        ("mistral:7b", "ollama", "mistral:7b"),
        ("deepseek-r1:14b", "ollama", "deepseek-r1:14b"),
        ("cogito:8b", "ollama", "cogito:8b"),
        ("gemma3:27b", "ollama", "gemma3:27b"),
    ],
)
def test_a_spec_names_provider_and_model(written: str, provider: str, name: str) -> None:
    assert parse_spec(written) == ModelSpec(provider, name)
    assert parse_spec(str(parse_spec(written))) == ModelSpec(provider, name)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("opnai:x", "Did you mean 'openai:x'?"),
        ("olama:qwen3", "Did you mean 'ollama:qwen3'?"),
        ("openruter:a/b", "Did you mean 'openrouter:a/b'?"),
        ("anthropc:x", "Did you mean 'anthropic:x'?"),
        ("openai:", "names a provider but no model"),
        ("openai", "names a provider but no model"),
        ("", "No provider is called ''"),
        (":x", "No provider is called ''"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused_with_a_hint(written: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_spec(written)
    assert said in str(refused.value)


async def test_a_model_is_opened_once_and_closed_with_its_loop() -> None:
    opened: list[str] = []
    closed: list[str] = []

    def open_one(name: str, options: Options) -> Opened:
        async def close() -> None:
            closed.append(name)

        opened.append(name)
        return Opened(ScriptedChat(part=name), close)

    async def check(names: list[str]) -> None: ...

    register("counted", Provider(open=open_one, check=check))
    try:
        spec = parse_spec("counted:a")
        assert open_model(spec, Options()) is open_model(spec, Options())
        assert open_model(spec, Options(temperature=1)) is not open_model(spec, Options())
        await close_models()
        assert (opened, closed) == (["a", "a"], ["a", "a"])
        await close_models()
        assert closed == ["a", "a"]
    finally:
        providers._registered.pop("counted")


def refused(*specs: str) -> str:
    with pytest.raises(BadInput) as caught:
        asyncio.run(check_models(specs))
    return str(caught.value)


def test_models_that_are_there_pass(server: ModelServer) -> None:
    asyncio.run(check_models(["openai:m1", "ollama:m2", "openrouter:m1", "m1", "scripted:any"]))
    assert server.calls == []


def test_a_missing_key_is_named(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENROUTER_API_KEY", "  ")
    assert "OPENAI_API_KEY is not set" in refused("openai:m1")
    assert "OPENROUTER_API_KEY is not set" in refused("openrouter:m1")


def test_a_refused_key_is_said_without_it(server: ModelServer) -> None:
    server.api_key = "another"
    said = refused("openai:m1")
    assert "refused the key in OPENAI_API_KEY" in said
    assert "canary" not in said


def test_an_unknown_model_comes_with_the_nearest(server: ModelServer) -> None:
    server.models = ["gpt-5-mini", "qwen3:32b"]
    assert "The nearest it has is 'openai:gpt-5-mini'" in refused("openai:gpt5-mini")
    said = refused("ollama:qwen3:30b")
    assert "'ollama:qwen3:32b'" in said
    assert "ollama pull qwen3:30b" in said
    assert server.calls == []


def test_a_pulled_model_may_be_named_without_its_tag(server: ModelServer) -> None:
    server.models = ["nomic:latest"]
    asyncio.run(check_models(["ollama:nomic", "ollama:nomic:latest"]))


def test_ollama_that_does_not_run_is_said_with_the_fix() -> None:
    assert "`ollama serve`" in refused("ollama:m1")


def test_a_service_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    said = refused("openai:m1")
    assert "cannot be reached at http://127.0.0.1:1/v1" in said
    assert "canary" not in said


def test_a_provider_whose_package_is_missing_is_refused() -> None:
    assert "needs a package that is not installed" in refused("groq:x")
