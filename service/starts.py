import asyncio
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from fnmatch import fnmatchcase
from typing import Any
from uuid import uuid4

from fastapi import Request

from contend.debates.forecasts import PROTOCOL as FORECAST
from contend.debates.forecasts import parse_outcomes, plain_request
from contend.debates.fork import changed_settings
from contend.debates.prepare import draft_debate, waits_for_person
from contend.debates.presets import DEFAULT_PROTOCOL, Preset, find_preset
from contend.debates.record import StoredDebate
from contend.debates.repository import DebateExists, TaskAccepted, task_of_debate
from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.settings import SETTINGS, DebateSettings
from contend.graph.settings.forecast import settings_of
from contend.graph.values import HUMAN
from contend.models.providers.registry import parse_spec
from contend.models.seats import models_of
from contend.service.auth import client_of
from contend.service.errors import Refused, refusing_bad_input, refusing_settings
from contend.service.options import ServiceOptions
from contend.service.run import Run
from contend.service.runs import Runs
from contend.service.uploads import Start, Upload, read_upload


async def start_debate(runs: Runs, request: Request) -> StoredDebate:
    """Read the request, then start the debate. Only the second step takes up a slot."""
    async with read_upload(request) as upload:
        return (await start_run(runs, upload, client_of(request))).debate


async def start_run(runs: Runs, upload: Upload, client: str, *, is_attended: bool = True) -> Run:
    """Start a debate. If it is unattended, refuse a debate that would wait for a person."""
    with runs.reserve_slot(client), refusing_bad_input():
        debate = await _write_debate(runs, upload, is_attended=is_attended)
        return runs.begin(debate, client=client)


async def _write_debate(runs: Runs, upload: Upload, *, is_attended: bool) -> StoredDebate:
    start = upload.start
    forecast = forecast_request(start)
    settings = await asyncio.to_thread(checked_settings, runs.options, start, forecast)
    draft = await asyncio.to_thread(
        draft_debate, start.question, settings, upload.documents, upload.images
    )
    if not is_attended and waits_for_person(settings, settings.build_seats()):
        detail = "Nobody can answer here: leave `pause` at never, and give every seat a model."
        raise BadInput(detail)
    debate_id = str(start.id or uuid4())
    try:
        return await runs.store(draft, forecast, debate_id, task_of_debate(debate_id))
    except (DebateExists, TaskAccepted) as taken:
        detail = "There is a debate with this id."
        raise Refused(409, "already_exists", detail, debate_id=debate_id) from taken


def protocol_of(start: Start) -> str:
    preset = _preset_of(start)
    return start.protocol or (preset.protocol if preset else DEFAULT_PROTOCOL)


def _preset_of(start: Start) -> Preset | None:
    return None if start.preset is None else find_preset(start.preset)


def forecast_request(start: Start) -> DebateRequest | None:
    if protocol_of(start) != FORECAST:
        if start.outcomes or start.due:
            raise BadInput("Only a forecast has outcomes and a due date.")
        return None
    if not start.outcomes:
        raise BadInput("A forecast needs outcomes, such as 'yes: It opens' and 'no: It does not'.")
    return plain_request(start.question, parse_outcomes(start.outcomes), start.due)


def checked_settings(
    options: ServiceOptions, start: Start, forecast: DebateRequest | None = None
) -> DebateSettings:
    protocol = protocol_of(start)
    own = own_settings(options, protocol)
    wanted = {**(settings_of(forecast) if forecast else {}), **start.settings}
    settings = options.settings_of(protocol, wanted, start.model, _preset_of(start))
    _check_paths(settings, own)
    _check_models(_models_in(settings), options, own)
    return settings


def check_fork(options: ServiceOptions, parent: StoredDebate, changes: Mapping[str, Any]) -> None:
    """Refuse changes that callers may not make, and models that are not allowed."""
    settings, before = changed_settings(parent, changes), parent.as_settings()
    _check_paths(settings, before)
    # Allow the parent's embedding model, which its caller may not have chosen.
    models = {*_models_in(settings)} - {str(parse_spec(before.embedding_model))}
    _check_models(sorted(models), options, own_settings(options, parent.protocol))


def _check_paths(settings: DebateSettings, known: DebateSettings) -> None:
    if getattr(settings, "output_dir", None) != getattr(known, "output_dir", None):
        raise BadInput("output_dir can only be set by the operator of this service.")
    if settings.files_of_seats() not in ({}, known.files_of_seats()):
        raise BadInput("Seats cannot name files here; upload the documents with the question.")


def _check_models(models: Iterable[str], options: ServiceOptions, own: DebateSettings) -> None:
    for model in models:
        if not is_allowed(model, options, own):
            raise BadInput(f"This service does not allow the model {model}.")


def own_settings(options: ServiceOptions, protocol: str) -> DebateSettings:
    """Return the operator's settings for a protocol; report errors in them as server errors."""
    with refusing_settings() if protocol in SETTINGS else nullcontext():
        return options.settings_of(protocol, {})


def is_allowed(model: str, options: ServiceOptions, own: DebateSettings) -> bool:
    """Return whether callers may choose this model."""
    patterns = options.allowed_models
    is_own = model == HUMAN or model in _models_in(own)
    return is_own or any(fnmatchcase(model, each) for each in patterns)


def _models_in(settings: DebateSettings) -> list[str]:
    names = [*models_of(settings.build_seats()), settings.embedding_model]
    return [str(parse_spec(name)) for name in names]
