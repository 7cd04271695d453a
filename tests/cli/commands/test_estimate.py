"""The options of `contend estimate`, which come from `contend ask`."""

from typing import Any

import typer

from contend.cli.main import app


def _options(command: str) -> dict[str, Any]:
    group: Any = typer.main.get_command(app)
    return {each.name: each for each in group.commands[command].params}


def test_its_options_are_those_of_ask_that_make_sense_without_a_debate() -> None:
    left_out = {"dry_run", "cassette", "follow_up", "events", "plain", "server"}
    assert _options("estimate").keys() == _options("ask").keys() - left_out


def test_quiet_promises_no_answer() -> None:
    assert _options("ask")["quiet"].help == "Print only the answer."
    assert _options("estimate")["quiet"].help == "Print the estimate without the notes below it."
