"""Debates whose stored settings are no longer valid can be read but not run."""

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field
from starlette.testclient import TestClient

from contend.debates.forecasts import parse_outcomes, plain_request
from contend.debates.fork import ForkPoint, fork_debate, reply_of
from contend.debates.record import StoredDebate
from contend.debates.run import open_repository
from contend.graph.errors import BadInput
from contend.graph.settings import SETTINGS, AdversarialSettings
from contend.service.client import ApiError
from tests.cli.support import ASK, Command, change_database, debaters
from tests.service.test_debates import api, serve
from tests.support.model_server import ModelServer

REFUSED = "max_rounds must be between 1 and 3, not 5 (stored with the debate)"
DUE = date(2030, 5, 1)
LONG = ["--set", "max_rounds=5", "--set", "min_rounds=4"]


class _TightSettings(AdversarialSettings):
    """Settings of a later release, with tighter limits."""

    protocol: ClassVar[str] = "adversarial"
    max_rounds: int = Field(3, ge=1, le=3)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m"]) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
        yield running


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("CONTEND_HOME", str(tmp_path / "home"))
    return Command(tmp_path / "home", models)


@pytest.fixture
def tighten(contend: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def tighten() -> None:
        monkeypatch.setitem(SETTINGS, "adversarial", _TightSettings)
        change_database(
            contend, "UPDATE debates SET settings = json_set(settings, '$.of_another_release', 1)"
        )

    return tighten


def test_a_finished_debate_with_invalid_settings_is_readable(
    contend: Command, models: ModelServer, tighten: Callable[[], None]
) -> None:
    first, second = (contend(*ASK, *LONG, "--json").json["id"] for _ in range(2))
    reading: dict[str, tuple[str, ...]] = {
        "rate": ("rate", first, "7"),
        **{name: (name, first) for name in ("show", "history", "tree", "export")},
        "html": ("export", first, "--format", "html"),
        "diff": ("diff", first, second),
        "list": ("list", "--json"),
        "replay": ("replay", first, "--speed", "1e9", "--plain"),
    }
    before = {name: contend(*given) for name, given in reading.items()}
    calls = len(models.calls)
    tighten()
    for name, given in reading.items():
        again = contend(*given)
        assert (again.code, again.err, again.out) == (0, before[name].err, before[name].out), name
    shown = contend("show", first, "--json").json
    assert shown["settings"]["max_rounds"] == 5
    contend("prune", "--damaged", "--yes")
    assert len(contend("list", "--json").json) == 2
    assert contend("delete", second, "--yes").code == 0
    assert len(models.calls) == calls


def test_a_paused_debate_with_invalid_settings_continues_only_as_a_fork(
    contend: Command, models: ModelServer, tighten: Callable[[], None]
) -> None:
    paused = contend(*ASK, *LONG, "--pause", "each_round", "--json").json["id"]
    calls = len(models.calls)
    tighten()
    assert contend("show", paused).code == 0
    for command in (["resume", paused], ["replay", paused, "--strict"], ["fork", paused, "--at=1"]):
        refused = contend(*command)
        assert (refused.code, REFUSED in refused.err) == (2, True), refused.err
        assert "A fork can change it: --set max_rounds=VALUE." in refused.err
    wrong = contend("fork", paused, "--at", "1", "--set", "max_rounds=7")
    assert "max_rounds must be between 1 and 3, not 7 (--set)" in wrong.err
    assert len(models.calls) == calls
    changed = ["--set", "max_rounds=2", "--set", "min_rounds=1", "--set", "pause=never"]
    forked = contend("fork", paused, "--at", "1", *changed, "--json")
    assert forked.code == 0, forked.err
    assert forked.json["total_rounds"] == 2


def test_editing_a_turn_needs_valid_settings_in_the_fork(
    contend: Command, models: ModelServer, tighten: Callable[[], None], tmp_path: Path
) -> None:
    done, turn = contend(*ASK, *LONG, "--json").json["id"], "r1.critique.skeptic"
    tighten()
    records = open_repository()
    try:
        reply = asyncio.run(reply_of(records, records.find(done), turn))
    finally:
        records.close()
    (tmp_path / "text.md").write_text(reply.replace("critique 1", "critique 1, rewritten,"))
    edit = ["fork", done, "--edit", turn, "--text-file", str(tmp_path / "text.md")]
    assert REFUSED in contend(*edit).err
    forked = contend(*edit, "--set", "max_rounds=2", "--set", "min_rounds=1", "--json")
    assert forked.code == 0, forked.err
    assert forked.json["turns"][1]["text"].startswith("This is critique 1, rewritten,")
    assert forked.json["total_rounds"] == 2


def test_refuses_to_continue_a_debate_with_invalid_settings(
    contend: Command, models: ModelServer, tighten: Callable[[], None]
) -> None:
    done = contend(*ASK, *LONG, "--json").json["id"]
    tighten()
    calls = len(models.calls)
    refused = contend("ask", "--continue", done, "And if the team doubles?")
    assert (refused.code, "max_rounds must be between 1 and 3" in refused.err) == (2, True)
    assert len(models.calls) == calls


def test_api_reads_the_debate_and_explains_why_it_cannot_run(
    contend: Command, models: ModelServer, tighten: Callable[[], None]
) -> None:
    paused = contend(*ASK, *LONG, "--pause", "each_round", "--json").json["id"]
    tighten()
    with serve() as client:
        assert api(client).get(paused).id == paused
        assert [each["id"] for each in _listed(client)] == [paused]
        assert client.get(f"/api/v1/debates/{paused}/export").status_code == 200
        assert client.get(f"/api/v1/debates/{paused}/history").status_code == 200
        with pytest.raises(ApiError) as refused:
            api(client).resume(paused)
        assert REFUSED in str(refused.value)
        assert "--" not in str(refused.value)


def _listed(client: TestClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get("/api/v1/debates").json()["debates"]
    return found


def test_error_names_a_stored_setting_of_the_wrong_type(
    contend: Command, models: ModelServer
) -> None:
    done = contend(*ASK, "--json").json["id"]
    wrong = json.dumps({"max_rounds": "many"})
    change_database(contend, "UPDATE debates SET settings = json_patch(settings, ?)", wrong)
    records = open_repository()
    try:
        parent = records.find(done)
        assert parent.as_settings().max_rounds == 5  # type: ignore[attr-defined]
        with pytest.raises(BadInput, match="max_rounds must be a whole number, not many"):
            asyncio.run(fork_debate(records, parent, ForkPoint(1), {}))
    finally:
        records.close()


def test_due_date_is_read_from_a_request_with_invalid_config() -> None:
    asked = plain_request("Will it open?", parse_outcomes(["yes: It does", "no: It does not"]), DUE)
    request = asked.model_dump(mode="json")
    request["config"] |= {"rounds": 99, "of_another_release": 1}
    about: dict[str, Any] = {"protocol": "forecast", "question": "Will it open?", "status": "done"}
    about |= {"created_at": "", "updated_at": "", "error": None, "demonstration": False}
    debate = StoredDebate(
        id="x", settings={}, state={"request": request}, user_rating=None, last_seq=0, **about
    )
    assert debate.forecast_fate()["due"] == DUE.isoformat()


def test_error_names_contradicting_stored_settings(contend: Command) -> None:
    paused = contend(*ASK, "--pause", "each_round", "--json").json["id"]
    more = json.dumps({"min_rounds": 9})
    change_database(contend, "UPDATE debates SET settings = json_patch(settings, ?)", more)
    assert contend("show", paused).code == 0
    refused = contend("resume", paused)
    assert (refused.code, "min_rounds (9) is larger than max_rounds (2)" in refused.err) == (
        2,
        True,
    )
    assert "A fork can change it: --set NAME=VALUE." in refused.err
