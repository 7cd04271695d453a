import hashlib
import hmac
import os
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from fastapi import Request, Security
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

from contend.service.errors import Refused

TOKEN_VARIABLE = "CONTEND_SERVICE_TOKEN"  # noqa: S105 - the variable's name, not a token

# Used only for the OpenAPI document; as a check it would answer with 403.
_described = HTTPBearer(auto_error=False, description="The service token.")


async def require_token(request: Request, _: object = Security(_described)) -> None:
    """Refuse requests without the token; if no token is set, refuse all requests."""
    if not os.environ.get(TOKEN_VARIABLE, "").strip():
        raise Refused(401, "no_token_set", f"This service has no token. Set {TOKEN_VARIABLE}.")
    if not is_service_token(request.scope):
        raise Refused(401, "unauthorized", "A valid service token is required: Bearer TOKEN.")


async def require_token_from_network(request: Request, _: object = Security(_described)) -> None:
    if request.app.state.runs.options.open_to_network or not is_loopback(client_of(request)):
        await require_token(request)


def client_of(request: HTTPConnection) -> str:
    """Return the client's IP address, used as the key of per-client limits."""
    return request.client.host if request.client else "localhost"  # a local socket has no address


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_service_token(scope: Mapping[str, Any]) -> bool:
    expected = os.environ.get(TOKEN_VARIABLE, "").strip()
    return bool(expected) and _same(_given(scope), os.fsencode(expected))


def _given(scope: Mapping[str, Any]) -> bytes:
    header = dict(scope["headers"]).get(b"authorization", b"")
    scheme, _, token = bytes(header).partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _same(given: bytes, expected: bytes) -> bool:
    return hmac.compare_digest(hashlib.sha256(given).digest(), hashlib.sha256(expected).digest())
