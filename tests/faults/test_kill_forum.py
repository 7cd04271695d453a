"""Killing a forum debate in every call loses, mixes up and repeats nothing."""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.actions.test_ask_stopping import _interrupt as interrupt
from tests.cli.forum import ASK, BY_CONCESSION, MODELS, what
from tests.cli.support import Command, spoken
from tests.faults.killing import Killer, mark, up_to
from tests.support.model_server import ModelServer, Reply, Request, openai_error
from tests.support.scripted import Sent, as_sent, concedes, ratings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RUN = [*ASK, *BY_CONCESSION, "--set", "max_rounds=5", "--quiet"]

Key = tuple[str, str, int]
"""The seat, the task and the round; equal for a repeated call."""

# Every layer of calls that are made at once, in the order of the debate. In round 2 Ann cannot be
# read, Ben and Cyd concede without a reason and are asked again: he repeats it, in words nobody can
# read, she takes it back. In round 3 Ann concedes, and Cyd cannot be read.
LAYERS: list[list[Key]] = [
    [("ann", "speech", 1), ("ben", "speech", 1), ("cyd", "speech", 1)],
    [("ann", "speech", 2)],
    [("ben", "speech", 2)],
    [("cyd", "speech", 2)],
    [("ann", "conviction", 2), ("ben", "conviction", 2), ("cyd", "conviction", 2)],
    [("ann", "report", 2)],
    [("ben", "conviction_again", 2), ("cyd", "conviction_again", 2)],
    [("ben", "report_again", 2)],
    [("ann", "speech", 3)],
    [("cyd", "speech", 3)],
    [("ann", "conviction", 3), ("cyd", "conviction", 3)],
    [("cyd", "report", 3)],
    [("cyd", "final", 3)],
    [("judge", "score", 0)],
]
CALLS = [key for layer in LAYERS for key in layer]


def _key(request: Request) -> Key:
    """Return the key of a call, from its history or from the speech it reports on."""
    asked = what(request)
    if asked == "report":
        found = re.search(r"\((\w+) (\w+) (\d)\)", request.user)
        assert found, request.user
        return request.model, found[2].replace("conviction", "report"), int(found[3])
    number = len(set(re.findall(r"### Round (\d)", request.user)))
    return request.model, asked, number + (asked == "speech" and _is_new_round(request, number))


def _is_new_round(request: Request, last: int) -> bool:
    """Return whether the speaker opens a new round."""
    return last == 0 or f"Round {last + 1} of at most" in request.user


UNREADABLE = "Who was it that convinced me? {}"
# What is said instead of a speech: words, which get the mark, or a concession with its block.
WORDS: dict[Key, str] = {
    ("ann", "conviction", 2): UNREADABLE,
    ("ben", "conviction_again", 2): UNREADABLE,
    ("cyd", "conviction_again", 2): "NOT CONVINCED\nI take it back. {}",
    ("cyd", "conviction", 3): UNREADABLE,
}
CONCESSIONS: dict[Key, tuple[str, str]] = {
    ("ben", "conviction", 2): ("Cyd", ""),
    ("cyd", "conviction", 2): ("Ann", ""),
    ("ann", "conviction", 3): ("Cyd", "Cyd argues (cyd speech 3)"),
}


def _line(key: Key, sent: Sent) -> str:
    model, asked, _ = key
    if key in CONCESSIONS:
        whom, quote = CONCESSIONS[key]
        return concedes(whom, quote=quote, reasoning=mark(key))(sent)
    if asked.startswith("report"):
        convinced = {"convinced_by": "Cyd"} if asked == "report_again" else {}
        return json.dumps({"convinced": bool(convinced), "reasoning": mark(key)} | convinced)
    words = f"{model.capitalize()} argues {{}}"
    said = WORDS.get(key, words).format(mark(key))
    return f"{said} {ratings()(sent)}" if asked == "score" else said


def _script(request: Request) -> Reply:
    return Reply(_line(_key(request), as_sent(request)))


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(_script, models=MODELS) as running:
        yield running


def _told(record: dict[str, Any]) -> Any:
    """Return the parts of the record that must not change."""
    standing = [record[name] for name in ("eliminations", "winner", "stop_reason", "degraded")]
    return spoken(record), *standing


# Of calls made at once every one is a victim in one of the runs; of calls alone, in the first, but
# of speeches that are a step of their own one stands for all.
ALONE = [("ann", "speech", 2), ("cyd", "speech", 2), ("ann", "speech", 3), ("cyd", "speech", 3)]
RUNS = [
    [layer[place] for layer in LAYERS if place < len(layer) and layer[place] not in ALONE]
    for place in range(3)
]


@pytest.mark.parametrize("victims", RUNS, ids=["first", "second", "third"])
def test_resumes_a_forum_after_a_kill_in_every_call(
    victims: list[Key], tmp_path: Path, models: ModelServer
) -> None:
    undisturbed = Command(tmp_path / "calm", models).here(*RUN, "--json").json
    assert Counter(_key(call.request) for call in models.calls) == Counter(CALLS)
    assert undisturbed["winner"] == "cyd"
    assert [each["seat"] for each in undisturbed["eliminations"]] == ["ben", "ann"]
    calm = len(models.calls)
    contend = Command(tmp_path / "killed", models)
    killer = Killer(contend, RUN, victims, up_to(LAYERS), _key, _script)
    models.script = killer.script
    record = killer.run()
    assert killer.killed == victims
    assert _told(record) == _told(undisturbed)
    finished = Counter(_key(call.request) for call in models.calls[calm:] if call.completed)
    assert finished == Counter(CALLS)


class TestCtrlC:
    """The first Ctrl-C finishes running calls and starts no new ones."""

    def _interrupted(
        self, contend: Command, models: ModelServer, held: Key, layer: list[Key], *options: str
    ) -> str:
        """Interrupt when all calls of a layer are running, then release the held call."""
        heard, calm = threading.Event(), models.script
        before = len(models.calls)

        def hold(request: Request) -> Reply:
            reply = calm(request)
            assert isinstance(reply, Reply)
            return replace(reply, until=heard.is_set) if _key(request) == held else reply

        models.script = hold
        process = contend.start(*RUN[:-1], *options, "--events")
        asked = CALLS.index(layer[-1]) + 1
        models.wait_for_calls(before + asked, timeout=60)
        interrupt(process)
        heard.set()
        _, err = process.communicate(timeout=200)
        models.check()
        assert process.returncode == 3, err
        models.script = calm
        calls = [_key(call.request) for call in models.calls[before:]]
        assert Counter(calls) == Counter(CALLS[:asked])
        return err.rpartition("contend resume ")[2].split()[0]

    def _resumed(
        self, contend: Command, models: ModelServer, debate: str, undisturbed: Any
    ) -> None:
        record = contend.here("resume", debate, "--json", "--quiet").json
        assert spoken(record) == spoken(undisturbed)
        assert record["eliminations"] == undisturbed["eliminations"]

    @pytest.fixture
    def undisturbed(self, tmp_path: Path, models: ModelServer) -> Any:
        return Command(tmp_path / "calm", models).here(*RUN, "--json").json

    @pytest.mark.parametrize(
        "layer",
        [LAYERS[0], LAYERS[4], LAYERS[5]],
        ids=["speeches", "convictions", "between two questions"],
    )
    def test_during_parallel_calls(
        self, layer: list[Key], tmp_path: Path, models: ModelServer, undisturbed: Any
    ) -> None:
        contend, calm = Command(tmp_path / "stopped", models), len(models.calls)
        debate = self._interrupted(contend, models, layer[len(layer) // 2], layer)
        self._resumed(contend, models, debate, undisturbed)
        finished = Counter(_key(call.request) for call in models.calls[calm:] if call.completed)
        assert finished == Counter(CALLS)
        assert len(models.calls) == 2 * calm

    @pytest.mark.parametrize("layer", [LAYERS[0], LAYERS[4]], ids=["speeches", "convictions"])
    def test_while_a_call_waits_for_a_retry(
        self, layer: list[Key], tmp_path: Path, models: ModelServer, undisturbed: Any
    ) -> None:
        contend, calm = Command(tmp_path / "stopped", models), len(models.calls)
        overloaded = Reply(status=503, headers={"Retry-After": "60"})
        models.script = lambda request: (
            overloaded if _key(request) == layer[2] else _script(request)
        )
        debate = self._interrupted(contend, models, layer[1], layer, "--set", "max_retries=1")
        models.script = _script
        self._resumed(contend, models, debate, undisturbed)
        finished = Counter(_key(call.request) for call in models.calls[calm:] if call.completed)
        assert finished == Counter(CALLS)
        # Only the one that was not answered is asked again.
        assert len(models.calls) == 2 * calm + 1


# Ann's answer in round 2 fails for good; what Ben and Cyd say there must be read by reports.
READ_APART: list[Key] = [("ben", "report", 2), ("cyd", "report", 2)]


def _fails_once() -> Callable[[Request], Reply]:
    """Return a script that fails Ann's first conviction check only."""
    failed: list[Key] = []

    def script(request: Request) -> Reply:
        key = _key(request)
        if key == ("ann", "conviction", 2) and not failed:
            failed.append(key)
            return openai_error(401, "no such luck")
        if key[1:] == ("conviction", 2):
            return Reply(UNREADABLE.format(mark(key)))
        if key == ("cyd", "report", 2):
            return Reply(json.dumps({"convinced": False, "reasoning": mark(key)}))
        if key == ("ben", "report", 2):
            given = {"convinced": True, "convinced_by": "Cyd", "argument": "Costs."}
            quote = f"Cyd argues {mark(('cyd', 'speech', 2))}"
            return Reply(json.dumps(given | {"quote": quote, "reasoning": mark(key)}))
        return _script(request)

    return script


@pytest.mark.parametrize("victim", READ_APART, ids=["first", "second"])
def test_a_failure_before_the_kill_does_not_mix_up_reports(
    victim: Key, tmp_path: Path, models: ModelServer
) -> None:
    """Asking Ann again would shift the positions of the other reports."""
    models.script = _fails_once()
    undisturbed = Command(tmp_path / "calm", models).here(*RUN, "--json").json
    told = [(entry["seat"], entry["what"]) for entry in undisturbed["degraded"]]
    assert ("ann", "not_asked") in told
    assert undisturbed["eliminations"][0]["seat"] == "ben"
    calm = len(models.calls)
    contend = Command(tmp_path / "killed", models)
    killer = Killer(contend, RUN, [victim], up_to([READ_APART]), _key, _fails_once())
    models.script = killer.script
    record = killer.run()
    assert killer.killed == [victim]
    assert _told(record) == _told(undisturbed)
    asked = Counter(_key(call.request) for call in models.calls[calm:])
    assert asked == Counter(_key(call.request) for call in models.calls[:calm]) + Counter([victim])
