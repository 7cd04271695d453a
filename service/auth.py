"""The service token: who may call the API."""

import hashlib
import hmac
import os

from fastapi import Request, Security
from fastapi.security import HTTPBearer

from contend.service.errors import Refused

TOKEN_VARIABLE = "CONTEND_SERVICE_TOKEN"  # noqa: S105 - the variable's name, not a token

# Only for the OpenAPI document: it would decode the header, and answer 403.
_described = HTTPBearer(auto_error=False, description="The service token.")


async def require_token(request: Request, _: object = Security(_described)) -> None:
    """Let only those in who have the token; without one set, nobody."""
    expected = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not expected:
        raise Refused(401, "no_token_set", f"This service has no token yet: set {TOKEN_VARIABLE}.")
    if not _same(_given(request), os.fsencode(expected)):
        raise Refused(401, "unauthorized", "A valid service token is needed: Bearer TOKEN.")


def _given(request: Request) -> bytes:
    """The token as bytes: a header may hold what is no text."""
    header = dict(request.scope["headers"]).get(b"authorization", b"")
    scheme, _, token = bytes(header).partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _same(given: bytes, expected: bytes) -> bool:
    """Compared in constant time, and by their hashes, so that not even the length is told."""
    return hmac.compare_digest(hashlib.sha256(given).digest(), hashlib.sha256(expected).digest())
