"""Show, resume and replay debates with recordings."""

import json
from pathlib import Path

import pytest

from tests.cli.support import debaters, spoken
from tests.releases import test_release_0_2
from tests.releases.make import RUNS
from tests.releases.test_release_0_1 import MODELS, SCRIPTS, open_stored, read_stored
from tests.support.model_server import ModelServer

FOLDER = Path(__file__).parent / "release_0_2_recorded"
STEP_ERRORS = ("follows instead of", "the step fails")


@pytest.mark.parametrize("name", RUNS)
def test_a_killed_debate_is_resumed_without_paying_twice(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_release_0_2, "FOLDER", FOLDER)
    test_release_0_2.test_a_killed_debate_is_resumed_without_paying_twice(name, tmp_path)


@pytest.mark.parametrize("name", RUNS)
def test_a_finished_debate_is_shown_and_replayed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_release_0_2, "FOLDER", FOLDER)
    test_release_0_2.test_a_finished_debate_is_shown_as_it_was(name, tmp_path)
    stored = read_stored(FOLDER, name)["record"]
    with ModelServer(SCRIPTS[name], models=MODELS) as models:
        contend = open_stored(FOLDER, f"{name}.done", tmp_path / "again", models)
        played = contend.here("replay", stored["id"], "--events", "--speed", "1e9")
        events = [json.loads(line) for line in played.out.splitlines()]
        assert (events[0]["event"], events[-1]["event"]) == ("debate_start", "complete")
        strict = contend.here("replay", stored["id"], "--strict", "--json")
        assert strict.code in (0, 5), strict.err
        # A later release may send other prompts, but it must still take the same steps.
        differing = [each["what"] for each in strict.json["differences"]]
        assert [what for what in differing if any(sign in what for sign in STEP_ERRORS)] == []
        assert strict.json["calls"] > 0
        assert not models.calls


def test_a_finished_debate_can_be_forked(tmp_path: Path) -> None:
    stored = read_stored(FOLDER, "adversarial")["record"]
    with ModelServer(SCRIPTS["adversarial"], models=MODELS) as models:
        contend = open_stored(FOLDER, "adversarial.done", tmp_path / "home", models)
        forked = contend.here("fork", stored["id"], "--at", "1", "--json")
        assert forked.code == 0, forked.err
        assert sorted(spoken(forked.json)) == sorted(spoken(stored))


def test_a_debate_waiting_for_a_person_can_be_answered(tmp_path: Path) -> None:
    with ModelServer(debaters(), models=MODELS) as models:
        contend = open_stored(FOLDER, "person", tmp_path / "home", models)
        (waiting,) = contend.here("list", "--json").json
        said = "No critical issues.\n\nReady for synthesis"
        done = contend.here("resume", waiting["id"], "--say", said, "--json")
        assert done.code == 0, done.err
        assert done.json["stop_reason"] == "skeptic_ready"
