"""Random budgets for debates of every protocol, with parallel and failing calls."""

import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import Command, Ended
from tests.support.model_server import ModelServer, Reply, Request, Script, always
from tests.support.protocols import PROTOCOLS, ask_in, script_of

IN_SHORT, IN_ALL = 1, 40  # debates of each protocol
PRICE = (2.0, 8.0)  # dollars for a million tokens of input and of output
PAUSED = 3
# Budgets that pay for a first call, and for the answer only if the debate is short.
BARELY = {"adversarial": 12_000, "forum": 14_000, "refine": 12_000, "moderated": 36_000}
BARELY |= {"forecast": 9_000}
NAMES = ["m", "other", "ann", "ben", "cyd", "judge"]
PRICES = ", ".join(f'"openai:{name}": [{PRICE[0]}, {PRICE[1]}]' for name in NAMES)


class Meter:
    """Count the cost of every call, including failed calls and calls without usage."""

    def __init__(self, script: Script, chance: random.Random, trouble: float) -> None:
        self._script, self._chance, self._trouble = script, chance, trouble
        self._lock = threading.Lock()
        self.input = self.output = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    @property
    def dollars(self) -> float:
        return (self.input * PRICE[0] + self.output * PRICE[1]) / 1e6

    def __call__(self, request: Request) -> Reply:
        if "too long and was cut off" in request.user:  # the script reads what was asked before
            request = replace(request, messages=request.messages[:-1])
        reply = self._script(request)
        assert isinstance(reply, Reply)
        with self._lock:
            return self._bill(request, reply)

    def _bill(self, request: Request, reply: Reply) -> Reply:
        body = request.body
        most = body.get("max_completion_tokens") or body["max_tokens"]
        # More than common vocabularies need for these texts.
        sent = len(request.text.encode()) // 3
        written = self._chance.randint(1, min(most, 2500))
        wrong = self._chance.random() < self._trouble
        kind = self._chance.choice(["refused", "cut", "silent", "long"]) if wrong else ""
        if kind == "refused":
            return Reply(status=self._chance.choice([429, 500, 503]))
        written = most if kind == "long" else written
        self.input += sent
        self.output += written
        if kind == "cut":
            return replace(reply, cut_after=2)
        finish = "length" if kind == "long" else reply.finish
        return replace(reply, finish=finish, usage=None if kind == "silent" else (sent, written))


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(always(""), models=NAMES) as running:
        yield running


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer) -> Command:
    return Command(tmp_path / "home", models)


def debate(contend: Command, protocol: str, *options: str) -> Ended:
    quick = ["--set", "max_retries=1", "--set", "rate_limit_patience=0", "--json", "--quiet"]
    also = ["--set", "judge_fallbacks=[openai:other]", "--set", f"prices={{{PRICES}}}"]
    return contend.here(*ask_in(protocol), *quick, *also, *options)


def hold(contend: Command, models: ModelServer, protocol: str, seed: int) -> None:
    chance = random.Random(f"{protocol} {seed}")  # noqa: S311 - not a secret
    meter = models.script = Meter(script_of(protocol), chance, chance.choice([0, 0.1, 0.3]))
    budget, cost = round(10 ** chance.uniform(3.6, 5.3)), round(10 ** chance.uniform(-1.8, 0), 4)
    limits = chance.choice([("--budget",), ("--max-cost",), ("--budget", "--max-cost")])
    given = {"--budget": str(budget), "--max-cost": str(cost)}
    options = [word for name in limits for word in (name, given[name])]
    ended = debate(contend, protocol, *options)
    where = f"seed {seed}: {' '.join(options)}: {ended.err}"
    assert ended.code in (0, 2, 3, 4), where
    for _ in range(3):
        assert "--budget" not in limits or meter.tokens <= budget, where
        assert "--max-cost" not in limits or meter.dollars <= cost + 1e-9, where
        if ended.code != PAUSED:
            return
        budget, cost = 2 * budget, 2 * cost
        given = {"--budget": str(budget), "--max-cost": str(cost)}
        more = [word for name in limits for word in (name, given[name])]
        ended = contend.here("resume", ended.json["id"], "--json", "--quiet", *more)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_random_budget_is_not_exceeded(
    contend: Command, models: ModelServer, protocol: str
) -> None:
    for seed in range(IN_SHORT):
        hold(contend, models, protocol, seed)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_many_random_budgets_are_not_exceeded(
    contend: Command, models: ModelServer, protocol: str
) -> None:
    for seed in range(IN_SHORT, IN_SHORT + IN_ALL):
        hold(contend, models, protocol, seed)


def wordy(script: Script) -> Script:
    """Make every speech longer than estimated."""

    def say(request: Request) -> Reply:
        reply = script(request)
        assert isinstance(reply, Reply)
        words = "On and on. " * 2500 + reply.text
        return reply if request.schema else replace(reply, text=words, chunk_size=1000)

    return say


def rising(contend: Command, protocol: str) -> tuple[list[Any], list[int]]:
    """Run a debate with a small budget and resume it with larger ones until it ends."""
    budget, records, codes = BARELY[protocol], [], []
    ended = debate(contend, protocol, "--budget", str(budget))
    while ended.code == PAUSED:
        records.append(ended.json)
        codes.append(ended.code)
        budget = round(budget * 1.5)
        ended = contend.here(
            "resume", ended.json["id"], "--budget", str(budget), "--json", "--quiet"
        )
    assert ended.code == 0, ended.err
    return [*records, ended.json], codes


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_debate_with_rising_budgets_ends_and_pays_no_call_twice(
    contend: Command, models: ModelServer, protocol: str
) -> None:
    models.script = Meter(wordy(script_of(protocol)), random.Random(protocol), 0)  # noqa: S311
    records, codes = rising(contend, protocol)
    assert codes, "it never paused"
    assert records[-1]["final_answer"]
    sent = [(call.request.model, call.request.text) for call in models.calls]
    assert len(sent) == len(set(sent))
