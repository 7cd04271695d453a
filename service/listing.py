import asyncio
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from contend.debates.adoption import adopt_new_threads
from contend.debates.listing import Filter
from contend.graph.record import Status
from contend.service.address import DEBATES_PREFIX
from contend.service.auth import require_token_from_network
from contend.service.errors import Refused
from contend.service.lookup import TheRuns, summarize_now
from contend.service.openapi import errors
from contend.service.summaries import DebateSummary

router = APIRouter(
    prefix=DEBATES_PREFIX, tags=["debates"], dependencies=[Depends(require_token_from_network)]
)


class DebateList(BaseModel):
    """One page of the list of debates."""

    debates: list[DebateSummary]
    damaged: list[str] = Field(description="Ids of debates on this page that cannot be read.")
    next: str | None = Field(description="Pass it as `cursor` to get the next page.")


@router.get("", summary="List debates, newest first", responses=errors(401, 422, 503))
async def list_debates(
    runs: TheRuns,
    search: Annotated[
        str,
        Query(
            max_length=200,
            description="Words in the question or the answer.",
            examples=["monolith"],
        ),
    ] = "",
    status: Annotated[Status | None, Query(examples=["done"])] = None,
    protocol: Annotated[
        str | None, Query(max_length=32, pattern="^[a-z_]*$", examples=["forum"])
    ] = None,
    limit: Annotated[int, Query(ge=1, le=100, examples=[10])] = 30,
    cursor: Annotated[
        str | None,
        Query(
            max_length=80,
            description="`next` of the page before.",
            examples=["2027-03-01T09:30:37+00:00~5f0c1f0e-0000-4000-8000-000000000001"],
        ),
    ] = None,
) -> DebateList:
    if cursor is None:  # on the first page, where new debates are
        await adopt_new_threads(runs.records)
    words = search.replace("\x00", "").strip()
    wanted = Filter(words, protocol, status, _parse_cursor(cursor), runs.ids_here())
    page = await asyncio.to_thread(runs.records.search, wanted, limit)
    return DebateList(
        debates=[await summarize_now(runs, runs.with_live_status(each)) for each in page.debates],
        damaged=list(page.damaged),
        next="~".join(page.following) if page.following else None,
    )


def _parse_cursor(cursor: str | None) -> tuple[str, str] | None:
    if cursor is None:
        return None
    time, tilde, debate_id = cursor.partition("~")
    if not tilde or not cursor.isprintable():
        raise Refused(422, "invalid", "The cursor is not one that this service gave.")
    return time, debate_id
