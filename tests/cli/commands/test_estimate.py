from typing import Any

import typer

from contend.cli.main import app


def _options(command: str) -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    return {each.name: each for each in group.commands[command].params}


def test_estimate_has_the_applicable_options_of_ask() -> None:
    left_out = {"dry_run", "cassette", "follow_up", "events", "plain", "server"}
    assert _options("estimate").keys() == _options("ask").keys() - left_out


def test_help_for_quiet_does_not_mention_an_answer() -> None:
    assert _options("ask")["quiet"].help == "Print only the answer."
    assert _options("estimate")["quiet"].help == "Print the estimate without the notes below it."
