"""The Python API."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import contend
from contend import (
    BadInput,
    ModelFailed,
    ModeratedSettings,
    Participant,
    advocate,
    create_debate,
    fact_checker,
    judge,
    moderator,
)
from contend.debates import prepare
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import data_home
from contend.models.providers.weights import Progress, Weights, WeightsUnavailable
from tests.cli.support import debaters
from tests.support.floor_server import SUMMARY, floor_script
from tests.support.model_server import ModelServer, Reply, Request

ANN = advocate("Ann", "Yes", "openai:m1", system_prompt="Be brief.", temperature=0.1)
BEN = advocate("Ben", "No", "openai:m1")
REST = [moderator(model="openai:m1"), judge(model="openai:m1")]
QUICK: dict[str, Any] = {"roundCount": 0, "templates": False}


async def test_runs_a_debate_and_returns_the_result(server: ModelServer) -> None:
    server.script = floor_script()
    debate = create_debate("Is it so?", [ANN, BEN, *REST], QUICK)
    events = [event async for event in debate]
    result = await debate.result()
    assert result.end_reason == "max_rounds"
    assert result.summary == SUMMARY
    assert result.duration_ms
    assert result.scores is not None
    assert result.scores["Ann"].total == pytest.approx(7)
    assert set(result.scores["Ann"].breakdown) == set(ModeratedSettings().scoring_weights)
    assert result.winner is None
    assert result.fact_checks == []
    assert result.error is None
    assert result.output_dir is not None
    assert (Path(result.output_dir) / "index.md").is_file()
    assert events[0]["event"] == "debate_start"
    assert events[-1]["event"] == "complete"


async def test_a_failed_debate_reports_the_error_and_keeps_its_folder(server: ModelServer) -> None:
    def failing(what: str, request: Request, reply: Reply) -> Reply:
        return Reply(status=401) if what == "closing" else reply

    server.script = floor_script(failing)
    result = await create_debate("Is it so?", [ANN, BEN, *REST], QUICK).result()
    assert result.status == "failed"
    assert result.error is not None
    assert "Ann" in result.error
    assert result.summary is None
    assert result.output_dir is not None
    index = (Path(result.output_dir) / "index.md").read_text()
    assert "**Status:** failed, unfinished: Ann (openai:m1)" in index


async def test_missing_models_are_downloaded_before_the_debate(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fetched: list[tuple[str, Path]] = []

    def pull(weights: Weights, home: Path, on_progress: Progress) -> Path:
        fetched.append((weights.name, home))
        raise WeightsUnavailable("The model could not be fetched: no network.")

    monkeypatch.setattr(prepare, "pull", pull)
    lead = moderator(model="embedded:smollm2-135m")
    with pytest.raises(BadInput, match="no network"):
        await create_debate("Is it so?", [ANN, BEN, lead, REST[1]], QUICK).result()
    notes = given_file(tmp_path / "notes.txt")
    with pytest.raises(BadInput, match="no network"):
        await create_debate("Is it so?", [ANN, BEN, *REST], QUICK, [notes]).result()
    assert fetched == [("smollm2-135m", data_home()), ("minilm-l6", data_home())]
    assert server.calls == []


async def test_a_failed_model_download_only_disables_templates(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def pull(weights: Weights, home: Path, on_progress: Progress) -> Path:
        fetched.append(weights.name)
        raise WeightsUnavailable("The model could not be fetched: no network.")

    monkeypatch.setattr(prepare, "pull", pull)
    server.script = floor_script()
    result = await create_debate("Is it so?", [ANN, BEN, *REST], {"roundCount": 0}).result()
    assert fetched == ["minilm-l6"]
    assert result.summary == SUMMARY
    assert [each.what for each in result.degraded] == ["no_templates"]


def given_file(path: Path) -> Path:
    path.write_text("It was so in 2019.")
    return path


def test_participants_become_settings() -> None:
    checker = fact_checker("Dana", "openai:c", temperature=0.0, system_prompt="Trust nobody.")
    lead = moderator("Chair", "openai:x", fallbacks=("openai:y",))
    settings = create_debate("Is it so?", [ANN, BEN, lead, checker], {"round_count": 2}).settings
    seats = {seat.id: seat for seat in settings.build_seats()}
    assert list(seats) == ["moderator", "ann", "ben", "fact_checker", "judge"]
    assert (seats["moderator"].name, seats["moderator"].model) == ("Chair", "openai:x")
    assert seats["moderator"].fallback_models == ("openai:y",)
    assert (seats["ann"].temperature, seats["ann"].system_prompt) == (0.1, "Be brief.")
    assert (seats["fact_checker"].name, seats["fact_checker"].temperature) == ("Dana", 0.0)
    assert seats["fact_checker"].system_prompt == "Trust nobody."
    assert strategy_for(settings).rounds == (2, 2)


@pytest.mark.parametrize(
    ("participants", "settings", "said"),
    [
        ([ANN], {}, "this protocol needs 2 to 8 positions, not 1"),
        ([ANN, advocate("Ben", "yes")], {}, "two sides hold the same position"),
        ([ANN, advocate("Ben", " yes. ")], {}, "two sides hold the same position"),
        ([advocate("Ann", "Caf\u00e9"), advocate("Ben", "Cafe\u0301")], {}, "the same position"),
        ([ANN, advocate("Ben", "\u200b \u200b")], {}, "the position of 'Ben' is empty"),
        ([ANN, advocate("judge", "No")], {}, "a side is called 'judge' like the judge"),
        ([ANN, BEN, moderator("ben")], {}, "a side is called 'Ben' like the moderator"),
        ([ANN, BEN, fact_checker("Ann")], {}, "a side is called 'Ann' like the fact checker"),
        ([ANN, advocate("Ben", " ")], {}, "the position of 'Ben' is empty"),
        ([ANN, BEN, moderator(position="Yes")], {}, "A moderator cannot have a position: 'Yes'"),
        ([ANN, BEN, Participant("referee")], {}, "There is no role 'referee'; the roles are"),  # type: ignore[arg-type]
        ([ANN, BEN, *REST, moderator()], {}, "A debate has only one moderator"),
        ([ANN, BEN], {"roundCount": -1}, "round_count must be between 0 and 20"),
        ([ANN, BEN], {"rounds": 1}, "has no setting 'rounds'"),
    ],
)
def test_invalid_participants_and_settings_are_refused_immediately(
    participants: list[Participant], settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        create_debate("Is it so?", participants, settings)


async def test_an_unwritable_folder_is_reported_before_embedding_documents(
    server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "facts.txt").write_text("It was so in 1999.")
    more = {**QUICK, "embedding_model": "openai:e1", "output_dir": "/proc/nowhere"}
    prepared = create_debate("Is it so?", [ANN, BEN, *REST], more, [tmp_path / "facts.txt"])
    with pytest.raises(BadInput, match="/proc/nowhere cannot be written"):
        await prepared.result()
    assert (server.calls, server.embedded) == ([], [])


async def test_documents_reach_the_fact_checker(
    server: ModelServer, tmp_path: Path, embedding_model: str
) -> None:
    (tmp_path / "facts.txt").write_text("It was so in 1999.")
    server.script = floor_script()
    more = {**QUICK, "embedding_model": embedding_model}
    parts = [ANN, BEN, *REST, fact_checker(model="openai:m1")]
    result = await create_debate("Is it so?", parts, more, [tmp_path / "facts.txt"]).result()
    assert [each.name for each in result.documents] == ["facts.txt"]
    openings = [c.request.user for c in server.calls if "opening statement:" in c.request.user]
    assert "It was so in 1999." in openings[0]


def test_importing_the_package_does_not_import_langgraph() -> None:
    code = "import contend, sys; print(contend.__version__, 'langgraph' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == [contend.__version__, "False"]


@pytest.mark.parametrize("name", contend.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(contend, name)
    assert name in dir(contend)


def test_ask_blocks_and_returns_the_record(server: ModelServer) -> None:
    server.script = debaters()
    record = contend.ask("Why?", model="openai:m1", maxRounds=1, min_rounds=1, templates=False)
    assert (record.status, record.protocol, record.total_rounds) == ("done", "adversarial", 1)
    assert record.final_answer


def test_ask_raises_if_a_model_fails(server: ModelServer) -> None:
    server.script = lambda _: Reply(status=401)
    with pytest.raises(ModelFailed) as failed:
        contend.ask("Why?", model="openai:m1", templates=False)
    assert (failed.value.model, failed.value.kind) == ("openai:m1", "auth")
    assert str(failed.value).count("openai:m1") == 1


async def test_a_debate_is_paused_and_resumed(server: ModelServer) -> None:
    server.script = debaters()
    quick = {"min_rounds": 1, "max_rounds": 2, "templates": False}
    settings = contend.AdversarialSettings.model_validate(quick)
    debate = create_debate("Why?", settings=settings, model="openai:m1", pause="each_round")
    assert debate.id is None
    with pytest.raises(RuntimeError, match="not stopped"):
        debate.resume()
    assert (await debate.result()).status == "paused"
    debate.resume(say="Mind the cost.")
    async for event in debate:
        assert event["event"] != "debate_start"
        if event["event"] == "seat_complete":
            debate.pause()
    paused = await debate.result()
    assert paused.status == "paused"
    assert [turn.text for turn in paused.turns if turn.role == "user"] == ["Mind the cost."]
    while (record := await debate.resume().result()).status == "paused":
        pass
    assert record.status == "done"
    assert record.id == debate.id


async def test_a_debate_is_resumed_with_a_larger_budget(server: ModelServer) -> None:
    def wordy(role: str, number: int, reply: Reply) -> Reply:
        first = (role, number) == ("proposer", 1)
        return replace(reply, text="On and on. " * 1800, chunk_size=1000) if first else reply

    server.script = debaters(wordy)
    quick = {"min_rounds": 1, "max_rounds": 2, "templates": False, "budget": 11_000}
    debate = create_debate("Why?", settings=quick, model="openai:m1")
    paused = await debate.result()
    assert (paused.status, paused.stop_reason) == ("paused", "budget")
    assert "does not fit into the budget of 11,000 tokens" in (paused.error or "")
    with pytest.raises(contend.BadInput, match="does not pay for another call"):
        await debate.resume(budget=100).result()
    record = await debate.resume(budget=60_000).result()
    assert (record.status, record.settings["budget"]) == ("done", 60_000)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"protocol": "forecast"}, "A forecast needs outcomes"),
        ({"outcomes": ["yes", "no"]}, "work only with protocol='forecast'"),
        ({"participants": [ANN], "protocol": "forum"}, "participants work only with"),
        ({"protocol": "chess", "model": "openai:m1"}, "no protocol 'chess'"),
    ],
)
def test_invalid_arguments_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        create_debate("Why?", **given)
