"""Classification of provider errors, and scrubbing of keys from their messages."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from math import inf
from typing import Any

import httpx
import pytest
from langchain_core.exceptions import ContextOverflowError
from ollama import ResponseError
from openai import APIConnectionError, APIStatusError

from contend.models.failures import (
    LONGEST_WAIT,
    BadAnswer,
    Failure,
    StatedBudget,
    classify,
    first_line,
    scrub,
    stated_budget,
)

# The client may bring an httpx of its own; any with these fields will do.
REQUEST: Any = httpx.Request("POST", "http://127.0.0.1/v1")


def status_error(
    status: int, message: str = "no", headers: dict[str, str] | None = None
) -> APIStatusError:
    response: Any = httpx.Response(status, headers=headers, request=REQUEST)
    return APIStatusError(message, response=response, body={"message": message})


class Wrapped(APIConnectionError):
    """A subclass in another module, as langchain defines for its client's errors."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (status_error(400), "bad_request"),
        (status_error(401), "auth"),
        (status_error(402), "quota"),
        (status_error(403), "auth"),
        (status_error(404), "unknown_model"),
        (status_error(408), "server"),
        (status_error(409), "server"),
        (status_error(429), "rate_limit"),
        (status_error(429, "check your plan and billing details"), "quota"),
        (status_error(429, "Need more? See https://host/settings/billing"), "rate_limit"),
        (status_error(500), "server"),
        (status_error(529), "server"),
        (status_error(400, "maximum context_length is 8192"), "context_overflow"),
        (status_error(400, "request exceeds the available context size"), "context_overflow"),
        (ResponseError("model not found", 404), "unknown_model"),
        (ResponseError("runner died", -1), "connection"),
        (httpx.ReadTimeout("slow"), "connection"),
        (httpx.ConnectError("refused"), "connection"),
        (Wrapped(request=REQUEST), "connection"),
        (ConnectionResetError("reset"), "connection"),
        (ContextOverflowError("too long"), "context_overflow"),
        (ValueError("No generation chunks were returned"), "cut"),
        (BadAnswer("empty", "the answer was empty"), "empty"),
    ],
)
def test_classifies_failures(error: Exception, kind: str) -> None:
    failure = classify(error)
    assert failure is not None
    assert failure.kind == kind
    assert failure.why


@pytest.mark.parametrize(
    "bug", [KeyError("x"), ValueError("x"), TypeError("x"), ZeroDivisionError()]
)
def test_does_not_classify_a_bug_as_a_provider_failure(bug: Exception) -> None:
    assert classify(bug) is None


@pytest.mark.parametrize(
    ("failure", "again"),
    [
        (Failure("server", "no"), True),
        (Failure("rate_limit", "no", LONGEST_WAIT), True),
        (Failure("rate_limit", "no", LONGEST_WAIT + 1), False),
        (Failure("auth", "no"), False),
        (Failure("refused", "no"), False),
        (Failure("context_overflow", "no"), False),
    ],
)
def test_retries_only_failures_that_may_pass(failure: Failure, again: bool) -> None:
    assert failure.retryable is again


@pytest.mark.parametrize(
    ("stated", "seconds"),
    [("7", 7), ("0", 0), ("1.5", 1.5), ("-3", 0), ("soon", None), ("", None)],
)
def test_retry_after_in_seconds(stated: str, seconds: float | None) -> None:
    failure = classify(status_error(429, headers={"retry-after": stated}))
    assert failure is not None
    assert failure.retry_after == seconds


@pytest.mark.parametrize("stated", ["nan", "inf", "-inf"])
def test_an_invalid_retry_after_never_causes_a_wait(stated: str) -> None:
    failure = classify(status_error(429, headers={"retry-after": stated}))
    assert failure is not None
    assert failure.retry_after is None or failure.retry_after >= 0
    assert failure.retry_after is None or not failure.retryable or failure.retry_after == 0


def test_retry_after_as_a_date() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True)
    failure = classify(status_error(503, headers={"retry-after": soon}))
    assert failure is not None
    assert failure.retry_after is not None
    assert 0 < failure.retry_after <= 60


@pytest.mark.parametrize(
    "secret", ["sk-proj-abcdef123456", "sk-or-v1-abcdef", "gsk_abcdef123", "xai-abcdef123456"]
)
def test_scrubs_text_that_looks_like_a_key(secret: str) -> None:
    assert scrub(f"Incorrect key: {secret}.") == "Incorrect key: ***."


def test_scrubs_the_users_keys_whatever_their_format(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "not shaped like a key")
    assert scrub("You sent not shaped like a key, sorry") == "You sent ***, sorry"
    error = status_error(401, "You sent not shaped like a key")
    failure = classify(error)
    assert failure is not None
    assert failure.why == "401: You sent ***"


@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "ACME_KEY",
        "ACME_SECRET_V2",
        "DB_PASSWORD",
        "PASSWORD_OLD",
        "acme_token",
    ],
)
def test_scrubs_values_of_variables_with_secret_names(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, " wJalr\tXUtnFEMI\n")
    assert scrub("You sent wJalr\tXUtnFEMI, sorry") == "You sent ***, sorry"
    assert scrub("Illegal header b'Bearer wJalr\\tXUtnFEMI'") == "Illegal header b'Bearer ***'"


def test_scrubs_a_secret_that_contains_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", "abcdefgh")
    monkeypatch.setenv("B_KEY", "abcdefgh-tail")
    assert scrub("abcdefgh-tail abcdefgh") == "*** ***"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at http://user:hunter2pass@host:80/v1?q=a@b.", "at http://***@host:80/v1?q=a@b."),
        ("http://user:hun@ter2@host", "http://***@host"),
        ("postgresql+psycopg://user:hunter2@host/db", "postgresql+psycopg://***@host/db"),
        ("https://token@host, https://host/a@b", "https://***@host, https://host/a@b"),
        ("write to me@example.org", "write to me@example.org"),
    ],
)
def test_the_password_in_an_address_is_removed(text: str, shown: str) -> None:
    assert scrub(text) == shown


def test_a_line_is_scrubbed_before_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "not shaped like a key")
    said = first_line("\n" + "x" * 290 + "not shaped like a key\nsecond line")
    assert said == "x" * 290 + "***"
    assert len(first_line("y" * 999)) == 300
    assert first_line("") == ""


def test_a_providers_long_message_is_shown_as_one_line() -> None:
    failure = classify(status_error(500, "first\nsecond"))
    assert failure is not None
    assert failure.why == "500: first"


def test_removes_control_characters_from_provider_messages() -> None:
    assert first_line(ValueError("bad \x1b]52;c\x07 key\u202e")) == "bad ]52;c key"


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [("1s", 1), ("1m30.5s", 90.5), ("120ms", 0.12), ("1m0s", 60), ("12", 12), ("0.5", 0.5)],
)
def test_reads_the_reset_time_of_a_rate_limit(reset: str, seconds: float) -> None:
    names = ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens")
    stated = stated_budget(dict(zip(names, ("7", reset), strict=True)), "tokens")
    assert stated == StatedBudget(7, inf, seconds)


def test_reads_anthropic_rate_limit_headers() -> None:
    at = (datetime.now(UTC) + timedelta(seconds=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
    stated = {"limit": "50", "remaining": "0", "reset": at}
    headers = {f"anthropic-ratelimit-requests-{name}": value for name, value in stated.items()}
    budget = stated_budget(headers, "requests")
    assert budget is not None
    assert (budget.left, budget.limit) == (0, 50)
    assert 25 < budget.seconds <= 30
    assert stated_budget(headers, "tokens") is None


@pytest.mark.parametrize("reset", ["6h", "2m59s", "soon", "", "-", "1 s", "2026-99-99"])
def test_ignores_a_reset_time_that_is_distant_or_unreadable(reset: str) -> None:
    names = ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests")
    assert stated_budget(dict(zip(names, ("0", reset), strict=True)), "requests") is None
