"""Provides the endpoints for protocols, presets, models, estimates and the scoreboard."""

import asyncio
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field

from contend.debates import forecasts
from contend.debates.estimate import estimate
from contend.debates.presets import usable_presets
from contend.debates.record import StoredDebate
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import SETTINGS
from contend.models.seats import UsableModel, choose_seats, usable_models
from contend.service.auth import require_token_from_network
from contend.service.bodies import describe_body, parse_body, read_json
from contend.service.errors import refusing_bad_input, refusing_models
from contend.service.lookup import TheRuns
from contend.service.openapi import errors
from contend.service.runs import Runs
from contend.service.starts import (
    checked_settings,
    is_allowed,
    own_settings,
)
from contend.service.summaries import DebateSummary, SeatSummary, summarize
from contend.service.uploads import Start

router = APIRouter(
    prefix="/api/v1", tags=["debates"], dependencies=[Depends(require_token_from_network)]
)


class Protocol(BaseModel):
    """A protocol and its settings."""

    name: str
    title: str
    description: str
    use_when: str
    seats: list[SeatSummary]
    people: list[str] = Field(description="The roles whose seats a person can take.")
    settings_schema: dict[str, Any] = Field(
        alias="schema", description="The settings as JSON Schema."
    )


class Protocols(BaseModel):
    protocols: list[Protocol]


class Models(BaseModel):
    """All usable models, and the default model."""

    default: str
    notice: str
    models: list[UsableModel]


class LikelyAnswer(BaseModel):
    """The typical calls, tokens and cost of a debate with these settings."""

    calls: int
    tokens: int
    cost_usd: float | None = Field(description="Null if a price is unknown.")
    debates: int = Field(description="How many past debates the estimate is based on.")


class EstimateAnswer(BaseModel):
    """The minimum and maximum calls, tokens and cost, provided that no call fails."""

    # Lists, because not every OpenAPI tool supports tuples.
    calls: list[int] = Field(min_length=2, max_length=2)
    tokens: list[int] = Field(min_length=2, max_length=2)
    cost_usd: Annotated[list[float], Field(min_length=2, max_length=2)] | None = Field(
        description="Null if the price of a model is unknown."
    )
    prices_read: date | None = Field(
        default=None, description="When the oldest of the built-in prices used here was looked up."
    )
    likely: LikelyAnswer
    notice: str = Field(description="Which models would be used, and why.")


class ScoreboardAnswer(BaseModel):
    """The accuracy of resolved forecasts, and the forecasts that are not resolved yet."""

    due: list[DebateSummary]
    open: list[DebateSummary]
    scores: dict[str, Any]


@router.get("/protocols", summary="The protocols and their settings", responses=errors(401))
async def get_protocols() -> Protocols:
    return Protocols(protocols=[_protocol(name) for name in SETTINGS])


def _protocol(name: str) -> Protocol:
    model = SETTINGS[name]
    seats = [SeatSummary.model_validate(seat.model_dump()) for seat in model().build_seats()]
    return Protocol(
        name=name,
        title=name.capitalize(),
        description=(model.__doc__ or "").strip(),
        use_when=model.use_when,
        seats=seats,
        people=sorted(strategy_for(model()).roles_for_people),
        schema=model.model_json_schema(),
    )


class PresetSummary(BaseModel):
    """A named combination of models and settings."""

    name: str
    description: str
    protocol: str
    model: str | None
    settings: dict[str, Any]


class Presets(BaseModel):
    presets: list[PresetSummary]


@router.get("/presets", summary="The presets", responses=errors(401))
async def get_presets() -> Presets:
    found = await asyncio.to_thread(usable_presets)
    return Presets(presets=[PresetSummary.model_validate(asdict(each)) for each in found])


@router.get("/models", summary="The models that can be used now", responses=errors(401, 503))
async def get_models(runs: TheRuns) -> Models:
    settings = await asyncio.to_thread(own_settings, runs.options, "adversarial")
    with refusing_models():
        plan = await choose_seats(settings)
    found = [
        each for each in await usable_models() if is_allowed(each.spec, runs.options, settings)
    ]
    return Models(default=plan.seats[0].model, notice=plan.notice, models=found)


@router.post(
    "/estimate",
    summary="The estimated calls, tokens and cost of a debate",
    responses=errors(401, 403, 408, 413, 415, 422, 503),
    openapi_extra=describe_body(Start),
)
async def post_estimate(request: Request, runs: TheRuns) -> EstimateAnswer:
    """Estimate the calls, tokens and cost of a debate without starting it."""
    start = parse_body(Start, await read_json(request))
    with refusing_bad_input():
        settings = await asyncio.to_thread(checked_settings, runs.options, start)
        plan = await choose_seats(settings)
        past = await asyncio.to_thread(runs.records.past, settings.protocol)
        found = estimate(start.question, settings, plan.seats, past)
    return EstimateAnswer(**asdict(found), notice=plan.notice)


@router.get("/scoreboard", summary="The accuracy of the forecasts", responses=errors(401, 503))
async def get_scoreboard(runs: TheRuns) -> ScoreboardAnswer:
    return await asyncio.to_thread(_scoreboard, runs)


def _scoreboard(runs: Runs) -> ScoreboardAnswer:
    today = datetime.now(UTC).date()
    waiting = forecasts.due_forecasts(forecasts.forecasts(runs.records), today, every=True)
    due = [each.debate for each in waiting if each.due is not None and each.due <= today]
    later = [each.debate for each in waiting if each.debate not in due]
    scores = forecasts.scoreboard(runs.records).as_json()
    return ScoreboardAnswer(due=_summaries(due), open=_summaries(later), scores=scores)


def _summaries(debates: list[StoredDebate]) -> list[DebateSummary]:
    return [summarize(each, here=False, waiting_for_you=False) for each in debates]
