"""Show, resume and replay debates with compressed and shared checkpoints."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Command, spoken
from tests.releases.make import NEWER_SCRIPTS, STOPPED
from tests.releases.test_release_0_1 import MODELS, known_to, open_stored
from tests.releases.test_release_0_2_recorded import STEP_ERRORS
from tests.support.model_server import ModelServer

FOLDER = Path(__file__).parent / "release_0_2_shared"


def _read(name: str) -> Any:
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


def _replay_strictly(contend: Command, debate: str) -> int:
    """Replay without a model; return the number of recorded calls."""
    strict = contend("replay", debate, "--strict", "--json")
    assert strict.code in (0, 5), strict.err
    # A later release may send other prompts, but it must still take the same steps.
    differing = [each["what"] for each in strict.json["differences"]]
    assert [what for what in differing if any(sign in what for sign in STEP_ERRORS)] == []
    assert strict.json["steps"] > 0
    return int(strict.json["calls"])


@pytest.mark.parametrize("name", [*STOPPED, "fork"])
def test_a_stopped_debate_is_shown_resumed_and_replayed(name: str, tmp_path: Path) -> None:
    stored = _read(name)
    with ModelServer(NEWER_SCRIPTS[name], models=MODELS) as models:
        contend = open_stored(FOLDER, name, tmp_path / "home", models)
        shown = contend("show", stored["id"], "--json").json
        assert known_to(stored["shown"], shown) == stored["shown"]
        before = _replay_strictly(contend, stored["id"])
        assert not models.calls
        ended = contend("resume", stored["id"], "--quiet", "--json")
        assert ended.code == 0, ended.err
        assert [[*turn] for turn in sorted(spoken(ended.json))] == stored["spoken"]
        made = len(models.calls)
        assert made == stored["calls_to_come"]
        assert _replay_strictly(contend, stored["id"]) == before + made
        assert len(models.calls) == made


def test_earlier_spending_counts_towards_the_budget(tmp_path: Path) -> None:
    stored = _read("budget")
    with ModelServer(NEWER_SCRIPTS["budget"], models=MODELS) as models:
        contend = open_stored(FOLDER, "budget", tmp_path / "home", models)
        refused = contend("resume", stored["id"], "--budget", "2000")
        assert (refused.code, "were spent before" in refused.err) == (2, True), refused.err
        assert not models.calls


def test_a_fork_keeps_its_parent(tmp_path: Path) -> None:
    stored = _read("fork")
    with ModelServer(NEWER_SCRIPTS["fork"], models=MODELS) as models:
        contend = open_stored(FOLDER, "fork", tmp_path / "home", models)
        family = contend("tree", stored["id"], "--json").json
        assert [each["id"] for each in family["forks"]] == [stored["id"]]
        parent = contend("show", family["id"], "--json").json
        assert [[*turn] for turn in sorted(spoken(parent))] == stored["spoken"]
        played = contend("replay", stored["id"], "--events", "--speed", "1e9").out.splitlines()
        turns = [each for each in map(json.loads, played) if each["event"] == "seat_complete"]
        assert [each["metadata"]["turn"] for each in turns[:2]] == [
            turn["id"] for turn in parent["turns"][:2]
        ]
        _replay_strictly(contend, parent["id"])
        assert not models.calls


def test_a_debate_waiting_for_a_person_can_be_answered(tmp_path: Path) -> None:
    stored = _read("person")
    with ModelServer(NEWER_SCRIPTS["person"], models=MODELS) as models:
        contend = open_stored(FOLDER, "person", tmp_path / "home", models)
        assert contend("show", stored["id"], "--json").json["status"] == "paused"
        said = "No critical issues.\n\nReady for synthesis"
        done = contend("resume", stored["id"], "--say", said, "--json")
        assert done.code == 0, done.err
        assert done.json["stop_reason"] == "skeptic_ready"
        assert len(models.calls) == stored["calls_to_come"]
        _replay_strictly(contend, stored["id"])
