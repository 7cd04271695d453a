import json
from dataclasses import replace
from typing import Any

import pytest

from tests.cli.support import ASK, Command, debaters
from tests.support.model_server import ModelServer, Reply

PRICES = ["--set", 'prices={"openai:m": [1, 2]}']
LONG = "On and on and on. " * 400


def using(sent: int, written: int) -> Any:
    """Return a script whose calls report this usage."""
    return debaters(lambda _role, _number, reply: replace(reply, usage=(sent, written)))


def wordy(times: int) -> Any:
    """Return a script whose first answer is unexpectedly long."""

    def change(role: str, number: int, reply: Reply) -> Reply:
        long = (role, number) == ("proposer", 1)
        return replace(reply, text=LONG * times + reply.text, chunk_size=1000) if long else reply

    return debaters(change)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--budget", "-5"], "budget must be more than 0, not -5 (--budget)"),
        (["--budget", "0"], "budget must be more than 0, not 0 (--budget)"),
        (["--budget", "nan"], "budget must be a whole number, not nan (--budget)"),
        (["--budget", ""], "The value of --budget is empty"),
        (["--max-cost", "nan"], "max_cost must be a number, not nan (--max-cost)"),
        (["--max-cost", "inf"], "max_cost must be a number, not inf (--max-cost)"),
        (["--budget", "900"], "A budget of 900 tokens does not pay for one call and the answer"),
        ([*PRICES, "--max-cost", "0.0001"], "A budget of $0.0001 does not pay for one call"),
        (["--max-cost", "1"], "The price of openai:m is unknown, so max_cost cannot be kept"),
        (["--set", "budget=900"], "A budget of 900 tokens does not pay for one call"),
    ],
)
def test_a_budget_that_cannot_be_used_is_refused_before_any_call(
    contend: Command, models: ModelServer, options: list[str], said: str
) -> None:
    ended = contend.here(*ASK, *options)
    assert (ended.code, said in ended.err) == (2, True), ended.err
    assert (models.calls, contend.home.exists()) == ([], False)


def test_every_call_has_a_limit_that_fits_the_budget(contend: Command, models: ModelServer) -> None:
    assert contend.here(*ASK, "--budget", "20000").code == 0
    limits = [call.request.body["max_completion_tokens"] for call in models.calls]
    assert 1024 <= max(limits) < 20_000


def test_every_output_gives_the_budget_as_the_stop_reason(
    contend: Command, models: ModelServer
) -> None:
    models.script = using(1_500, 500)
    rounds = ["--set", "max_rounds=4", "--set", "min_rounds=4"]
    ended = contend.here(*ASK, *rounds, "--budget", "20000")
    assert ended.code == 0, ended.err
    shown = " ".join(ended.out.split())
    assert "The rounds ended: the budget of 20,000 tokens might not pay for another round" in shown
    assert "the budget did not pay for more rounds" in shown
    debate = contend.here("list", "--json").json[0]["id"]
    record = contend.here("show", debate, "--json").json
    assert (record["stop_reason"], record["early_stopped"]) == ("budget", True)
    for form in ("md", "html"):
        said = contend.here("export", debate, "--format", form).out
        assert "the budget of 20,000 tokens" in said.lower(), form


def test_warns_once_when_80_percent_of_the_budget_is_used(
    contend: Command, models: ModelServer
) -> None:
    models.script = using(2_000, 200)
    more = ["--set", "max_rounds=5", "--set", "min_rounds=5", "--budget", "20000"]
    events = [json.loads(line) for line in contend.here(*ASK, *more, "--events").out.splitlines()]
    (warned,) = [each for each in events if each["event"] == "budget"]
    assert warned["metadata"]["share"] >= 0.8
    shown = contend.here(*ASK, *more).out
    assert shown.count("% of the budget is used") == 1


def test_debate_without_budget_for_its_answer_pauses_and_can_be_resumed(
    contend: Command, models: ModelServer
) -> None:
    models.script = wordy(3)
    paused = contend.here(*ASK, "--budget", "11000")
    assert paused.code == 3
    assert "does not fit into the budget of 11,000 tokens, so Synthesizer was not" in paused.err
    (debate,) = contend.here("list", "--json").json
    assert f"contend resume {debate['id'][:8]} --budget 22000" in paused.err
    shown = contend.here("show", debate["id"])
    assert "Paused: the next call does not fit into the budget" in " ".join(shown.out.split())
    made = len(models.calls)
    again = contend.here("resume", debate["id"])
    assert (again.code, len(models.calls)) == (3, made)
    done = contend.here("resume", debate["id"], "--budget", "40000", "--json")
    assert (done.code, done.json["settings"]["budget"]) == (0, 40_000)
    assert done.json["final_answer"]
    assert len(models.calls) == made + 2
    assert "Estimate of the rest: 2 calls" in done.err


def test_resume_refuses_a_budget_below_what_was_spent(
    contend: Command, models: ModelServer
) -> None:
    models.script = using(3_000, 500)
    paused = contend.here(*ASK, "--pause", "each_round", "--json")
    debate, made = paused.json["id"], len(models.calls)
    refused = contend.here("resume", debate, "--budget", "6000")
    assert (refused.code, len(models.calls)) == (2, made)
    assert "7,000 tokens were spent before" in refused.err  # though it had no budget then
    record = contend.here("show", debate, "--json").json
    assert (record["status"], record["settings"]["budget"]) == ("paused", None)


def test_strict_replay_of_a_debate_that_hit_its_budget_succeeds(
    contend: Command, models: ModelServer
) -> None:
    models.script = wordy(1)
    ended = contend.here(*ASK, "--budget", "19000", "--json")
    assert (ended.code, ended.json["stop_reason"]) == (0, "budget")
    assert [each["what"] for each in ended.json["degraded"]] == ["out_of_budget"]
    replayed = contend.here("replay", ended.json["id"], "--strict")
    assert replayed.code == 0, replayed.out


def test_strict_replay_uses_the_budget_that_ended_the_rounds(
    contend: Command, models: ModelServer
) -> None:
    models.script = wordy(3)
    assert contend.here(*ASK, "--budget", "11000").code == 3
    debate = contend.here("list", "--json").json[0]["id"]
    ended = contend.here("resume", debate, "--budget", "60000")
    assert ended.code == 0, ended.err
    assert "other settings" not in ended.out  # than the version that ran it before
    record = contend.here("show", debate, "--json").json
    assert (record["stop_reason"], record["settings"]["budget"]) == ("budget", 60_000)
    replayed = contend.here("replay", debate, "--strict")
    assert replayed.code == 0, replayed.out
    refused = contend.here("export", debate, "--format", "cassette")
    assert (refused.code, "had several budgets, and one ended" in refused.err) == (2, True)


def test_cassette_replays_after_the_budget_was_changed(
    contend: Command, models: ModelServer
) -> None:
    models.script = using(3_000, 500)
    debate = contend.here(*ASK, "--pause", "before_synthesis", "--json").json["id"]
    assert contend.here("resume", debate, "--budget", "25000").code == 0
    assert contend.here("replay", debate, "--strict").code == 0
    tape = contend.home.parent / "tape.json"
    exported = contend.here("export", debate, "--format", "cassette", "--output", str(tape))
    assert exported.code == 0, exported.err
    assert json.loads(tape.read_text())["recording"]["debate"]["settings"]["budget"] is None
    made = len(models.calls)
    again = contend.here("ask", "--cassette", str(tape), "--json")
    assert (again.code, len(models.calls)) == (0, made), again.err


def test_a_fork_has_a_budget_of_its_own(contend: Command, models: ModelServer) -> None:
    models.script = using(4_000, 500)
    parent = contend.here(*ASK, "--json").json["id"]
    forked = contend.here("fork", parent, "--at", "1", "--set", "budget=30000", "--json")
    assert (forked.code, forked.json["stop_reason"]) == (0, "max_rounds"), forked.err


def test_proposing_outcomes_counts_against_the_budget(
    contend: Command, models: ModelServer
) -> None:
    proposed = {"outcomes": [{"id": "yes", "label": "It opens", "description": ""}] * 1}
    models.script = lambda _request: Reply(json.dumps(proposed), usage=(30_000, 10))
    options = ["-p", "forecast", "-m", "openai:m", "--yes", "--budget", "25000"]
    ended = contend.here("ask", "Will it open?", *options)
    assert ended.code == 2  # one outcome is not usable; the call was made within its budget
    assert models.calls[0].request.body["max_completion_tokens"] < 25_000


def test_a_batch_continues_under_a_larger_budget(contend: Command, models: ModelServer) -> None:
    models.script = wordy(3)
    (contend.home.parent / "q.txt").write_text("Should we split it?\n")
    batch = ["batch", "q.txt", "-m", "openai:m", "--out", "results", *ASK[4:]]
    first = contend.here(*batch, "--budget", "11000")
    assert (first.code, "Estimate for 1 new debate:" in first.err) == (3, True), first.err
    second = contend.here(*batch, "--budget", "40000")
    assert second.code == 0, second.err
