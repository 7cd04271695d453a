"""What every test stands on: an empty environment, a data folder of its own, closed models."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from models import providers
from tests.support.model_server import ModelServer, always
from tests.support.scripted import register_cast

# What could lead a test to a real provider, or a real user's data.
_LEAKS = ("OPENAI_", "OPENROUTER_", "ANTHROPIC_", "OLLAMA_", "CONTEND_", "LANGSMITH_", "LANGCHAIN_")
# Nothing listens there, so an Ollama on the developer's machine is never found.
_NOBODY = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(_LEAKS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CONTEND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OLLAMA_HOST", _NOBODY)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")


@pytest.fixture(autouse=True)
async def closed_models() -> AsyncIterator[None]:
    yield
    await providers.close_models()


@pytest.fixture(autouse=True)
def scripted_provider() -> Iterator[None]:
    register_cast()
    yield
    providers._registered.pop("scripted", None)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A running model server that `openai:`, `openrouter:` and `ollama:` specs all reach."""
    with ModelServer(always("An answer.")) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
        monkeypatch.setenv("OPENROUTER_BASE_URL", running.openrouter_url)
        monkeypatch.setenv("OPENROUTER_API_KEY", "or-canary-0123456789abcdef")
        monkeypatch.setenv("OLLAMA_HOST", running.url)
        yield running
