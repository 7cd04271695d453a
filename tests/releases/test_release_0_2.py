"""Show and resume debates stored before release 0.2."""

from pathlib import Path

import pytest

from tests.cli.support import spoken
from tests.releases.make import RUNS
from tests.releases.test_release_0_1 import MODELS, SCRIPTS, known_to, open_stored, read_stored
from tests.support.model_server import ModelServer

FOLDER = Path(__file__).parent / "release_0_2"


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_debate_is_resumed_without_paying_twice(name: str, tmp_path: Path) -> None:
    stored = read_stored(FOLDER, name)
    with ModelServer(SCRIPTS[name], models=MODELS) as models:
        contend = open_stored(FOLDER, name, tmp_path / "home", models)
        ended = contend.here("resume", stored["id"], "--quiet", "--json")
        assert ended.code == 0, ended.err
        assert sorted(spoken(ended.json)) == sorted(spoken(stored["record"]))
        assert len(models.calls) == stored["calls"] - stored["paid"]


@pytest.mark.parametrize("name", RUNS)
def test_a_finished_debate_is_shown_as_it_was(name: str, tmp_path: Path) -> None:
    stored = read_stored(FOLDER, name)["record"]
    with ModelServer(SCRIPTS[name], models=MODELS) as models:
        contend = open_stored(FOLDER, f"{name}.done", tmp_path / "home", models)
        shown = contend.here("show", stored["id"], "--json").json
        assert known_to(stored, shown) == stored
        assert not models.calls
