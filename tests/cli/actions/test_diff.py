"""`contend diff`: where two debates diverge, and how their results differ."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cli.actions.test_ask_moderated import SIDES
from tests.cli.support import Command, debaters
from tests.support.model_server import ModelServer, Reply
from tests.support.protocols import PROTOCOLS, ask_in, script_of


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Reply(""), models=None) as running:
        yield running


def _other_answer(role: str, _: int, reply: Reply) -> Reply:
    return replace(reply, text="# Answer\n\nSplit it.") if role == "synthesizer" else reply


def _fork(contend: Command, models: ModelServer) -> tuple[str, str]:
    """Return a debate of three rounds and its fork with another Skeptic and answer."""
    models.script = script_of("adversarial")
    parent = contend(*ask_in("adversarial"), "--json").json["id"]
    models.script = debaters(_other_answer)
    other = ["--at", "2", "--set", "skeptic_model=openai:other", "--set", "max_rounds=4"]
    return parent, contend("fork", parent, *other, "--json").json["id"]


def test_diff_shows_where_a_fork_diverges_from_its_parent(
    contend: Command, models: ModelServer
) -> None:
    found = contend("diff", *_fork(contend, models), "--json").json
    assert found["shared_turns"] == 5
    assert found["turns"] == [
        {"turn": "r3.critique.skeptic", "change": "differs"},
        {"turn": "r3.synthesize.synthesizer", "change": "differs"},
    ]
    facts = {fact["name"]: (fact["first"], fact["second"]) for fact in found["facts"]}
    assert facts["Model of skeptic"] == ("openai:m", "openai:other")
    assert facts["Setting max_rounds"] == ("3", "4")
    assert "Protocol" not in facts
    assert ["second", "Split it."] in found["answer"]


def test_it_is_readable_without_colours(contend: Command, models: ModelServer) -> None:
    shown = contend("diff", *_fork(contend, models)).out
    assert "The first 5 turns are the same." in shown
    assert "r3.critique.skeptic: differs" in shown
    assert "{+Split it.+}" in shown


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_debates_of_every_protocol_are_compared(
    protocol: str, contend: Command, models: ModelServer
) -> None:
    models.script = script_of(protocol)
    first, second = (contend(*ask_in(protocol), "--json").json["id"] for _ in range(2))
    compared = contend("diff", first, second, "--json")
    assert compared.json["turns"] == []
    assert contend("diff", first, second).code == 0
    assert json.loads(compared.out)["shared_turns"] > 4


def test_positions_that_differ_are_shown(contend: Command, models: ModelServer) -> None:
    models.script = script_of("moderated")
    asked = ask_in("moderated")
    other = ["Ann: It should be sold" if word == SIDES[1] else word for word in asked]
    first, second = (contend(*each, "--json").json["id"] for each in (asked, other))
    facts = contend("diff", first, second, "--json").json["facts"]
    position = {"first": "It should be rewritten", "second": "It should be sold"}
    assert {"name": "Position of Ann", **position} in facts
    assert not any(fact["name"] in ("Position of Ben", "Setting positions") for fact in facts)
    lines = " ".join(contend("diff", first, second).out.split())
    assert "Position of Ann It should be rewritten It should be sold" in lines


def test_a_debate_is_not_compared_with_itself(contend: Command, models: ModelServer) -> None:
    models.script = script_of("adversarial")
    debate = contend(*ask_in("adversarial"), "--json").json["id"]
    refused = contend("diff", debate, debate[:8])
    assert (refused.code, "same debate" in refused.err) == (2, True)
    unknown = contend("diff", debate, "ffffffff")
    assert (unknown.code, "No debate has the id" in unknown.err) == (2, True)
