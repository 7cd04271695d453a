"""Killing a forecast in every part changes no result and repeats no finished call."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from contend.graph.forecast_contract.terms import ROLES
from tests.cli.support import Command, spoken
from tests.faults.killing import Killer, mark
from tests.support.forecasting import QUESTION, asked_for, forecasters, round_of, scored_role
from tests.support.model_server import ModelServer, Reply, Request
from tests.support.scripted import as_sent

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OUTCOMES = ["--outcome", "yes: It opens", "--outcome", "no: It does not"]
RUN = ["ask", QUESTION, "-p", "forecast", "-m", "openai:m", *OUTCOMES, "--quiet"]

Key = tuple[str, int, str]
"""The task, the round and the role."""

DEBATERS: list[str] = [role for role in ROLES if role != "judge"]
# What follows each other; the calls of several roles in one part are made at once. In the last
# round the judge argues behind the others, while their arguments are scored.
PARTS: list[list[list[Key]]] = [
    [[("argument", 1, role), ("score", 1, role)] for role in ROLES],
    [[("argument", 2, role), ("score", 2, role)] for role in ROLES],
    [[("argument", 3, role)] for role in DEBATERS],
    [[("score", 3, role)] for role in DEBATERS]
    + [[("argument", 3, "judge"), ("score", 3, "judge")]],
    [[("verdict", 0, "judge")]],
]
CALLS = [key for part in PARTS for chain in part for key in chain]
VICTIMS: list[Key] = [
    ("argument", 1, "optimist"),
    ("score", 1, "pessimist"),
    ("argument", 2, "judge"),
    ("score", 2, "historian"),
    ("argument", 3, "contrarian"),
    ("score", 3, "optimist"),
    ("argument", 3, "judge"),
    ("score", 3, "judge"),
    ("verdict", 0, "judge"),
]


def _kept(victim: Key) -> list[Key]:
    """Return each role's calls up to this part that come before a remaining victim."""
    to_come = VICTIMS[VICTIMS.index(victim) :]
    last = next(at for at, part in enumerate(PARTS) if any(victim in chain for chain in part))
    chains = (chain for part in PARTS[: last + 1] for chain in part)
    return [key for chain in chains for key in takewhile(lambda key: key not in to_come, chain)]


def _key(request: Request) -> Key:
    sent = as_sent(request)
    found = re.search(r"You are the (\w+) of the panel", request.instructions)
    assert found, request.instructions
    return asked_for(sent), round_of(sent), scored_role(sent).lower() or found[1].lower()


def _script(request: Request) -> Reply:
    reply: Reply = forecasters()(request)
    return replace(reply, text=f"{mark(_key(request))} {reply.text}")


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(_script, models=["m"]) as running:
        yield running


def _told(record: dict[str, Any]) -> Any:
    """Return the parts of the record that must not change."""
    parts = ("probability_distribution", "debate_log", "consensus_score", "disagreement_map")
    return sorted(spoken(record)), [record["forecast"][part] for part in parts], record["degraded"]


def test_resumes_a_forecast_after_a_kill_in_every_part(tmp_path: Path, models: ModelServer) -> None:
    undisturbed = Command(tmp_path / "calm", models).here(*RUN, "--json").json
    assert Counter(_key(call.request) for call in models.calls) == Counter(CALLS)
    contend = Command(tmp_path / "killed", models)
    killer = Killer(contend, RUN, VICTIMS, _kept, _key, _script)
    models.script = killer.script
    record = killer.run()
    assert killer.killed == VICTIMS
    assert _told(record) == _told(undisturbed)
    finished = Counter(_key(call.request) for call in models.calls[len(CALLS) :] if call.completed)
    assert finished == Counter(CALLS)
