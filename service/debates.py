"""The endpoints under /api/v1/debates, for debates of every protocol."""

import asyncio
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from contend.debates import forecasts
from contend.debates.exports.formats import EXPORT_FORMATS
from contend.debates.live import Viewing
from contend.debates.prune import delete_debates
from contend.debates.record import StoredDebate
from contend.graph.errors import BadInput
from contend.graph.record import Status
from contend.graph.state import Remark
from contend.service.auth import require_token_from_network
from contend.service.errors import Refused
from contend.service.openapi import ID, errors
from contend.service.runs import Runs
from contend.service.sse import EventStream
from contend.service.starts import Start, parse_body, read_json, start_debate
from contend.service.summaries import DebateDetails, DebateSummary, describe, summarize

PREFIX = "/api/v1/debates"
_MOST_EVENTS = 2_147_483_647
_MEDIA = {"json": "application/json", "html": "text/html; charset=utf-8"}

router = APIRouter(
    prefix=PREFIX, tags=["debates"], dependencies=[Depends(require_token_from_network)]
)


class Say(BaseModel):
    model_config = ConfigDict(extra="forbid")

    say: StrictStr = Field("", max_length=20_000, description="Words that the next speakers see.")


class RatingGiven(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rating: StrictInt = Field(ge=1, le=10)


class OutcomeGiven(BaseModel):
    model_config = ConfigDict(extra="forbid")

    outcome: StrictStr = Field(max_length=200)


class DebateList(BaseModel):
    """One page of the list of debates."""

    debates: list[DebateSummary]
    next: str | None = Field(description="Pass it as `cursor` to get the next page.")


def get_runs(request: Request) -> Runs:
    runs: Runs = request.app.state.runs
    return runs


_Runs = Annotated[Runs, Depends(get_runs)]
_Id = Annotated[UUID, Path(description="The debate's id.", examples=[ID])]
_FIND = errors(401, 404, 422, 503)
_CHANGE = errors(401, 403, 404, 409, 413, 415, 422, 429, 503)


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """Describe a body that we read ourselves, because it may be too large or no JSON."""
    content = {"application/json": {"schema": model.model_json_schema()}}
    return {"requestBody": {"required": model is not Say, "content": content}}


async def _read_say(request: Request) -> Say:
    body = await read_json(request)
    return parse_body(Say, body) if body else Say()


async def _read_rating(request: Request) -> RatingGiven:
    return parse_body(RatingGiven, await read_json(request))


async def _read_outcome(request: Request) -> OutcomeGiven:
    return parse_body(OutcomeGiven, await read_json(request))


_Said = Annotated[Say, Depends(_read_say)]
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
                        "documents": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                        },
                        "images": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                        },
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
    responses=errors(401, 403, 409, 413, 415, 422, 429, 503),
)
async def post_new_debate(request: Request, runs: _Runs) -> JSONResponse:
    """Start a debate; it goes on after this response, whether anybody watches or not."""
    debate = await start_debate(runs, runs.options, request)
    shown = summarize(debate, here=True, waiting_for_you=False)
    where = {"Location": f"{PREFIX}/{debate.id}"}
    return JSONResponse(shown.model_dump(mode="json"), 201, where)


@router.get("", summary="List debates, newest first", responses=errors(401, 422, 503))
async def list_debates(
    runs: _Runs,
    search: Annotated[str, Query(max_length=200, description="Words in question or answer.")] = "",
    status: Annotated[Status | None, Query()] = None,
    protocol: Annotated[str | None, Query(max_length=32)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 30,
    cursor: Annotated[str | None, Query(max_length=80)] = None,
) -> DebateList:
    found: list[StoredDebate] = []
    before = _parse_cursor(cursor)
    words = search.replace("\x00", "").strip()
    while True:
        page = await asyncio.to_thread(
            runs.records.search, words=words, protocol=protocol, before=before, limit=limit + 1
        )
        shown = [runs.with_live_status(debate) for debate in page]
        found += [debate for debate in shown if status in (None, debate.status)]
        if len(found) > limit or len(page) <= limit:
            break
        before = page[-1].created_at, page[-1].id
    more = len(found) > limit
    kept = found[:limit]
    following = f"{kept[-1].created_at}~{kept[-1].id}" if more else None
    return DebateList(debates=[await _summary(runs, debate) for debate in kept], next=following)


def _parse_cursor(cursor: str | None) -> tuple[str, str] | None:
    if cursor is None:
        return None
    time, tilde, debate_id = cursor.partition("~")
    if not tilde or not cursor.isprintable():
        raise Refused(422, "invalid", "The cursor is not one that this service gave.")
    return time, debate_id


@router.get("/{debate_id}", summary="A debate with its record", responses=_FIND)
async def get_by_id(debate_id: _Id, runs: _Runs) -> DebateDetails:
    debate = await _find(runs, debate_id, with_turns=True)
    waiting = await _is_waiting(runs, debate)
    return await asyncio.to_thread(
        describe, debate, here=runs.is_here(debate.id), waiting_for_you=waiting
    )


@router.get(
    "/{debate_id}/events",
    summary="The events of a debate, as they happen",
    response_model=None,
    responses={
        **_FIND,
        200: {"content": {"text/event-stream": {}}, "description": "Events."},
        204: {"description": "The debate is done, and its last event was seen."},
    },
)
async def get_events(
    debate_id: _Id,
    runs: _Runs,
    after: Annotated[int, Query(ge=0, le=_MOST_EVENTS, description="Skip events up to this.")] = 0,
    html: Annotated[bool, Query(description="Add the text as HTML.")] = False,
    chunks: Annotated[
        Literal["all", "open"], Query(description="`open`: no chunks of turns that are complete.")
    ] = "all",
    follow: Annotated[bool, Query(description="Wait for events to come.")] = True,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Response:
    """Replay the events after `after` or `Last-Event-ID`, then send new ones as they happen."""
    if last_event_id:
        after = max(after, _parse_event_id(last_event_id))
    debate = await _find(runs, debate_id)
    newest = await asyncio.to_thread(runs.records.journal.newest, debate.id)
    if newest and newest.name == "complete" and newest.seq <= after:
        return Response(status_code=204)  # which tells a browser not to try again
    viewing = Viewing(after, html=html, open_chunks_only=chunks == "open", follow=follow)
    return EventStream(runs.live.follow(debate.id, viewing))


def _parse_event_id(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _MOST_EVENTS):
        raise Refused(422, "invalid", "Last-Event-ID is not the number of an event.")
    return int(text)


@router.post("/{debate_id}/pause", status_code=202, summary="Pause", responses=_CHANGE)
async def pause_by_id(debate_id: _Id, runs: _Runs) -> DebateSummary:
    """Stop the debate after the current turn."""
    debate = await _find(runs, debate_id)
    if not runs.is_here(debate.id):
        raise _not_possible(debate, "It does not run in this service.")
    runs.pause(debate.id)
    return await _summary(runs, debate)


@router.post(
    "/{debate_id}/resume",
    status_code=202,
    summary="Resume",
    responses=_CHANGE,
    openapi_extra=body_of(Say),
)
async def resume_by_id(debate_id: _Id, runs: _Runs, said: _Said) -> DebateSummary:
    """Continue a stopped debate; `say` adds a comment, also while it runs."""
    return await _go_on(runs, debate_id, Remark(say=said.say))


@router.post(
    "/{debate_id}/finish",
    status_code=202,
    summary="Finish now",
    responses=_CHANGE,
    openapi_extra=body_of(Say),
)
async def finish_by_id(debate_id: _Id, runs: _Runs, said: _Said) -> DebateSummary:
    """End the rounds after the current one, and write the answer."""
    return await _go_on(runs, debate_id, Remark(say=said.say, finish=True))


async def _go_on(runs: Runs, debate_id: UUID, remark: Remark) -> DebateSummary:
    debate = await _find(runs, debate_id)
    if debate.status == "done":
        raise _not_possible(debate, "The debate is done.")
    if runs.is_here(debate.id):
        if not (remark.say.strip() or remark.finish):
            raise _not_possible(debate, "The debate is already running.")
        runs.go_on_in_background(debate.id, remark)
        return await _summary(runs, debate)
    if debate.status == "running":
        raise _not_possible(debate, "Another process runs the debate.")
    with runs.one_more():
        run = runs.begin(debate, remark)
    await run.wait_for_start()
    return await _summary(runs, run.debate)


@router.post(
    "/{debate_id}/rate",
    summary="Rate the answer",
    responses=_CHANGE,
    openapi_extra=body_of(RatingGiven),
)
async def rate_by_id(
    debate_id: _Id, runs: _Runs, given: Annotated[RatingGiven, Depends(_read_rating)]
) -> DebateSummary:
    debate = await _find(runs, debate_id)
    if debate.status != "done":
        raise _not_possible(debate, "The debate has no answer to rate yet.")
    await asyncio.to_thread(runs.records.rate, debate.id, given.rating)
    return await _summary(runs, await _find(runs, debate_id))


@router.post(
    "/{debate_id}/resolve",
    summary="Record what came true",
    responses=_CHANGE,
    openapi_extra=body_of(OutcomeGiven),
)
async def resolve_by_id(
    debate_id: _Id, runs: _Runs, given: Annotated[OutcomeGiven, Depends(_read_outcome)]
) -> DebateSummary:
    debate = await _find(runs, debate_id)
    try:
        await asyncio.to_thread(
            forecasts.resolve, runs.records, debate, given.outcome, replace=True
        )
    except BadInput as unusable:
        raise _not_possible(debate, str(unusable)) from unusable
    return await _summary(runs, await _find(runs, debate_id))


@router.delete("/{debate_id}", status_code=204, summary="Delete a debate", responses=_CHANGE)
async def delete_by_id(debate_id: _Id, runs: _Runs) -> Response:
    """Delete a debate with everything that belongs to it."""
    debate = await _find(runs, debate_id)
    pruned = await asyncio.to_thread(delete_debates, runs.records, [debate.id])
    if not pruned.debates:
        raise _not_possible(debate, "The debate is running; pause it first.")
    return Response(status_code=204)


@router.get("/{debate_id}/export", summary="Download a debate", responses=_FIND)
async def export_by_id(
    debate_id: _Id, runs: _Runs, name: Annotated[str, Query(alias="format", max_length=20)] = "md"
) -> Response:
    chosen = EXPORT_FORMATS.get(name)
    if chosen is None or chosen.render is None:
        known = ", ".join(key for key, each in EXPORT_FORMATS.items() if each.render)
        raise Refused(422, "invalid", f"There is no such format; known: {known}.")
    debate = await _find(runs, debate_id, with_turns=True)
    text = await asyncio.to_thread(chosen.render, debate)
    headers = {"Content-Disposition": f'attachment; filename="debate-{debate.id[:8]}.{name}"'}
    return Response(text, 200, headers, _MEDIA.get(name, "text/markdown; charset=utf-8"))


async def _find(runs: Runs, debate_id: UUID, *, with_turns: bool = False) -> StoredDebate:
    try:
        found = await asyncio.to_thread(runs.records.find, str(debate_id), with_turns=with_turns)
    except BadInput as error:
        raise Refused(404, "not_found", f"No debate has the id {debate_id}.") from error
    return runs.with_live_status(found)


async def _summary(runs: Runs, debate: StoredDebate) -> DebateSummary:
    waiting = await _is_waiting(runs, debate)
    return summarize(debate, here=runs.is_here(debate.id), waiting_for_you=waiting)


async def _is_waiting(runs: Runs, debate: StoredDebate) -> bool:
    """Return whether the debate paused to ask a person."""
    if debate.status != "paused":
        return False
    last = await asyncio.to_thread(runs.records.journal.newest, debate.id)
    return last is not None and bool(last.as_event()["metadata"].get("ask"))


def _not_possible(debate: StoredDebate, why: str) -> Refused:
    about: dict[str, Any] = {"debate_id": debate.id, "status": debate.status}
    return Refused(409, "not_possible", why, **about)
