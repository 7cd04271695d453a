"""Shared fixtures: a clean environment, a data folder per test, closed models."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest

from contend.debates.repository import Repository
from contend.graph.checkpoints.postgres import read_address
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.settings import AdversarialSettings
from contend.models.embeddings import EMBEDDED_EMBEDDING, Embedder
from contend.models.providers import registry
from contend.models.providers.weights import (
    DEFAULT_EMBEDDING,
    EMBEDDINGS,
    is_pulled,
    pull,
    weights_path,
)
from contend.retrieval.template_search import open_searcher
from tests.support.chromium import how_to_get_a_browser
from tests.support.model_server import ModelServer, always
from tests.support.postgres import PostgresServer
from tests.support.scripted import register_cast

# What could lead a test to a real provider, or a real user's data.
_LEAKS = (
    *("OPENAI_", "OPENROUTER_", "ANTHROPIC_", "OLLAMA_", "LANGSMITH_", "LANGCHAIN_"),
    *("CONTEND_", "DATABASE_URL", "PG"),
    *registry.PROVIDER_KEYS.values(),
)
# Nothing listens there, so an Ollama on the developer's machine is never found.
_NOBODY = "http://127.0.0.1:1"

_KEPT = Path(__file__).parents[1] / ".cache" / "home"

# Started in the background, a process ignores Ctrl-C and so do all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadlines: a busy machine is slow, which says nothing about the code.
hypothesis.settings.register_profile(
    "quick",
    max_examples=100,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "long", hypothesis.settings.get_profile("quick"), max_examples=2500
)
hypothesis.settings.load_profile("quick")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Report browser tests that this machine cannot run."""
    missing = how_to_get_a_browser()
    if missing and config.args_source != pytest.Config.ArgsSource.ARGS:
        terminalreporter.write_line(f"Skipped the browser tests: {missing}.", yellow=True)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(_LEAKS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CONTEND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OLLAMA_HOST", _NOBODY)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    # Tests marked `langsmith` are plain tests here: they must pass without a key.
    monkeypatch.setenv("LANGSMITH_TEST_TRACKING", "false")
    monkeypatch.setitem(sys.modules, "keyring", None)


@pytest.fixture(autouse=True)
async def closed_models() -> AsyncIterator[None]:
    yield
    await registry.close_models()


@pytest.fixture(autouse=True)
def forgotten_ollama() -> Iterator[None]:
    """Clear cached Ollama data, because another test's server may get the same port."""
    yield
    if provider := sys.modules.get("contend.models.providers.ollama"):
        provider._shown.clear()


@pytest.fixture(autouse=True)
def scripted_provider() -> Iterator[None]:
    register_cast()
    yield
    registry._registered.pop("scripted", None)


@pytest.fixture(scope="session")
def embedding_weights() -> list[Path]:
    """The files of the real built-in embedding model, downloaded once per checkout."""
    return [
        weights_path(file, _KEPT) if is_pulled(file, _KEPT) else pull(file, _KEPT, lambda *_: None)
        for file in EMBEDDINGS[DEFAULT_EMBEDDING]
    ]


@pytest.fixture(scope="session")
def template_index(embedding_weights: list[Path]) -> Path:
    """The index of the shipped templates, built once per checkout because it is slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONTEND_HOME", str(_KEPT))
        asyncio.run(open_searcher(Embedder(EMBEDDED_EMBEDDING, AdversarialSettings())))
    return _KEPT / "index"


@pytest.fixture
def embedding_model(embedding_weights: list[Path], template_index: Path, tmp_path: Path) -> str:
    """The built-in embedding model, installed in this test's data folder."""
    return link_weights(embedding_weights, tmp_path / "home", template_index)


def link_weights(weights: list[Path], home: Path, index: Path | None = None) -> str:
    """Link model files and copy their index into a data folder; return the model spec."""
    (home / "models").mkdir(parents=True, exist_ok=True)
    for file in weights:
        os.link(file, home / "models" / file.name)
    if index:
        shutil.copytree(index, home / "index")
    return EMBEDDED_EMBEDDING


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A running model server for `openai:`, `openrouter:` and `ollama:` models."""
    with ModelServer(always("An answer.")) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
        monkeypatch.setenv("OPENROUTER_BASE_URL", running.openrouter_url)
        monkeypatch.setenv("OPENROUTER_API_KEY", "or-canary-0123456789abcdef")
        monkeypatch.setenv("OLLAMA_HOST", running.url)
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running PostgreSQL server, shared by all tests of this process."""
    with PostgresServer() as running:
        yield running


@pytest.fixture(scope="session")
def postgres_template(postgres: PostgresServer) -> str:
    """The name of an empty template database, copied for each test."""
    url = postgres.create()
    Repository(read_address(url)).close()

    async def set_up() -> None:
        async with checkpointer():
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATABASE_URL", url)
        asyncio.run(set_up())
    return url.rpartition("/")[2]


@pytest.fixture
def postgres_url(
    postgres: PostgresServer, postgres_template: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The URL of a separate database for this test's debates."""
    url = postgres.create(postgres_template)
    monkeypatch.setenv("DATABASE_URL", url)
    yield url
    postgres.drop(url)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """Run the test once per database type; return the type."""
    if request.param == "postgres":
        request.getfixturevalue("postgres_url")
    return str(request.param)
