"""A model server and the command that talks to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Command, debaters
from tests.support.model_server import ModelServer


@pytest.fixture(autouse=True)
def still_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redraw only on request, on a terminal that rewraps its lines."""
    monkeypatch.setattr("contend.cli.view.live._FRAMES_PER_SECOND", 0.001)
    monkeypatch.delenv("XTERM_VERSION", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m", "other"]) as running:
        yield running


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer) -> Command:
    return Command(tmp_path / "home", models)
