import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError

from contend.graph.values import Usage
from contend.models.text import clean_piece, shorten

RETRYABLE = {"rate_limit", "server", "connection", "idle", "total", "cut", "empty", "length"}

# A longer Retry-After counts as an outage: fail now, and let the user resume later.
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
# langchain's error messages for a stream without any chunks.
_NO_CHUNKS = ("No generation chunks", "No data received")
_OUT_OF_MONEY = ("insufficient_quota", "billing details", "billing_hard_limit")
_MAX_TOKENS = re.compile(r"max_(?:\w+_)?tokens|in the completion|completion tokens", re.I)
_KEY_LIKE = re.compile(r"\b(?:(?:sk|pk|or|gsk|xai)-|gsk_|AIza)[A-Za-z0-9_\-*]{6,}")
# Greedy: everything before the last @ of an address is its user and password.
_USERINFO = re.compile(r"(?<=://)[^\s/?#]*@")
_SECRET_NAME = re.compile(
    r"(?:KEY|KEY_ID|TOKEN)$|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL", re.I
)
SHORTEST_SECRET = 8
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")
_DURATION = re.compile(rf"(?:{_DURATION_PART.pattern})+")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST_LINE = 300


@dataclass(frozen=True)
class Failure:
    kind: str
    why: str
    retry_after: float | None = None

    @property
    def retryable(self) -> bool:
        too_long = self.retry_after is not None and self.retry_after > LONGEST_WAIT
        return self.kind in RETRYABLE and not too_long

    @property
    def is_about_max_tokens(self) -> bool:
        refused = self.kind in ("bad_request", "context_overflow")
        return refused and bool(_MAX_TOKENS.search(self.why))


class BadAnswer(Exception):
    def __init__(self, kind: str, why: str, usage: Usage | None = None) -> None:
        self.failure, self.usage = Failure(kind, why), usage
        super().__init__(why)


def classify(error: Exception) -> Failure | None:
    """Return the kind of failure, or None if the exception is a bug in Contend."""
    if isinstance(error, BadAnswer):
        return error.failure
    status = _status(error)
    if status is not None and status >= 400:
        return _from_status(error, status)
    from langchain_core.exceptions import ContextOverflowError  # slow to import

    if isinstance(error, ContextOverflowError):
        return Failure("context_overflow", _message(error))
    # Check all base classes, because langchain subclasses its clients' errors.
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if isinstance(error, OSError) or modules & _TRANSPORT_MODULES or status is not None:
        return Failure("connection", first_line(error) or type(error).__name__)
    no_answer = isinstance(error, ValueError) and str(error).startswith(_NO_CHUNKS)
    if not no_answer and not isinstance(error, JSONDecodeError):
        return None
    where = "before the answer began" if no_answer else "in the middle of the answer"
    return Failure("cut", f"the stream broke {where}")


def _status(error: Exception) -> int | None:
    for value in (getattr(error, "status_code", None), getattr(error, "code", None)):
        if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
            return int(value)
    return None


def scrub(text: str) -> str:
    """Remove the user's secrets, possible keys, and passwords in URLs."""
    found = {value.strip() for name, value in os.environ.items() if _SECRET_NAME.search(name)}
    found |= {repr(secret)[1:-1] for secret in found}
    # Replace the longest first, because one secret may contain another.
    for secret in sorted(found, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return _KEY_LIKE.sub("***", _USERINFO.sub("***@", text))


def first_line(error: object) -> str:
    lines = clean_piece(scrub(str(error))).strip().splitlines()
    return shorten(lines[0], _LONGEST_LINE) if lines else ""


def _from_status(error: Exception, status: int) -> Failure:
    why = f"{status}: {_message(error)}"
    code = f"{getattr(error, 'code', '')} {getattr(error, 'type', '')} {why}".lower()
    kind = _KINDS.get(status, "bad_request")
    # "billing" alone is not enough, because some providers link their billing page in every 429.
    if status == 429 and any(sign in code for sign in _OUT_OF_MONEY):
        kind = "quota"
    elif status >= 500:
        kind = "server"
    elif any(sign in code for sign in ("context_length", "context size", "context window")):
        kind = "context_overflow"
    if status == 404:
        why += " (unknown model, or wrong address: is /v1 missing?)"
    return Failure(kind, why, _retry_after(error))


def _message(error: Exception) -> str:
    body = getattr(error, "body", None)
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return first_line(body["message"])
    return first_line(getattr(error, "error", None) or error)


def _retry_after(error: Exception) -> float | None:
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


@dataclass(frozen=True)
class StatedBudget:
    left: float
    limit: float
    seconds: float


def stated_budget(headers: Mapping[str, str], what: str) -> StatedBudget | None:
    """Parse the rate limit on `what`. Return None if it is missing or does not reset soon."""
    left, limit, reset = (_stated(headers, what, name) for name in ("remaining", "limit", "reset"))
    try:
        seconds = _seconds(reset)
        if not left or seconds > LONGEST_WAIT:  # such as a daily limit
            return None
        return StatedBudget(float(left), float(limit or "inf"), seconds)
    except ValueError:
        return None


def _stated(headers: Mapping[str, str], what: str, name: str) -> str:
    openai, anthropic = f"x-ratelimit-{name}-{what}", f"anthropic-ratelimit-{what}-{name}"
    return (headers.get(openai) or headers.get(anthropic) or "").strip()


def _seconds(stated: str) -> float:
    """Convert a duration (1m30.5s, 120ms, 12) or an ISO 8601 time to seconds from now."""
    if _DURATION.fullmatch(stated):
        parts = _DURATION_PART.findall(stated)
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    try:
        return float(stated)
    except ValueError:
        moment = datetime.fromisoformat(stated)
        return max(0.0, (moment - datetime.now(moment.tzinfo)).total_seconds())
