"""Forecasts give the same results on both databases."""

import json
from datetime import date
from typing import Any

import pytest
from langgraph.runtime import RunControl

from contend.debates.forecasts import (
    due_forecasts,
    forecasts,
    parse_outcomes,
    plain_request,
    read_request,
    resolve,
    scoreboard,
)
from contend.debates.prepare import PreparedDebate, write_debate
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.debates.run import open_repository, run_debate
from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import DebateRequest
from contend.models.seats import SeatPlan
from tests.support.forecasting import (
    OUTCOMES,
    QUESTION,
    YES,
    arguing,
    forecast_settings,
    forecasted,
    panel,
    request,
)
from tests.support.scripted import Cast

_DIFFERENT = ("debate_id", "completed_at", "metadata")


def same(forecast: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in forecast.items() if name not in _DIFFERENT}


async def held(
    records: Repository, wanted: DebateRequest, cast: Cast | None = None
) -> StoredDebate:
    settings = forecast_settings()
    seating = SeatPlan(settings.build_seats(), "", "scripted:embed")
    opened = write_debate(records, PreparedDebate(QUESTION, settings, seating), wanted)
    with (cast or panel()).on_stage():
        return await run_debate(records, opened, lambda _: None, RunControl())


async def test_the_same_request_gives_the_same_forecast_on_each_database(database: str) -> None:
    alone = await forecasted()
    records = open_repository()
    try:
        wanted = DebateRequest.model_validate_json(json.dumps(request()))
        done = await held(records, wanted)
        assert done.status == "done"
        assert same(done.state["forecast"]) == same(alone.state["forecast"])
        assert records.find(done.id).state["forecast"] == done.state["forecast"]
    finally:
        records.close()


async def test_resolves_and_scores_a_forecast(database: str) -> None:
    records = open_repository()
    try:
        dated = plain_request(QUESTION, OUTCOMES, date(2026, 1, 1))
        done = await held(records, dated)
        (waiting,) = due_forecasts(forecasts(records), date(2026, 1, 1), every=False)
        assert waiting.debate.id == done.id
        assert due_forecasts(forecasts(records), date(2025, 12, 31), every=False) == []
        resolve(records, done, "no", replace=False)
        with pytest.raises(BadInput, match="already resolved as 'no'"):
            resolve(records, done, "yes", replace=False)
        resolve(records, done, "yes", replace=True)
        assert records.resolutions() == {done.id: "yes"}
        board = scoreboard(records)
        assert board.resolved == 1
        assert board.pools[0].brier == pytest.approx(0.34**2)
        assert [row.name for row in board.rounds] == ["round 1", "round 2", "round 3"]
        assert board.factor is None
    finally:
        records.close()


async def test_round_scores_ignore_incomplete_distributions() -> None:
    """Averaging each outcome separately would sum to more than 1."""
    partial = arguing("optimist", lambda block: block | {"probabilities": {"yes": 0.95}})
    cast = panel(optimist=lambda sent: "{}" if sent.schema else partial(sent))
    records = open_repository()
    try:
        wanted = DebateRequest.model_validate_json(json.dumps(request()))
        resolve(records, await held(records, wanted, cast), "yes", replace=False)
        rows = scoreboard(records).rounds
        others = [[YES[role][n] for role in YES if role != "optimist"] for n in range(3)]
        assert [row.brier for row in rows] == pytest.approx(
            [(1 - sum(yes) / 4) ** 2 for yes in others]
        )
    finally:
        records.close()


OUTCOME_IDS = {
    "given": (["yes: It opens", "no: It does not"], ["yes", "no"]),
    "labels alone": (["It opens", "It does not"], ["It-opens", "It-does-not"]),
    "another alphabet": (["да: Да", "нет: Нет"], ["o1", "o2"]),
    "too long": (["x" * 73, "no"], ["o1", "no"]),
    "odd beginnings": (["_yes: It opens", ".no: It does not"], ["yes", "no"]),
}


@pytest.mark.parametrize(("given", "ids"), OUTCOME_IDS.values(), ids=OUTCOME_IDS)
def test_every_outcome_gets_a_valid_id(given: list[str], ids: list[str]) -> None:
    outcomes = parse_outcomes(given)
    assert [each["id"] for each in outcomes] == ids
    assert [o.id for o in plain_request("Q?", outcomes, None).prediction_context.outcomes] == ids


def test_errors_use_the_field_names_of_the_request() -> None:
    given = request(key_variables=[{"name": "ice", "importance": 1, "current_value": []}])
    with pytest.raises(BadInput) as refused:
        read_request(json.dumps(given))
    place = "prediction_context.key_variables.0.current_value"
    said = f"{place}: Input should be a valid string; {place}.float: Input should be a valid number"
    assert str(refused.value) == f"The request cannot be used: {said}."
