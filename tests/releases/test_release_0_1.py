"""Show and resume debates stored by release 0.1."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Command, debaters, spoken
from tests.faults import test_kill_forecast, test_kill_forum, test_kill_tools
from tests.support.floor_server import floor_script, with_block
from tests.support.model_server import ModelServer, Reply, Request, Script

FOLDER = Path(__file__).parent / "release_0_1"
READ_BY_SCHEMA = json.dumps({"ready": False, "score": None, "points": []})
UNREADABLE = "This is critique 2, and it says neither what is open nor what is settled."
CLAIMS = ["Reviews take a day.", "Ten people review."]


def _adversarial(role: str, number: int, reply: Reply) -> Reply:
    if (role, number) == ("proposer", 3):
        # Up to release 0.2 a Proposer saw only the last critique, so the script counted one less.
        return replace(reply, text=reply.text.replace("3", "2"))
    if role == "extraction":
        return replace(reply, text=READ_BY_SCHEMA)
    return replace(reply, text=UNREADABLE) if (role, number) == ("skeptic", 2) else reply


def _moderated(what: str, request: Request, reply: Reply) -> Reply:
    return with_block(reply, request, claims=CLAIMS) if what == "claims" else reply


SCRIPTS: dict[str, Script] = {
    "adversarial": debaters(_adversarial),
    "waiting": debaters(),
    "forum": test_kill_forum._script,
    "refine": debaters(),
    "tools": test_kill_tools._using_tools,
    "moderated": floor_script(_moderated),
    "forecast": test_kill_forecast._script,
}
MODELS = ["m", "ann", "ben", "cyd", "judge"]


def read_stored(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


def open_stored(folder: Path, name: str, home: Path, models: ModelServer) -> Command:
    home.mkdir()
    (home / "contend.db").write_bytes(gzip.decompress((folder / f"{name}.db.gz").read_bytes()))
    return Command(home, models)


def known_to(old: Any, new: Any) -> Any:
    """Return new data without the fields added since."""
    if isinstance(old, dict) and isinstance(new, dict):
        # Warnings are made when a record is read, in the words of today.
        return {
            key: old[key] if key == "warnings" and new[key] else known_to(old[key], new[key])
            for key in old
            if key in new
        }
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [known_to(*pair) for pair in zip(old, new, strict=True)]
    return new


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_stopped_debate_is_resumed_without_paying_twice(name: str, tmp_path: Path) -> None:
    stored = read_stored(FOLDER, name)
    with ModelServer(SCRIPTS[name], models=MODELS) as models:
        contend = open_stored(FOLDER, name, tmp_path / "home", models)
        ended = contend.here("resume", stored["id"], "--quiet", "--json")
        while ended.code == 3:  # it waits for a person after each round
            ended = contend.here("resume", stored["id"], "--quiet", "--json")
        said = [turn for turn in spoken(ended.json) if not turn[0].endswith("-other-order")]
        assert sorted(said) == sorted(spoken(stored["record"]))
        # Release 0.1 read a formal debate in one order only.
        added = len(ended.json["turns"]) - len(said)
        assert added == (3 if name == "moderated" else 0)
        assert len(models.calls) == stored["calls"] - stored["paid"] + added


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "waiting"])
def test_a_finished_debate_is_shown_as_it_was(name: str, tmp_path: Path) -> None:
    stored = read_stored(FOLDER, name)["record"]
    if name == "moderated":  # release 0.1 gave the winner's name here, and its seat id elsewhere
        names = {seat["name"]: seat["id"] for seat in stored["seats"]}
        stored["winner"] = names.get(stored["winner"])
        stored["duration_ms"] = stored["timing"]["total_ms"]  # release 0.1 counted pauses too
    with ModelServer(SCRIPTS[name], models=MODELS) as models:
        contend = open_stored(FOLDER, f"{name}.done", tmp_path / "home", models)
        shown = contend.here("show", stored["id"], "--json").json
        assert known_to(stored, shown) == stored
        assert not models.calls
