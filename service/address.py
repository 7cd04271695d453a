"""Publishes the address of a running service, so that other commands can find the web page."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from contend.graph.settings import data_home
from contend.models.files import write_private_file

DEBATES_PREFIX = "/api/v1/debates"
_SECONDS_TO_ANSWER = 2.0
_MOST_BYTES = 100_000_000
# The file is damaged, the service was killed, or another program listens at the address.
_NOT_RUNNING = (
    *(OSError, http.client.HTTPException, ArithmeticError),
    *(ValueError, LookupError, TypeError, RecursionError),
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


def page_of(debate_id: str) -> str | None:
    """Return the URL of a debate's web page, or None if no service with our data is running."""
    try:
        found = json.loads(_file().read_bytes())
        host, port = str(found["host"]), int(found["port"])
        if not _has_debate(host, port, debate_id):
            return None
    except _NOT_RUNNING:
        return None
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}:{port}/#/debates/{debate_id}"


def _has_debate(host: str, port: int, debate_id: str) -> bool:
    with closing(http.client.HTTPConnection(host, port, timeout=_SECONDS_TO_ANSWER)) as connection:
        connection.request("GET", f"{DEBATES_PREFIX}/{debate_id}")
        answer = connection.getresponse()
        body = json.loads(answer.read(_MOST_BYTES))
    if answer.status == 401:  # unknown without the token; the web page asks for the token
        return body["error"] in ("no_token_set", "unauthorized")
    return answer.status == 200 and body["id"] == debate_id
