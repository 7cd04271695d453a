"""Turns a caller's request into a debate that can start."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from uuid import UUID, uuid4

from fastapi import Request, UploadFile
from pydantic import BaseModel, ConfigDict, Field, StrictStr
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException

from contend.debates.forecasts import PROTOCOL as FORECAST
from contend.debates.forecasts import parse_outcomes, plain_request
from contend.debates.prepare import draft_debate, prepare_debate, write_debate
from contend.debates.record import StoredDebate
from contend.debates.repository import DebateExists, TaskAccepted, task_of_debate
from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.settings import DebateSettings
from contend.graph.settings.forecast import settings_of
from contend.models.failures import scrub
from contend.models.providers.registry import parse_spec
from contend.models.seats import models_of
from contend.service.bodies import parse_body, read_json
from contend.service.errors import Refused
from contend.service.options import ServiceOptions
from contend.service.runs import Runs

MAX_UPLOAD_BYTES = 50_000_000
_MOST_FILES = 40


class Start(BaseModel):
    """A debate to start."""

    model_config = ConfigDict(extra="forbid")

    question: StrictStr = Field(max_length=200_000)
    protocol: StrictStr = "adversarial"
    model: Annotated[StrictStr, Field(max_length=200)] | None = Field(
        None, description="The model of every seat that has none of its own."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="As in GET /api/v1/protocols.", max_length=100
    )
    outcomes: list[StrictStr] = Field(
        default_factory=list, description='Of a forecast, such as "yes: It opens".', max_length=20
    )
    due: date | None = Field(None, description="When the outcome of a forecast is known.")
    id: UUID | None = Field(None, description="The id of the debate; a new one by default.")


async def read_start(request: Request, folder: Path) -> tuple[Start, list[Path], list[Path]]:
    """Read JSON, or a form with the JSON and files; save the files in the folder."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        return parse_body(Start, await read_json(request)), [], []
    _refuse_large_form(request)
    try:
        async with request.form(max_files=_MOST_FILES, max_fields=2) as form:
            described = form.get("debate")
            if not isinstance(described, str):
                raise Refused(422, "invalid", "The form needs a part named debate, with JSON.")
            return (
                parse_body(Start, described.encode()),
                await _save(form, "documents", folder),
                await _save(form, "images", folder),
            )
    except HTTPException as error:
        raise Refused(422, "invalid", f"The form cannot be read: {error.detail}") from error


def _refuse_large_form(request: Request) -> None:
    length = request.headers.get("content-length", "")
    if not length.isdigit():
        raise Refused(411, "no_length", "Send the length of the form.")
    if int(length) > MAX_UPLOAD_BYTES:
        raise Refused(413, "too_large", f"The files are larger than {MAX_UPLOAD_BYTES:,} bytes.")


async def _save(form: FormData, part: str, folder: Path) -> list[Path]:
    """Save the files of a part under their own names, each in a folder of its own."""
    saved = []
    for number, upload in enumerate(form.getlist(part)):
        if not isinstance(upload, UploadFile) and not hasattr(upload, "read"):
            raise Refused(422, "invalid", f"The part {part} must be a file.")
        name = Path(getattr(upload, "filename", None) or "file").name.lstrip(".") or "file"
        place = folder / f"{part}{number}"
        place.mkdir()
        path = place / name[-120:]
        path.write_bytes(await upload.read())
        saved.append(path)
    return saved


async def start_debate(runs: Runs, options: ServiceOptions, request: Request) -> StoredDebate:
    with runs.one_more(), TemporaryDirectory(prefix="contend-") as scratch, refusing_bad_input():
        start, documents, images = await read_start(request, Path(scratch))
        forecast = forecast_request(start)
        settings = await asyncio.to_thread(checked_settings, options, start, forecast)
        draft = await asyncio.to_thread(draft_debate, start.question, settings, documents, images)
        prepared = await prepare_debate(draft, fetch=False)
        debate_id = str(start.id or uuid4())
        try:
            debate = await asyncio.to_thread(
                write_debate,
                runs.records,
                prepared,
                forecast,
                task_id=task_of_debate(debate_id),
                debate_id=debate_id,
            )
        except (DebateExists, TaskAccepted) as taken:
            detail = "There is a debate with this id."
            raise Refused(409, "already_exists", detail, debate_id=debate_id) from taken
    runs.begin(debate)
    return debate.model_copy(update={"status": "running"})


def forecast_request(start: Start) -> DebateRequest | None:
    if start.protocol != FORECAST:
        if start.outcomes or start.due:
            raise BadInput("Only a forecast has outcomes and a due date.")
        return None
    if not start.outcomes:
        raise BadInput("A forecast needs outcomes, such as 'yes: It opens' and 'no: It does not'.")
    return plain_request(start.question, parse_outcomes(start.outcomes), start.due)


def checked_settings(
    options: ServiceOptions, start: Start, forecast: DebateRequest | None = None
) -> DebateSettings:
    """Return the settings; refuse files of this machine and models that are not allowed."""
    wanted = {**(settings_of(forecast) if forecast else {}), **start.settings}
    settings = options.settings_of(start.protocol, wanted, start.model)
    own = options.settings_of(start.protocol, {})
    if getattr(settings, "output_dir", None) != getattr(own, "output_dir", None):
        raise BadInput("output_dir can only be set by the operator of this service.")
    if settings.files_of_seats() not in ({}, own.files_of_seats()):
        raise BadInput("Seats cannot name files here; upload the documents with the question.")
    for model in _models_in(settings):
        if not is_allowed(model, options, own):
            raise BadInput(f"This service does not allow the model {model}.")
    return settings


def is_allowed(model: str, options: ServiceOptions, own: DebateSettings) -> bool:
    """Whether callers may choose a model: the service uses it, or the operator allows it."""
    patterns = options.allowed_models
    return model in _models_in(own) or any(fnmatchcase(model, each) for each in patterns)


def _models_in(settings: DebateSettings) -> list[str]:
    names = [*models_of(settings.build_seats()), settings.embedding_model]
    return [str(parse_spec(name)) for name in names]


@contextmanager
def refusing_bad_input() -> Iterator[None]:
    try:
        yield
    except BadInput as unusable:
        raise Refused(422, "invalid", scrub(str(unusable))) from unusable
