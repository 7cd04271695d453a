"""Read a request's body up to the allowed size."""

from fastapi import Request
from starlette.requests import ClientDisconnect

from contend.graph.contract.terms import MAX_REQUEST_BYTES
from contend.service.errors import Refused


async def read_body(request: Request) -> bytes:
    """Return the body; refuse it as soon as it is too large."""
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
        raise Refused(400, "incomplete", "The request ended before it was complete.") from gone
    return bytes(body)


def _too_large() -> Refused:
    return Refused(413, "too_large", f"The request is larger than {MAX_REQUEST_BYTES:,} bytes.")
