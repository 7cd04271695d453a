import asyncio
from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path, Request

from contend.debates.record import StoredDebate
from contend.graph.errors import BadInput
from contend.service.errors import Refused
from contend.service.openapi import ID, errors
from contend.service.runs import Runs
from contend.service.summaries import DebateSummary, summarize


def get_runs(request: Request) -> Runs:
    runs: Runs = request.app.state.runs
    return runs


TheRuns = Annotated[Runs, Depends(get_runs)]
DebateId = Annotated[UUID, Path(description="The debate's id.", examples=[ID])]
FIND_ERRORS = errors(401, 404, 422, 503)
CHANGE_ERRORS = errors(401, 403, 404, 408, 409, 413, 415, 422, 429, 503)


async def find_debate(runs: Runs, debate_id: UUID, *, with_turns: bool = False) -> StoredDebate:
    try:
        found = await asyncio.to_thread(runs.records.find, str(debate_id), with_turns=with_turns)
    except BadInput as error:
        raise Refused(404, "not_found", f"No debate has the id {debate_id}.") from error
    return runs.with_live_status(found)


async def summarize_now(runs: Runs, debate: StoredDebate) -> DebateSummary:
    waiting = await runs.is_waiting(debate)
    return summarize(debate, here=runs.is_here(debate.id), waiting_for_you=waiting)


def not_possible(debate: StoredDebate, why: str) -> Refused:
    about: dict[str, Any] = {"debate_id": debate.id, "status": debate.status}
    return Refused(409, "not_possible", why, **about)
