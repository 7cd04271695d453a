"""A moderated debate from Python."""

from pathlib import Path
from typing import Any

import pytest

from contend.debates import creating
from contend.debates.creating import (
    Participant,
    advocate,
    create_debate,
    fact_checker,
    judge,
    moderator,
)
from contend.debates.events import Event
from contend.graph.errors import BadInput
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import ModeratedSettings, data_home
from contend.models.providers.weights import Progress, Weights, WeightsUnavailable
from tests.support.floor_server import SUMMARY, floor_script
from tests.support.model_server import ModelServer, Reply, Request

ANN = advocate("Ann", "Yes", "openai:m1", system_prompt="Be brief.", temperature=0.1)
BEN = advocate("Ben", "No", "openai:m1")
REST = [moderator(model="openai:m1"), judge(model="openai:m1")]
QUICK: dict[str, Any] = {"roundCount": 0, "templates": False}


async def test_it_runs_and_gives_the_result(server: ModelServer) -> None:
    server.script = floor_script()
    events: list[Event] = []
    debate = create_debate("Is it so?", [ANN, BEN, *REST], QUICK)
    result = await debate.run(events.append)
    assert result.end_reason == "max_rounds"
    assert result.summary == SUMMARY
    assert result.duration_ms > 0
    assert result.scores["Ann"]["total"] == pytest.approx(7)
    assert set(result.scores["Ann"]["breakdown"]) == set(ModeratedSettings().scoring_weights)
    assert result.winner is None
    assert result.fact_checks == []
    assert result.error is None
    assert result.output_dir is not None
    assert (result.output_dir / "index.md").is_file()
    assert events[0]["event"] == "debate_start"
    assert events[-1]["event"] == "complete"


async def test_a_debate_that_fails_says_so_and_keeps_its_folder(server: ModelServer) -> None:
    def failing(what: str, request: Request, reply: Reply) -> Reply:
        return Reply(status=401) if what == "closing" else reply

    server.script = floor_script(failing)
    result = await create_debate("Is it so?", [ANN, BEN, *REST], QUICK).run()
    assert result.end_reason == "failed"
    assert result.error is not None
    assert "Ann" in result.error
    assert result.summary is None
    assert result.output_dir is not None
    index = (result.output_dir / "index.md").read_text()
    assert "**Status:** failed, unfinished: Ann (openai:m1)" in index


async def test_models_that_are_not_here_are_fetched_before_it_begins(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fetched: list[tuple[str, Path]] = []

    def pull(weights: Weights, home: Path, on_progress: Progress) -> Path:
        fetched.append((weights.name, home))
        raise WeightsUnavailable("The model could not be fetched: no network.")

    monkeypatch.setattr(creating, "pull", pull)
    lead = moderator(model="embedded:smollm2-135m")
    with pytest.raises(BadInput, match="no network"):
        await create_debate("Is it so?", [ANN, BEN, lead, REST[1]], QUICK).run()
    notes = given_file(tmp_path / "notes.txt")
    with pytest.raises(BadInput, match="no network"):
        await create_debate("Is it so?", [ANN, BEN, *REST], QUICK, [notes]).run()
    assert fetched == [("smollm2-135m", data_home()), ("minilm-l6", data_home())]
    assert server.calls == []


async def test_templates_are_fetched_for_too_but_not_waited_for(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def pull(weights: Weights, home: Path, on_progress: Progress) -> Path:
        fetched.append(weights.name)
        raise WeightsUnavailable("The model could not be fetched: no network.")

    monkeypatch.setattr(creating, "pull", pull)
    server.script = floor_script()
    result = await create_debate("Is it so?", [ANN, BEN, *REST], {"roundCount": 0}).run()
    assert fetched == ["minilm-l6"]
    assert result.summary == SUMMARY
    assert [each["what"] for each in result.record["degraded"]] == ["no_templates"]


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
        ([ANN, BEN, moderator(position="Yes")], {}, "A moderator holds no position: 'Yes'"),
        ([ANN, BEN, Participant("referee")], {}, "'referee' is no role; there are"),  # type: ignore[arg-type]
        ([ANN, BEN, *REST, moderator()], {}, "There is one moderator in a debate"),
        ([ANN, BEN], {"roundCount": -1}, "round_count must be between 0 and 20"),
        ([ANN, BEN], {"rounds": 1}, "has no setting 'rounds'"),
    ],
)
def test_what_is_wrong_is_said_at_once(
    participants: list[Participant], settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        create_debate("Is it so?", participants, settings)


async def test_a_folder_that_cannot_be_written_is_found_before_documents_are_embedded(
    server: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "facts.txt").write_text("It was so in 1999.")
    more = {**QUICK, "embedding_model": "openai:e1", "output_dir": "/proc/nowhere"}
    prepared = create_debate("Is it so?", [ANN, BEN, *REST], more, [tmp_path / "facts.txt"])
    with pytest.raises(BadInput, match="/proc/nowhere cannot be written"):
        await prepared.run()
    assert (server.calls, server.embedded) == ([], [])


async def test_documents_reach_the_fact_checker(
    server: ModelServer, tmp_path: Path, embedding_model: str
) -> None:
    (tmp_path / "facts.txt").write_text("It was so in 1999.")
    server.script = floor_script()
    more = {**QUICK, "embedding_model": embedding_model}
    parts = [ANN, BEN, *REST, fact_checker(model="openai:m1")]
    result = await create_debate("Is it so?", parts, more, [tmp_path / "facts.txt"]).run()
    assert [each["name"] for each in result.record["documents"]] == ["facts.txt"]
    openings = [c.request.user for c in server.calls if "opening statement:" in c.request.user]
    assert "It was so in 1999." in openings[0]
