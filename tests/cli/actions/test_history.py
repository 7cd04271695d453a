"""`contend history`: the steps of a debate by round, phase and speaker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import Command
from tests.support.model_server import ModelServer, Reply
from tests.support.protocols import PROTOCOLS, ask_in, script_of


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Reply(""), models=None) as running:
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_turn_is_in_the_history(protocol: str, contend: Command, models: ModelServer) -> None:
    models.script = script_of(protocol)
    record = contend(*ask_in(protocol), "--json").json
    steps = contend("history", record["id"], "--json").json
    assert [turn for step in steps for turn in step["turns"]] == [t["id"] for t in record["turns"]]
    assert [step["nodes"] for step in steps[1:]] == [step["next"] for step in steps[:-1]]
    assert (steps[0]["nodes"], steps[-1]["nodes"]) == (["retrieve"], ["store"])
    assert steps[-1]["next"] == []


def test_history_prints_turns_and_fork_points(tmp_path: Path, models: ModelServer) -> None:
    models.script = script_of("adversarial")
    contend = Command(tmp_path / "home", models)
    debate = contend(*ask_in("adversarial"), "--json").json["id"]
    printed = contend("history", debate).out
    assert "2:critique" in printed
    assert "r2.critique.skeptic" in printed
