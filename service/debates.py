"""Provides the endpoints under /api/v1/debates, for debates of every protocol."""

import asyncio
from typing import Annotated, Any, Literal

from fastapi import APIRouter, BackgroundTasks, Depends, Header, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from contend.debates import forecasts
from contend.debates.exports.formats import EXPORT_FORMATS
from contend.debates.feedback import send_rating
from contend.debates.history import describe_step, node_steps
from contend.debates.live import Viewing
from contend.debates.prune import delete_debates
from contend.graph.errors import BadInput
from contend.service.address import DEBATES_PREFIX
from contend.service.auth import require_token_from_network
from contend.service.bodies import describe_body, parse_body, read_json
from contend.service.errors import Refused
from contend.service.lookup import (
    CHANGE_ERRORS,
    FIND_ERRORS,
    DebateId,
    TheRuns,
    find_debate,
    not_possible,
    summarize_now,
)
from contend.service.openapi import errors
from contend.service.sse import EventStream
from contend.service.starts import start_debate
from contend.service.summaries import DebateDetails, DebateSummary, describe, summarize
from contend.service.uploads import Start

_MOST_EVENTS = 2_147_483_647
_MEDIA = {"json": "application/json", "html": "text/html; charset=utf-8"}
_DOCUMENTS: dict[str, Any] = {
    "text/markdown": {"schema": {"type": "string"}},
    "text/html": {},
    "application/json": {},
}

router = APIRouter(
    prefix=DEBATES_PREFIX, tags=["debates"], dependencies=[Depends(require_token_from_network)]
)


class RatingGiven(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rating: StrictInt = Field(ge=1, le=10)


class HistoryEntry(BaseModel):
    """A step of a debate: the nodes that ran, and the turns they added."""

    checkpoint: str = Field(description="The id of the LangGraph checkpoint.")
    round: int | None
    nodes: list[str]
    next: list[str]
    turns: list[str]
    at: str


class OutcomeGiven(BaseModel):
    model_config = ConfigDict(extra="forbid")

    outcome: StrictStr = Field(max_length=200)


async def _read_rating(request: Request) -> RatingGiven:
    return parse_body(RatingGiven, await read_json(request))


async def _read_outcome(request: Request) -> OutcomeGiven:
    return parse_body(OutcomeGiven, await read_json(request))


_Rating = Annotated[RatingGiven, Depends(_read_rating)]
_Outcome = Annotated[OutcomeGiven, Depends(_read_outcome)]
_FILE = {"type": "string", "format": "binary"}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": Start.model_json_schema()},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["debate"],
                    "properties": {
                        "debate": {"type": "string", "description": "The JSON of the debate."},
                        "documents": {"type": "array", "items": _FILE},
                        "images": {"type": "array", "items": _FILE},
                    },
                }
            },
        },
    }
}


@router.post(
    "",
    status_code=201,
    response_model=DebateSummary,
    summary="Start a debate",
    openapi_extra=_BODY,
    responses=errors(401, 403, 408, 409, 411, 413, 415, 422, 429, 503),
)
async def post_new_debate(request: Request, runs: TheRuns) -> JSONResponse:
    """Start a debate. It continues after this response, even if nobody watches."""
    debate = await start_debate(runs, request)
    shown = summarize(debate, here=True, waiting_for_you=False)
    where = {"Location": f"{DEBATES_PREFIX}/{debate.id}"}
    return JSONResponse(shown.model_dump(mode="json"), 201, where)


@router.get("/{debate_id}", summary="A debate with its record", responses=FIND_ERRORS)
async def get_by_id(debate_id: DebateId, runs: TheRuns) -> DebateDetails:
    debate = await find_debate(runs, debate_id, with_turns=True)
    waiting = await runs.is_waiting(debate)
    return await asyncio.to_thread(
        describe, debate, here=runs.is_here(debate.id), waiting_for_you=waiting
    )


@router.get(
    "/{debate_id}/history",
    summary="The steps of a debate",
    responses={**FIND_ERRORS, **errors(409)},
)
async def get_history(debate_id: DebateId, runs: TheRuns) -> list[HistoryEntry]:
    """List the checkpointed steps, oldest first, with their nodes and rounds."""
    debate = await find_debate(runs, debate_id)
    try:
        steps = await node_steps(runs.records, debate)
    except BadInput as elsewhere:
        raise not_possible(debate, str(elsewhere)) from elsewhere
    return [HistoryEntry.model_validate(describe_step(step)) for step in steps]


@router.get(
    "/{debate_id}/events",
    summary="Stream the events of a debate",
    response_model=None,
    response_class=Response,
    responses={
        **FIND_ERRORS,
        **errors(429),
        200: {
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
            "description": "Events.",
        },
        204: {"description": "The debate is done, and its last event was seen."},
    },
)
async def get_events(
    debate_id: DebateId,
    runs: TheRuns,
    after: Annotated[
        int,
        Query(ge=0, le=_MOST_EVENTS, description="Skip events up to this number.", examples=[12]),
    ] = 0,
    html: Annotated[
        bool, Query(description="Also send the text as HTML.", examples=[True])
    ] = False,
    chunks: Annotated[
        Literal["all", "open"],
        Query(description="`open` leaves out the chunks of finished turns.", examples=["open"]),
    ] = "all",
    follow: Annotated[bool, Query(description="Wait for new events.", examples=[False])] = True,
    last_event_id: Annotated[
        str | None,
        Header(max_length=20, description="The last event that was received.", examples=["12"]),
    ] = None,
) -> Response:
    """Send the events after `after` or `Last-Event-ID`, then new events as they happen."""
    if last_event_id:
        after = max(after, _parse_event_id(last_event_id))
    debate = await find_debate(runs, debate_id)
    newest = await asyncio.to_thread(runs.records.journal.newest, debate.id)
    if newest and newest.name == "complete" and newest.seq <= after:
        return Response(status_code=204)  # 204 tells a browser not to reconnect
    viewing = Viewing(after, html=html, open_chunks_only=chunks == "open", follow=follow)
    return EventStream(runs.live.follow(debate.id, viewing))


def _parse_event_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST_EVENTS):
        raise Refused(422, "invalid", "Last-Event-ID is not the number of an event.")
    return int(text)


@router.post(
    "/{debate_id}/rate",
    summary="Rate the answer",
    responses=CHANGE_ERRORS,
    openapi_extra=describe_body(RatingGiven),
)
async def rate_by_id(
    debate_id: DebateId, runs: TheRuns, given: _Rating, after: BackgroundTasks
) -> DebateSummary:
    debate = await find_debate(runs, debate_id)
    if debate.status != "done":
        raise not_possible(debate, "The debate has no answer to rate yet.")
    await asyncio.to_thread(runs.records.rate, debate.id, given.rating)
    after.add_task(send_rating, debate.id, given.rating)
    return await summarize_now(runs, await find_debate(runs, debate_id))


@router.post(
    "/{debate_id}/resolve",
    summary="Record which outcome of a forecast came true",
    responses=CHANGE_ERRORS,
    openapi_extra=describe_body(OutcomeGiven),
)
async def resolve_by_id(debate_id: DebateId, runs: TheRuns, given: _Outcome) -> DebateSummary:
    debate = await find_debate(runs, debate_id)
    try:
        await asyncio.to_thread(
            forecasts.resolve, runs.records, debate, given.outcome, replace=True
        )
    except BadInput as unusable:
        raise not_possible(debate, str(unusable)) from unusable
    return await summarize_now(runs, await find_debate(runs, debate_id))


@router.delete("/{debate_id}", status_code=204, summary="Delete a debate", responses=CHANGE_ERRORS)
async def delete_by_id(debate_id: DebateId, runs: TheRuns) -> Response:
    """Delete a debate: its turns, checkpoints, recorded calls, rating and stored files."""
    debate = await find_debate(runs, debate_id)
    await runs.find_active_run(debate.id)
    pruned = await asyncio.to_thread(delete_debates, runs.records, [debate.id])
    if not pruned.debates:
        why = " ".join(pruned.problems) or "The debate is running; pause it first."
        raise not_possible(debate, why)
    return Response(status_code=204)


@router.get(
    "/{debate_id}/export",
    summary="Download a debate",
    response_class=Response,
    responses={
        **FIND_ERRORS,
        **errors(409),
        200: {"content": _DOCUMENTS, "description": "The document, as a file."},
    },
)
async def export_by_id(
    debate_id: DebateId,
    runs: TheRuns,
    name: Annotated[
        str,
        Query(
            alias="format",
            max_length=20,
            description="Such as `md`, `html` or `json`.",
            examples=["md"],
        ),
    ] = "md",
) -> Response:
    chosen = EXPORT_FORMATS.get(name)
    if chosen is None or chosen.files:
        known = ", ".join(key for key, each in EXPORT_FORMATS.items() if not each.files)
        raise Refused(422, "invalid", f"There is no such format; known: {known}.")
    debate = await find_debate(runs, debate_id, with_turns=True)
    try:
        text = await asyncio.to_thread(chosen.document, runs.records, debate)
    except BadInput as unusable:
        raise not_possible(debate, str(unusable)) from unusable
    headers = {"Content-Disposition": f'attachment; filename="debate-{debate.id[:8]}.{name}"'}
    return Response(text, 200, headers, _MEDIA.get(name, "text/markdown; charset=utf-8"))
