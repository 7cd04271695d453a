"""Resuming a debate reports prompts or settings that changed while it was paused."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from contend import prompts
from tests.cli.support import ASK, Command, change_database, debaters
from tests.support.model_server import ModelServer


@pytest.fixture
def contend(tmp_path: Path) -> Iterator[Command]:
    with ModelServer(debaters(), models=["m"]) as models:
        yield Command(tmp_path / "home", models)


def test_resume_reports_nothing_if_nothing_changed(contend: Command) -> None:
    paused = contend(*ASK, "--pause", "each_round", "--json").json["id"]
    assert "have changed" not in contend("resume", paused).out


def test_resume_reports_changed_prompts(
    contend: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused = contend(*ASK, "--pause", "each_round", "--json").json["id"]
    (tmp_path / "adversarial").mkdir()
    (tmp_path / "adversarial" / "extra.md").write_text("More.", "utf-8")
    monkeypatch.setattr(prompts, "__path__", [*prompts.__path__, str(tmp_path)])
    resumed = contend("resume", paused)
    assert "The prompts have changed since this debate stopped" in " ".join(resumed.out.split())


def test_resume_reports_changed_settings(contend: Command) -> None:
    paused = contend(*ASK, "--pause", "each_round", "--json").json["id"]
    hashes = """UPDATE debate_events SET event = replace(event, '"settings":"', '"settings":"0')"""
    change_database(contend, hashes)
    lines = contend("resume", paused, "--events").out.splitlines()
    (said,) = [each for each in map(json.loads, lines) if each["event"] == "resumed"]
    assert said["content"].startswith("This version of Contend has other settings")
    assert said["metadata"]["run_with"].keys() == {"prompts", "settings"}
