"""`contend replay --reuse-until`: reuse recorded calls up to a point, then call models."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from contend import prompts
from contend.debates.repository import Repository
from tests.cli.support import Command, change_database, spoken
from tests.support.model_server import ModelServer, Reply
from tests.support.protocols import PROTOCOLS, ask_in, script_of


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Reply(""), models=None) as running:
        yield running


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls_up_to_the_point_are_reused_and_later_ones_are_made(
    protocol: str, contend: Command, models: ModelServer
) -> None:
    models.script = script_of(protocol)
    parent = contend(*ask_in(protocol), "--json").json
    paid = len(models.calls)
    again = contend("replay", parent["id"], "--reuse-until", "1", "--json")
    assert again.code == 0, again.err
    assert again.json["id"] != parent["id"]
    assert spoken(again.json) == spoken(parent)
    assert 0 < len(models.calls) - paid < paid
    assert contend("tree", again.json["id"], "--json").json["id"] == parent["id"]
    assert contend("replay", again.json["id"], "--strict").code == 0


def test_reused_calls_are_not_paid_again(contend: Command, models: ModelServer) -> None:
    script = script_of("adversarial")
    models.script = lambda request: replace(script(request), usage=(4_000, 500))
    limits = ["--set", "budget=50000"]
    parent = contend(*ask_in("adversarial"), *limits, "--pause", "before_synthesis", "--json")
    ended = contend("resume", parent.json["id"], "--json").json
    paid = len(models.calls)
    paused = contend("replay", parent.json["id"], "--reuse-until", "3", "--json").json
    assert (paused["status"], len(models.calls)) == ("paused", paid)
    again = contend("resume", paused["id"], "--json").json
    assert (again["stop_reason"], len(models.calls)) == (ended["stop_reason"], paid + 2)
    assert again["usage"]["input_tokens"] == 2 * 4_000
    with closing(Repository(contend.home / "contend.db")) as records:
        assert records.spending.total(again["id"]).tokens == 2 * 4_500


def test_the_point_may_be_a_phase(contend: Command, models: ModelServer) -> None:
    models.script = script_of("adversarial")
    parent = contend(*ask_in("adversarial"), "--json").json["id"]
    paid = len(models.calls)
    assert contend("replay", parent, "--reuse-until", "2:propose").code == 0
    made = [call.request.instructions.partition(".")[0] for call in models.calls[paid:]]
    roles = ["Skeptic", "Proposer", "Skeptic", "Synthesizer", "judge"]
    assert [role in said for role, said in zip(roles, made, strict=True)] == [True] * 5


def test_a_call_whose_prompt_changed_is_made_again(
    contend: Command, models: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models.script = script_of("adversarial")
    parent = contend(*ask_in("adversarial"), "--json").json["id"]
    paid = len(models.calls)
    prompt = tmp_path / "adversarial" / "skeptic.first.md"
    prompt.parent.mkdir()
    prompt.write_text(f"{prompts.load('adversarial/skeptic.first')} Please.", "utf-8")
    monkeypatch.setattr(prompts, "__path__", [*prompts.__path__, str(tmp_path)])
    prompts.load.cache_clear()
    again = contend("replay", parent, "--reuse-until", "2")
    prompts.load.cache_clear()
    assert again.code == 0, again.err
    assert "Please." in models.calls[paid].request.text


def test_what_cannot_be_reused_is_refused(contend: Command, models: ModelServer) -> None:
    models.script = script_of("adversarial")
    parent = contend(*ask_in("adversarial"), "--json").json["id"]
    paid = len(models.calls)
    nowhere = contend("replay", parent, "--reuse-until", "9")
    assert (nowhere.code, "There is no such place" in nowhere.err) == (2, True)
    odd = contend("replay", parent, "--reuse-until", "late")
    assert "ROUND or ROUND:PHASE" in odd.err
    for option in (["--strict"], ["--speed", "2"]):
        mixed = contend("replay", parent, "--reuse-until", "1", *option)
        assert f"{option[0]} cannot be combined with --reuse-until." in mixed.err
    change_database(contend, "DELETE FROM debate_calls")
    assert "has no recording" in contend("replay", parent, "--reuse-until", "1").err
    assert len(models.calls) == paid
    assert len(contend("list", "--json").json) == 1
