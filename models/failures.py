"""What went wrong with a model call, in kinds that say whether trying again can help."""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from langchain_core.exceptions import ContextOverflowError

RETRYABLE = {"rate_limit", "server", "connection", "idle", "total", "cut", "empty", "length"}

# Beyond this a provider's Retry-After is an outage, not a pause: better fail and be resumed.
LONGEST_WAIT = 120.0

_TRANSPORT_MODULES = {"httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "openai"}
_KINDS = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "unknown_model",
    408: "server",
    409: "server",
    425: "server",
    429: "rate_limit",
}
# How langchain says that a stream closed without a single chunk.
_NO_CHUNKS = ("No generation chunks", "No data received")
_KEY_LIKE = re.compile(r"\b(?:sk|pk|or|gsk|xai)-[A-Za-z0-9_\-*]{6,}")


@dataclass(frozen=True)
class Failure:
    """One failed attempt."""

    kind: str
    why: str
    retry_after: float | None = None

    @property
    def retryable(self) -> bool:
        """Whether the same model may be asked again."""
        too_long = self.retry_after is not None and self.retry_after > LONGEST_WAIT
        return self.kind in RETRYABLE and not too_long


class BadAnswer(Exception):
    """The provider answered, but not with something that may enter the debate."""

    def __init__(self, kind: str, why: str) -> None:
        self.failure = Failure(kind, why)
        super().__init__(why)


def classify(error: Exception) -> Failure | None:
    """The failure behind an exception, or None for a bug of ours that must surface as one."""
    if isinstance(error, BadAnswer):
        return error.failure
    status = _status(error)
    if status is not None and status >= 400:
        return _from_status(error, status)
    if isinstance(error, ContextOverflowError):
        return Failure("context_overflow", _message(error))
    if isinstance(error, OSError) or _from_transport(error) or status is not None:
        return Failure("connection", _first_line(error) or type(error).__name__)
    if isinstance(error, ValueError) and str(error).startswith(_NO_CHUNKS):
        return Failure("cut", "the stream ended before the answer began")
    return None


def _from_transport(error: Exception) -> bool:
    """langchain raises subclasses of its clients' errors, so the whole ancestry counts."""
    roots = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return not roots.isdisjoint(_TRANSPORT_MODULES)


def _status(error: Exception) -> int | None:
    """The HTTP status; an error inside a stream carries it as text in its code, or as -1."""
    for value in (getattr(error, "status_code", None), getattr(error, "code", None)):
        if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
            return int(value)
    return None


def scrub(text: str) -> str:
    """Remove anything that looks like, or is, one of the user's keys."""
    for name, value in os.environ.items():
        if name.endswith(("_API_KEY", "_TOKEN", "_SECRET")) and len(value) >= 8:
            text = text.replace(value, "***")
    return _KEY_LIKE.sub("***", text)


def _from_status(error: Exception, status: int) -> Failure:
    why = f"{status}: {_message(error)}"
    code = f"{getattr(error, 'code', '')} {getattr(error, 'type', '')} {why}".lower()
    return Failure(_kind(status, code), why, _retry_after(error))


def _kind(status: int, code: str) -> str:
    if status == 429 and ("insufficient_quota" in code or "billing" in code):
        return "quota"
    if status >= 500:
        return "server"
    if any(sign in code for sign in ("context_length", "context size", "context window")):
        return "context_overflow"
    return _KINDS.get(status, "bad_request")


def _message(error: Exception) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return scrub(body["message"])
    return _first_line(getattr(error, "error", None) or error)


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return scrub(lines[0][:300]) if lines else ""


def _retry_after(error: Exception) -> float | None:
    """Seconds the provider asks to wait, given as a number or as a date."""
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    stated = headers.get("retry-after", "")
    try:
        return max(0.0, float(stated))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(stated) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
