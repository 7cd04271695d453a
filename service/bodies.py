"""Reading a request's body without taking in more than is allowed."""

from fastapi import Request
from starlette.requests import ClientDisconnect

from contend.graph.contract.terms import MAX_REQUEST_BYTES
from contend.service.errors import Refused


async def read_body(request: Request) -> bytes:
    """The body, refused as soon as it is too large: before it is parsed, or even whole."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind.lower() != "application/json" and not kind.lower().endswith("+json"):
        raise Refused(415, "not_json", "Send the request as application/json.")
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > MAX_REQUEST_BYTES:
        raise _too_large()
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_REQUEST_BYTES:
                raise _too_large()
    except ClientDisconnect as gone:
        raise Refused(400, "incomplete", "The request ended before it was whole.") from gone
    return bytes(body)


def _too_large() -> Refused:
    return Refused(413, "too_large", f"The request is larger than {MAX_REQUEST_BYTES:,} bytes.")
