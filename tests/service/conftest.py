"""Fixtures for the service and an authenticated client."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from starlette.testclient import TestClient

from contend.service.app import create_app
from contend.service.options import ServiceOptions
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer

LOCAL = ("127.0.0.1", 50000)
TOKEN = "canary-token-0123456789abcdef"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(forecasters(), models=["m"]) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
        yield running


@contextmanager
def service(**settings: str) -> Iterator[TestClient]:
    """Run the service with a test client."""
    options = ServiceOptions(model="openai:m", assignments={"max_retries": "0", **settings})
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(
        create_app(options), base_url="http://127.0.0.1", headers=headers, client=LOCAL
    ) as running:
        yield running


@pytest.fixture
def client(models: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("CONTEND_SERVICE_TOKEN", TOKEN)
    with service() as running:
        yield running
