"""`contend ask --server` and later commands, with its own or the workers' database."""

import signal
import subprocess
from pathlib import Path

import pytest

from contend.cli.exit_codes import BAD_INPUT, OK, PAUSED
from deploy.workers import Workers
from tests.cli.support import Command
from tests.cluster.debating import IN_CLUSTER, Debaters, command
from tests.support.model_server import ModelServer

pytestmark = IN_CLUSTER


@pytest.fixture(params=["own", "shared"])
def contend(
    request: pytest.FixtureRequest, tmp_path: Path, models: ModelServer, workers: Workers
) -> Command:
    """Return a command with its own database or that of the workers."""
    made = Command(tmp_path / "home", models)
    if request.param == "shared":
        made.env["DATABASE_URL"] = workers.database_url
    return made


def test_pauses_comments_finishes_and_exports_a_debate(contend: Command, workers: Workers) -> None:
    ask = command("adversarial", "pausing")
    asked = contend.spawn(*ask, "--server", workers.addresses[0], "--pause", "each_round", "--json")
    assert asked.code == PAUSED, asked.err
    debate = asked.json["id"]
    ended = contend.spawn("resume", debate, "--say", "Mind the cost.", "--finish", "--events")
    assert ended.code == OK, ended.err
    record = contend.spawn("show", debate, "--json").json
    assert record["status"] == "done"
    assert record["stop_reason"] == "user"
    assert "Mind the cost." in [turn["text"] for turn in record["turns"]]
    assert contend.spawn("export", debate, "--format", "md").out.startswith("# ")
    (listed,) = [each for each in contend.spawn("list", "--json").json if each["id"] == debate]
    assert listed["ran_on"] == f"LangGraph server {workers.addresses[0]}"


def test_ctrl_c_stops_after_the_step_and_repeats_no_call(
    contend: Command, workers: Workers, debaters: Debaters
) -> None:
    before = debaters.times_made()
    ask = command("adversarial", f"stopped{len(before)}")
    debaters.most = 0
    debaters.may_speak.clear()
    process = contend.start(*ask, "--server", workers.addresses[1], "--json")
    try:
        debaters.wait_for_call()
        process.send_signal(signal.SIGINT)
        assert "Finishing the current turn" in wait_for_line(process)
        debaters.most = len(debaters.finished()) + 1
        process.communicate()
        assert process.returncode == PAUSED
    finally:
        debaters.may_speak.set()
    newest = contend.spawn("list", "--json").json[0]
    assert newest["status"] == "paused"
    ended = contend.spawn("resume", newest["id"], "--json")
    assert ended.code == OK, ended.err
    paid = debaters.finished_since(before)
    assert {name for name, times in paid.items() if times > 1} == set()


def wait_for_line(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    return next(line for line in process.stderr if "Finishing" in line)


def test_a_failed_rating_can_be_repeated(
    contend: Command, workers: Workers, debaters: Debaters
) -> None:
    name = f"unrated{len(debaters.times_made())}"
    debaters.unrated.add(name)
    asked = contend.spawn(*command("adversarial", name), "--server", workers.addresses[0], "--json")
    assert asked.json["quality_score"] is None, asked.err
    debaters.unrated.clear()
    # The key of the judge's model is the server's.
    contend.env.pop("OPENAI_API_KEY")
    rated = contend.spawn("rate", asked.json["id"], "--auto")
    assert rated.code == OK, rated.err
    record = contend.spawn("show", asked.json["id"], "--json").json
    assert (record["status"], record["quality_score"]) == ("done", 7.65)


def test_forks_and_follow_ups_run_on_the_server_of_their_parent(
    contend: Command, workers: Workers, debaters: Debaters
) -> None:
    name, server = f"forked{len(debaters.times_made())}", workers.addresses[0]
    asked = contend.spawn(*command("adversarial", name), "--server", server, "--json").json["id"]
    # The keys of the models are the server's.
    contend.env.pop("OPENAI_API_KEY")
    forks = [["fork", asked, "--at", "1"], ["ask", "And the cost?", "--continue", asked]]
    for words in forks:
        forked = contend.spawn(*words, "--json")
        if "DATABASE_URL" not in contend.env:
            assert forked.code == BAD_INPUT, forked.err
            assert f"on its server, {server}" in forked.err
        else:
            assert forked.code == OK, forked.err
            assert forked.json["status"] == "done"
            (listed, *_) = contend.spawn("list", "--json").json
            assert (listed["id"], listed["ran_on"]) == (
                forked.json["id"],
                f"LangGraph server {server}",
            )


def test_a_debate_refused_by_the_server_is_not_stored(contend: Command, workers: Workers) -> None:
    known = len(contend.spawn("list", "--json").json or [])
    ask = ["ask", "Why?", "-m", "anthropic:none", "--server", workers.addresses[0]]
    refused = contend.spawn(*ask)
    assert refused.code == BAD_INPUT, refused.err
    assert "Traceback" not in refused.err
    assert len(contend.spawn("list", "--json").json or []) == known
