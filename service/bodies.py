import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from contend.debates.forecasts import problems
from contend.service.errors import Refused

Body = TypeVar("Body", bound=BaseModel)
MAX_JSON_BYTES = 1_000_000
SECONDS_FOR_JSON = 30.0


async def read_json(request: Request, most: int = MAX_JSON_BYTES) -> bytes:
    """Return the body; refuse the request as soon as the body exceeds the limit."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind.lower() != "application/json" and not kind.lower().endswith("+json"):
        raise Refused(415, "not_json", "Send the request as application/json.")
    too_large = Refused(413, "too_large", f"The request is larger than {most:,} bytes.")
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > most:
        raise too_large
    body = bytearray()
    async with body_in_time(SECONDS_FOR_JSON):
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise too_large
    return bytes(body)


@asynccontextmanager
async def body_in_time(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as late:
        detail = f"The request was not complete after {seconds:.0f} seconds. Send it again."
        raise Refused(408, "too_slow", detail) from late
    except ClientDisconnect as gone:
        raise Refused(400, "incomplete", "The request ended before it was complete.") from gone


def parse_body(model: type[Body], body: bytes) -> Body:
    with _refusing_invalid():
        return model.model_validate_json(body)


def parse_given(model: type[Body], given: Mapping[str, Any]) -> Body:
    with _refusing_invalid():
        return model.model_validate(given)


@contextmanager
def _refusing_invalid() -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        detail = "The request is invalid; see problems."
        raise Refused(422, "invalid", detail, problems=problems(error)) from error


def describe_body(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": required, "content": content}}
