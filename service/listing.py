"""The list of debates, in pages."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from contend.debates.record import StoredDebate
from contend.graph.record import Status
from contend.service.auth import require_token_from_network
from contend.service.errors import Refused
from contend.service.lookup import DEBATES_PREFIX, TheRuns, summarize_now
from contend.service.openapi import errors
from contend.service.summaries import DebateSummary

router = APIRouter(
    prefix=DEBATES_PREFIX, tags=["debates"], dependencies=[Depends(require_token_from_network)]
)


class DebateList(BaseModel):
    """One page of the list of debates."""

    debates: list[DebateSummary]
    next: str | None = Field(description="Pass it as `cursor` to get the next page.")


@router.get("", summary="List debates, newest first", responses=errors(401, 422, 503))
async def list_debates(
    runs: TheRuns,
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
        live = [runs.with_live_status(debate) for debate in page]
        found += [debate for debate in live if status in (None, debate.status)]
        if len(found) > limit or len(page) <= limit:
            break
        before = page[-1].created_at, page[-1].id
    more = len(found) > limit
    kept = found[:limit]
    following = f"{kept[-1].created_at}~{kept[-1].id}" if more else None
    return DebateList(
        debates=[await summarize_now(runs, debate) for debate in kept], next=following
    )


def _parse_cursor(cursor: str | None) -> tuple[str, str] | None:
    if cursor is None:
        return None
    time, tilde, debate_id = cursor.partition("~")
    if not tilde or not cursor.isprintable():
        raise Refused(422, "invalid", "The cursor is not one that this service gave.")
    return time, debate_id
