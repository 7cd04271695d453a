"""Pauses by signal and on request, permanent failures, and resuming."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from contend.debates.run import open_repository
from tests.cli.support import ASK, Command, debaters, slowly, spoken
from tests.support.model_server import ModelServer, Reply


@pytest.fixture
def contend(contend: Command, database: str) -> Command:
    contend.env["DATABASE_URL"] = os.environ.get("DATABASE_URL", "")
    return contend


def _resume_id(err: str) -> str:
    assert "contend resume " in err, err
    return err.rpartition("contend resume ")[2].split()[0]


def _interrupt(process: subprocess.Popen[str]) -> None:
    """Send SIGINT and wait until it is acknowledged."""
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert "press Ctrl-C again" in process.stderr.readline()


@pytest.mark.slow
def test_ctrl_c_finishes_the_turn_and_resume_gives_the_same_transcript(
    contend: Command, models: ModelServer, tmp_path: Path
) -> None:
    undisturbed = Command(tmp_path / "other", models).ask_here("--json", "--quiet").json
    before = len(models.calls)
    models.script = debaters(slowly("skeptic", 1))
    with contend.start(*ASK) as process:
        models.wait_for_chunks(before + 1, 2)
        _interrupt(process)
        out, err = process.communicate(timeout=200)
    assert process.returncode == 3
    assert "This is critique 1" in " ".join(out.split())
    calls = models.wait_for_idle()
    assert [call.completed for call in calls[before:]] == [True, True]

    resumed = contend.here("resume", _resume_id(err), "--json", "--quiet")
    assert resumed.code == 0
    assert spoken(resumed.json) == spoken(undisturbed)
    assert len(models.calls) == before * 2


def test_second_ctrl_c_stops_immediately_and_no_finished_turn_is_repeated(
    contend: Command, models: ModelServer
) -> None:
    models.script = debaters(slowly("skeptic", 1))
    with contend.start(*ASK, "--json", "--quiet") as process:
        models.wait_for_chunks(1, 2)
        process.send_signal(signal.SIGTERM)
        # Heard without a word in quiet mode; the second one must not arrive with the first.
        models.wait_for_chunks(1, 6)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
    assert process.returncode == 3
    assert '"status": "paused"' in out
    assert not models.wait_for_idle()[1].completed

    models.script = debaters()
    resumed = contend.here("resume", _resume_id(err))
    assert resumed.code == 0
    assert "Resumed with 1 turn so far." in resumed.out
    assert "This is proposal 1" not in resumed.out
    assert "─ Round 1 of at most 2 ─" in resumed.out
    assert len(models.calls) == 7


def test_pause_each_round_accepts_a_comment_and_finish(
    contend: Command, models: ModelServer
) -> None:
    paused = contend.ask_here(
        "--pause", "each_round", "--set", "max_rounds=5", "--set", "min_rounds=5"
    )
    assert paused.code == 3
    assert "Paused before the next round." in paused.out
    debate = _resume_id(paused.err)

    spoke = contend.here("resume", debate, "--say", "Think of the {night} shifts.")
    assert spoke.code == 3
    assert "You\n  Think of the {night} shifts." in spoke.out
    later = [call.request for call in models.calls[2:]]
    assert later
    assert all("Think of the {night} shifts." in request.text for request in later)

    finished = contend.here("resume", debate, "--finish", "--json", "--quiet")
    assert finished.code == 0
    assert finished.json["stop_reason"] == "user"
    assert finished.json["rounds"][0]["user"] == ["Think of the {night} shifts."]

    again = contend.here("resume", debate)
    assert (again.code, again.out) == (2, "")
    assert "is done" in again.err


@pytest.mark.slow
def test_finish_ends_the_rounds_of_a_debate_that_was_interrupted(
    contend: Command, models: ModelServer
) -> None:
    models.script = debaters(slowly("proposer", 1))
    with contend.start(*ASK, "--set", "min_rounds=3", "--set", "max_rounds=3") as process:
        models.wait_for_chunks(0, 2)
        _interrupt(process)
        _, err = process.communicate(timeout=200)
    debate = _resume_id(err)
    finished = contend.here("resume", debate, "--finish", "--json", "--quiet")
    assert (finished.code, finished.json["stop_reason"]) == (0, "user")
    assert finished.json["total_rounds"] == 1


def test_finish_is_refused_when_the_rounds_are_over(contend: Command, models: ModelServer) -> None:
    def fails(role: str, number: int, reply: Reply) -> Reply:
        return Reply(status=401) if role == "synthesizer" else reply

    models.script = debaters(fails)
    debate = _resume_id(contend.ask_here().err)
    refused = contend.here("resume", debate, "--finish")
    assert (refused.code, refused.out) == (2, "")
    assert "The rounds are over." in refused.err
    assert contend.here("show", debate, "--json").json["status"] == "failed"


def test_resume_refuses_a_debate_that_another_process_runs(contend: Command) -> None:
    debate = _resume_id(contend.ask_here("--pause", "each_round").err)
    records = open_repository()
    records.acquire(records.find(debate).id)
    refused = contend.here("resume", debate)
    records.close()
    assert (refused.code, refused.out) == (2, "")
    assert "is being run by another process" in refused.err


@pytest.mark.parametrize("status", [401, 500])
def test_permanent_model_failure_exits_with_code_4(
    contend: Command, models: ModelServer, status: int
) -> None:
    def fails(role: str, number: int, reply: Reply) -> Reply:
        return Reply(status=status) if role == "skeptic" else reply

    models.script = debaters(fails)
    ended = contend.ask_here("--set", "max_retries=1")
    assert ended.code == 4
    assert ended.err.startswith(f"Error: Skeptic (openai:m): {status}: ")
    assert ended.err.count("\n") == 1
    assert len(models.calls) == (2 if status == 401 else 3)

    shown = contend.here("show", _resume_id(ended.err))
    assert "Failed: Skeptic" in shown.out
    assert ("! Skeptic, round 1: trying again" in shown.out) == (status == 500)
    assert "Continue with: contend resume" in shown.out
