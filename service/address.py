"""Publishes the address of a running service, so that other commands can find the web page."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from contend.graph.settings import data_home
from contend.models.files import write_private_file

DEBATES_PREFIX = "/api/v1/debates"
_SECONDS_TO_ANSWER, _SECONDS_FOR_STATE = 2.0, 1.0
_DOWN = "providers_down"
_MOST_BYTES = 100_000_000
# The file is damaged, the service was killed, or another program listens at the address.
_NOT_RUNNING = (
    *(OSError, http.client.HTTPException, ArithmeticError),
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
)
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - replaced, not used


def _file() -> Path:
    return data_home() / "service.json"


@contextmanager
def published_address(host: str, port: int) -> Iterator[None]:
    content = json.dumps({"host": _ANY_ADDRESS.get(host, host), "port": port}).encode()
    with suppress(OSError):  # the service works without the file
        write_private_file(_file(), content)
    try:
        yield
    finally:
        with suppress(OSError):
            if _file().read_bytes() == content:  # keep the file of a service started later
                _file().unlink()


@dataclass(frozen=True)
class ServiceState:
    """The state that a running service reports."""

    address: str
    problem: str | None  # why it cannot run a debate
    providers_down: list[tuple[str, datetime]]  # the provider, and when it is tried again


def running_service() -> ServiceState | None:
    """Return the state of the service that uses our data folder, or None if none responds."""
    try:
        host, port = _published()
        _, body = _get(host, port, "/readyz", _SECONDS_FOR_STATE)
        if "status" not in body and "error" not in body:
            return None
        down = [
            (str(each["provider"]), datetime.fromisoformat(each["next_probe"]))
            for each in body.get(_DOWN, [])
        ]
        problem = None if body.get("status") == "ready" else str(body["detail"])
    except _NOT_RUNNING:
        return None
    return ServiceState(_url(host, port), problem, down)


def page_of(debate_id: str) -> str | None:
    """Return the URL of a debate's web page, or None if no running service has the debate."""
    try:
        host, port = _published()
        if not _has_debate(host, port, debate_id):
            return None
    except _NOT_RUNNING:
        return None
    return f"{_url(host, port)}/#/debates/{debate_id}"


def _published() -> tuple[str, int]:
    found = json.loads(_file().read_bytes())
    return str(found["host"]), int(found["port"])


def _url(host: str, port: int) -> str:
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}:{port}"


def _has_debate(host: str, port: int, debate_id: str) -> bool:
    status, body = _get(host, port, f"{DEBATES_PREFIX}/{debate_id}", _SECONDS_TO_ANSWER)
    if status == 401:  # unknown without the token; the web page asks for the token
        return body["error"] in ("no_token_set", "unauthorized")
    return bool(status == 200 and body["id"] == debate_id)


def _get(host: str, port: int, path: str, seconds: float) -> tuple[int, Any]:
    with closing(http.client.HTTPConnection(host, port, timeout=seconds)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read(_MOST_BYTES))
