import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from contend.graph.errors import BadInput, DamagedDebate, DatabaseUnavailable, QuestionTooLong
from contend.models.failures import scrub
from contend.service.logs import log_error, log_trouble

# Rewrites command-line options as settings, because API clients have no command line.
_OPTIONS = (
    (re.compile(r" \(--\w+\)"), ""),
    (re.compile(r"--set '?(\w+)=(\{.*?\}'?|[^\s,;]*\w)"), r"the setting \1"),
    (re.compile(r"--seat NAME=MODEL"), "entry in `seats`"),
    (re.compile(r"--(\w+)"), r"`\1`"),
)
_CODES = {404: "not_found", 405: "method_not_allowed"}
_LATER = {"Retry-After": "10"}
_HEADERS = {401: {"WWW-Authenticate": "Bearer"}, 429: _LATER, 503: _LATER}


class ErrorBody(BaseModel):
    """The body of every error response."""

    error: str = Field(description="An error code, for programs.", examples=["not_found"])
    detail: str = Field(
        description="What went wrong, as a sentence.", examples=["No forecast has the id ..."]
    )
    problems: list[str] = Field(default_factory=list, description="What is wrong with the request.")
    debate_id: str | None = Field(None, description="The id of the debate concerned, if any.")
    status: str | None = Field(None, description="The status of that debate.")


class Refused(Exception):
    def __init__(self, code: int, error: str, detail: str, **more: Any) -> None:
        self.code, self.body = code, ErrorBody(error=error, detail=detail, **more)
        super().__init__(detail)


def refuse(refused: Refused) -> JSONResponse:
    return JSONResponse(refused.body.model_dump(), refused.code, headers=error_headers(refused))


def error_headers(refused: Refused) -> dict[str, str]:
    return {**_HEADERS.get(refused.code, {})}


def database_unavailable(debate_id: str | None = None) -> Refused:
    detail = "The database of this service is not available; try again later."
    return Refused(503, "database_away", detail, debate_id=debate_id)


def damaged_debate(debate_id: str) -> Refused:
    detail = "The stored data of this debate is damaged; see the log of the service."
    return Refused(500, "damaged", detail, debate_id=debate_id)


def unexpected_error(debate_id: str | None = None) -> Refused:
    detail = "Internal error; see the log of the service."
    return Refused(500, "error", detail, debate_id=debate_id)


def refusing_settings() -> AbstractContextManager[None]:
    return _refusing("misconfigured", "The settings of this service cannot be used")


def refusing_models() -> AbstractContextManager[None]:
    return _refusing("models_unavailable", "The models of this service are not available")


@contextmanager
def _refusing(error: str, what: str) -> Iterator[None]:
    try:
        yield
    except QuestionTooLong as long:
        raise Refused(422, "too_long", f"{long.what} Shorten it.") from long
    except BadInput as unusable:
        raise Refused(503, error, scrub(f"{what}: {unusable}")) from unusable


@contextmanager
def refusing_outages() -> Iterator[None]:
    """Refuse a request if the database is unavailable or a debate is damaged; log the details."""
    try:
        yield
    except DatabaseUnavailable as outage:
        log_trouble(str(outage))
        raise database_unavailable() from outage
    except DamagedDebate as damaged:
        log_trouble(str(damaged))
        raise damaged_debate(damaged.debate_id) from damaged


@contextmanager
def refusing_bad_input() -> Iterator[None]:
    try:
        yield
    except BadInput as unusable:
        raise Refused(422, "invalid", without_options(scrub(str(unusable)))) from unusable


def without_options(text: str) -> str:
    for option, instead in _OPTIONS:
        text = option.sub(instead, text)
    return text


async def on_refused(_: Request, refused: Refused) -> JSONResponse:
    return refuse(refused)


async def on_database_unavailable(_: Request, outage: DatabaseUnavailable) -> JSONResponse:
    log_trouble(str(outage))
    return refuse(database_unavailable())


async def on_damaged(_: Request, damaged: DamagedDebate) -> JSONResponse:
    log_trouble(str(damaged))
    return refuse(damaged_debate(damaged.debate_id))


async def on_invalid(_: Request, error: RequestValidationError) -> JSONResponse:
    """Report an invalid path, query or header without echoing the value."""
    problems = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5]]
    detail = "The request is invalid; see problems."
    return refuse(Refused(422, "invalid", detail, problems=problems))


async def on_http_error(_: Request, error: HTTPException) -> JSONResponse:
    code = _CODES.get(error.status_code, "refused")
    return JSONResponse(
        ErrorBody(error=code, detail=str(error.detail)).model_dump(),
        error.status_code,
        headers=dict(error.headers) if error.headers else None,
    )


async def on_unexpected(request: Request, error: Exception) -> JSONResponse:
    log_error(f"{request.method} {request.url.path} ended in an error", error)
    return refuse(unexpected_error())
