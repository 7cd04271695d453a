"""Scripted speakers for moderated debates, for the real model server."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.support.floor import CRITERIA, SIGNS
from tests.support.model_server import Reply, Request, Script

Change = Callable[[str, Request, Reply], Reply]
"""Takes what is asked for, the request and the usual reply; returns the reply to send."""

SUMMARY = "Both sides were heard; the cost of review stayed open."


def floor_script(change: Change = lambda _what, _request, reply: reply) -> Script:
    """Return a script that answers each call by its content, so that a resume gets the same."""

    def script(request: Request) -> Reply:
        what = part_of(request)
        return change(what, request, Reply(_said(what, request)))

    return script


def part_of(request: Request) -> str:
    """Return what the request asks for."""
    return next(part for sign, part in SIGNS.items() if sign in request.text)


def _said(what: str, request: Request) -> str:
    data = decided(what, request)
    text = SUMMARY if what == "final" else f"This is the {what} of {_speaker(request)}."
    if data is None:
        return text
    block = {"nonce": nonce_of(request), **data}
    return f"{text}\n\n```json\n{json.dumps(block)}\n```"


def _speaker(request: Request) -> str:
    found = re.search(r"You are ([^,\n]+), and you argue", request.text)
    return found[1] if found else re.findall(r"You are the (\w+)", request.instructions)[0]


def decided(what: str, request: Request) -> dict[str, Any] | None:
    """Return the decision of a speaker without objections; None if no decision is asked for."""
    if what == "stage":
        shown = re.findall(r"### (S\d+): ", request.user)
        return {"scores": [{"statement": n} | dict.fromkeys(CRITERIA, 7) for n in shown]}
    if what == "claims":
        return {"claims": []}
    if what == "positions":
        return {"positions": ["It should be done.", "It should not be done."]}
    if what == "check":
        return {"verdict": "supported", "source": "own knowledge", "why": "It is known."}
    if "The statement to review" in request.user:
        return {"breach": "none", "ruling": ""}
    return None


def nonce_of(request: Request) -> str:
    """Return the nonce that the control block for this call must have."""
    return str(re.findall(r'"nonce": "([0-9a-f]+)"', request.text)[-1])


def with_block(reply: Reply, request: Request, **data: Any) -> Reply:
    """Return the reply with a different control block."""
    block = json.dumps({"nonce": nonce_of(request), **data})
    return replace(reply, text=f"Decided.\n\n```json\n{block}\n```")
