"""Reads requests to start a debate, as JSON or as a form with JSON and files."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from uuid import UUID

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StrictStr
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from contend.models.files import usable_name
from contend.service.bodies import body_in_time, parse_body, read_json
from contend.service.errors import Refused

MAX_UPLOAD_BYTES = 50_000_000
SECONDS_FOR_FORM = 300.0
_MOST_FILES = 40


class Start(BaseModel):
    """A request to start a debate."""

    model_config = ConfigDict(extra="forbid")

    question: StrictStr = Field(max_length=200_000)
    protocol: StrictStr | None = Field(
        None, description="The preset's by default, otherwise adversarial."
    )
    model: Annotated[StrictStr, Field(max_length=200)] | None = Field(
        None, description="The model for every seat without a model of its own."
    )
    preset: Annotated[StrictStr, Field(max_length=40)] | None = Field(
        None, description="Named models and settings; GET /api/v1/presets lists them."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict,
        description="Settings; GET /api/v1/protocols lists them.",
        max_length=100,
    )
    outcomes: list[StrictStr] = Field(
        default_factory=list, description='For a forecast, such as "yes: It opens".', max_length=20
    )
    due: date | None = Field(None, description="For a forecast: the day the outcome will be known.")
    id: UUID | None = Field(None, description="The id of the debate; a new one by default.")


@dataclass(frozen=True)
class Upload:
    start: Start
    documents: tuple[Path, ...] = ()
    images: tuple[Path, ...] = ()


@asynccontextmanager
async def read_upload(request: Request) -> AsyncIterator[Upload]:
    """Yield the parsed request; delete any uploaded files when the context ends."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "multipart/form-data":
        yield Upload(parse_body(Start, await read_json(request)))
        return
    _refuse_large_form(request)
    scratch = await asyncio.to_thread(TemporaryDirectory, prefix="contend-")
    try:
        yield await _read_form(request, Path(scratch.name))
    finally:
        await asyncio.to_thread(scratch.cleanup)


def _refuse_large_form(request: Request) -> None:
    length = request.headers.get("content-length", "")
    if not length.isdigit():
        raise Refused(411, "no_length", "Send the length of the form.")
    if int(length) > MAX_UPLOAD_BYTES:
        raise Refused(413, "too_large", f"The files are larger than {MAX_UPLOAD_BYTES:,} bytes.")


async def _read_form(request: Request, folder: Path) -> Upload:
    try:
        async with (
            body_in_time(SECONDS_FOR_FORM),
            request.form(max_files=_MOST_FILES, max_fields=2) as form,
        ):
            described = form.get("debate")
            if not isinstance(described, str):
                raise Refused(422, "invalid", "The form needs a part named debate, with JSON.")
            return Upload(
                parse_body(Start, described.encode()),
                await _save(form, "documents", folder),
                await _save(form, "images", folder),
            )
    except HTTPException as error:
        raise Refused(422, "invalid", f"The form cannot be read: {error.detail}") from error


async def _save(form: FormData, part: str, folder: Path) -> tuple[Path, ...]:
    saved = []
    for number, upload in enumerate(form.getlist(part)):
        if not isinstance(upload, UploadFile):
            raise Refused(422, "invalid", f"The part {part} must be a file.")
        path = folder / f"{part}{number}" / usable_name(upload.filename or "")
        content = await upload.read()
        await asyncio.to_thread(_write, path, content)
        saved.append(path)
    return tuple(saved)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
