"""Share one server between tests, because it starts slowly."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import link_weights
from tests.dev.debating import speak
from tests.dev.dev_server import DevServer
from tests.support.model_server import ModelServer


@pytest.fixture(scope="session")
def models() -> Iterator[ModelServer]:
    names = ["proposer", "skeptic", "synthesizer", "judge", "broken", "slow"]
    with ModelServer(speak, models=names) as server:
        yield server


@pytest.fixture(scope="session")
def server(
    models: ModelServer,
    tmp_path_factory: pytest.TempPathFactory,
    embedding_weights: list[Path],
    template_index: Path,
) -> Iterator[DevServer]:
    home = tmp_path_factory.mktemp("dev")
    link_weights(embedding_weights, home / "contend", template_index)
    running = DevServer(home, models).start()
    yield running
    running.stop()
    assert "BlockingError" not in running.log.read_text()
