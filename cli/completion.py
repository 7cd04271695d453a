"""Offers shell completions without loading model packages; offers nothing after an error."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contend.debates.record import StoredDebate

_MOST = 50
_OLLAMA_PORT = 11_434
_SECONDS_FOR_OLLAMA = 0.5

Choice = tuple[str, str]
"""The text to insert, and its explanation."""


def complete_debate(incomplete: str) -> list[Choice]:
    wanted = incomplete.lower()
    return [each for each in _debates() if each[0].startswith(wanted)]


def complete_model(incomplete: str) -> list[Choice]:
    found: dict[str, str] = {}
    for spec, about in (*_usable(), *_used()):
        found.setdefault(spec, about)
    return [each for each in found.items() if each[0].startswith(incomplete)]


def complete_protocol(incomplete: str) -> list[str]:
    from contend.cli.commands.options import PROTOCOLS  # it imports this module

    return [each for each in PROTOCOLS if each.startswith(incomplete)]


def complete_preset(incomplete: str) -> list[str]:
    from contend.debates.presets import preset_names  # slow to import

    return [each for each in preset_names() if each.startswith(incomplete)]


def _debates() -> list[Choice]:
    from contend.cli.view.format import one_line  # slow to import

    return [(each.id[:8], one_line(each.shown_title, 60)) for each in _newest()]


def _newest() -> "list[StoredDebate]":
    from contend.cli import database  # slow to import
    from contend.debates.listing import Filter
    from contend.graph.errors import BadInput

    try:
        if database.is_empty():
            return []
        with database.records() as records:
            return list(records.search(Filter(), _MOST).debates)
    except (BadInput, OSError):
        return []


def _used() -> Iterator[Choice]:
    for debate in _newest():
        for seat in debate.state["seats"]:
            yield str(seat["model"]), "used before"


def _usable() -> Iterator[Choice]:
    from contend.models.providers import weights  # slow to import
    from contend.models.seats import hosted_models

    for name in _ollama_models():
        yield f"ollama:{name}", "Ollama"
    for model in hosted_models():
        yield model, "its key is set"
    for name in weights.KNOWN:
        yield f"embedded:{name}", "built in"


def _ollama_models() -> list[str]:
    import http.client  # not needed for help
    import json
    from urllib.parse import urlsplit

    given = os.environ.get("OLLAMA_HOST") or "127.0.0.1"
    try:
        host = urlsplit(given if "//" in given else f"http://{given}")
        where = host.hostname or "127.0.0.1", host.port or _OLLAMA_PORT
        connection = http.client.HTTPConnection(*where, timeout=_SECONDS_FOR_OLLAMA)
        try:
            connection.request("GET", "/api/tags")
            listed = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return [str(each["name"]) for each in listed["models"]]
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return []
