"""Describes the responses in the OpenAPI document, with examples and headers."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from contend.service.errors import ErrorBody
from contend.service.examples import example, examples_of_operations

Responses = dict[int | str, dict[str, Any]]

_JSON = "application/json"
ID = str(example("result")["debate_id"])

_HEADERS: dict[str, tuple[str, str]] = {
    "WWW-Authenticate": ("string", "`Bearer`."),
    "Retry-After": ("integer", "Seconds to wait before trying again."),
    "Location": ("string", "Where the result will be."),
    "Preference-Applied": ("string", "`respond-async`, where that was asked for."),
}
_WHICH = {401: ["WWW-Authenticate"], 429: ["Retry-After"], 503: ["Retry-After"]}
_WHEN = {
    401: "No valid service token.",
    403: "Another web site sent the request.",
    404: "There is no such debate, or no such part of it.",
    408: "The request was sent too slowly.",
    409: "The debate's state does not allow it; `status` and `detail` say why.",
    411: "The form has no Content-Length.",
    413: "The request is too large; `detail` states the limit.",
    415: "The request is not JSON.",
    422: "The request is invalid; `problems` says where.",
    429: "Too many debates are running or streamed, in all or for this client.",
    502: "The models failed, or nothing they said could be read.",
    503: "Temporarily unavailable; `error` says why.",
}
_RUNNING = {"debate_id": ID, "status": "running"}
_EXAMPLES = {
    401: ErrorBody(error="unauthorized", detail="A valid service token is required: Bearer TOKEN."),
    403: ErrorBody(error="other_site", detail="Requests from other web sites are refused."),
    404: ErrorBody(error="not_found", detail=f"No forecast has the id {ID}."),
    408: ErrorBody(error="too_slow", detail="The request was not complete after 30 seconds. ..."),
    409: ErrorBody(error="not_possible", detail="The debate is already running.", **_RUNNING),
    411: ErrorBody(error="no_length", detail="Send the length of the form."),
    413: ErrorBody(error="too_large", detail="The request is larger than 1,000,000 bytes."),
    415: ErrorBody(error="not_json", detail="Send the request as application/json."),
    422: ErrorBody(
        error="invalid",
        detail="The request is invalid; see problems.",
        problems=["prediction_context.outcomes: Field required"],
    ),
    429: ErrorBody(error="busy", detail="32 debates may run at once; try again later."),
    502: ErrorBody(error="failed", detail="The debate failed: ...", debate_id=ID, status="failed"),
    503: ErrorBody(error="database_away", detail="The database of this service is not available."),
}


def errors(*statuses: int) -> Responses:
    return {
        status: _response(
            ErrorBody, _WHEN[status], _EXAMPLES[status].model_dump(), _WHICH.get(status, [])
        )
        for status in statuses
    }


def ok(model: type[BaseModel], name: str, words: str) -> Responses:
    return {200: _response(model, words, example(name), [])}


def accepted(shown: BaseModel) -> Responses:
    words, headers = (
        "The debate is running; fetch its result later.",
        ["Location", "Preference-Applied"],
    )
    return {202: _response(type(shown), words, shown.model_dump(), headers)}


def _response(model: type[BaseModel], words: str, shown: Any, headers: list[str]) -> dict[str, Any]:
    described = {
        name: {"description": _HEADERS[name][1], "schema": {"type": _HEADERS[name][0]}}
        for name in headers
    }
    content = {_JSON: {"example": shown}}
    return {"model": model, "description": words, "content": content, "headers": described}


def add_examples(document: dict[str, Any]) -> None:
    """Add the examples of `api.json` to the operations' bodies and successful responses."""
    for method, path, operation in _operations(document):
        shown = examples_of_operations().get(f"{method} {path}", {})
        for kind, body in operation.get("requestBody", {}).get("content", {}).items():
            if "request" in shown:
                is_form = kind == "multipart/form-data"
                given = shown["request"]
                body["example"] = {"debate": json.dumps(given)} if is_form else given
        for status, response in operation["responses"].items():
            if status.startswith("2") and "answer" in shown:
                _add_answer(response.get("content", {}), shown["answer"])


def _add_answer(content: dict[str, dict[str, Any]], answer: Any) -> None:
    kinds = ("text/markdown", "text/event-stream") if isinstance(answer, str) else (_JSON,)
    for kind in kinds:
        if kind in content:
            content[kind]["example"] = answer


def share_definitions(document: dict[str, Any]) -> None:
    """Move the request bodies' schema definitions to `components`, and update the references."""
    schemas = document["components"]["schemas"]
    for _, _, operation in _operations(document):
        for body in operation.get("requestBody", {}).get("content", {}).values():
            found = body.get("schema", {}).pop("$defs", {})
            schemas |= {name: each for name, each in found.items() if name not in schemas}
    text = json.dumps(document).replace('"#/$defs/', '"#/components/schemas/')
    document.clear()
    document.update(json.loads(text))


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation
