"""Share one cluster of PostgreSQL, Redis and two Aegra workers."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.workers import Missing, Workers, find_redis, prepare_python
from tests.cli.support import Command
from tests.cluster.debating import NAMES, Debaters
from tests.support.model_server import ModelServer
from tests.support.postgres import PostgresServer

# Set in CI, where these tests must not be skipped.
_REQUIRED = bool(os.environ.get("REQUIRE_CLUSTER"))
# A busy machine may delay a heartbeat for long, and a worker that is late loses its debates.
_PATIENT = {
    "LEASE_DURATION_SECONDS": "30",
    "HEARTBEAT_INTERVAL_SECONDS": "2",
    "REAPER_INTERVAL_SECONDS": "1",
}


@pytest.fixture(scope="session")
def aegra() -> None:
    try:
        find_redis()
        prepare_python()
    except Missing as missing:
        if _REQUIRED:
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def debaters() -> Debaters:
    return Debaters()


@pytest.fixture(scope="session")
def models(debaters: Debaters) -> Iterator[ModelServer]:
    with ModelServer(debaters, models=NAMES) as running:
        debaters.server = running
        yield running


@pytest.fixture(scope="session")
def workers(
    aegra: None,
    models: ModelServer,
    postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Workers]:
    home = tmp_path_factory.mktemp("cluster")
    environment = Command(home / "data", models).env | _PATIENT
    with Workers(home, postgres.create(), 2, environment) as running:
        yield running


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer) -> Command:
    """Return a command whose data folder the workers do not share."""
    return Command(tmp_path / "home", models)
