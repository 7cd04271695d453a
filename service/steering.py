import asyncio
from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field, StrictStr

from contend.debates.settings_sources import Given
from contend.debates.spending import with_budget
from contend.graph.state import Remark
from contend.service.address import DEBATES_PREFIX
from contend.service.auth import client_of, require_token_from_network
from contend.service.bodies import describe_body, parse_body, read_json
from contend.service.errors import refusing_bad_input
from contend.service.lookup import (
    CHANGE_ERRORS,
    DebateId,
    TheRuns,
    find_debate,
    not_possible,
    summarize_now,
)
from contend.service.run import Run
from contend.service.runs import Runs
from contend.service.summaries import DebateSummary

router = APIRouter(
    prefix=DEBATES_PREFIX, tags=["debates"], dependencies=[Depends(require_token_from_network)]
)


class Say(BaseModel):
    model_config = ConfigDict(extra="forbid")

    say: StrictStr = Field("", max_length=20_000, description="A comment for the next speakers.")


class Resumption(Say):
    """A comment, and optionally a larger budget if the debate has a budget."""

    budget: int | None = Field(None, description="Tokens that the whole debate may use.")
    max_cost: float | None = Field(None, description="US dollars that the whole debate may cost.")

    @property
    def changes(self) -> dict[str, Given]:
        given = self.model_dump(include={"budget", "max_cost"}, exclude_none=True)
        return {name: Given(value, "the request") for name, value in given.items()}


async def _read_say(request: Request) -> Say:
    body = await read_json(request)
    return parse_body(Say, body) if body else Say()


async def _read_resumption(request: Request) -> Resumption:
    body = await read_json(request)
    return parse_body(Resumption, body) if body else Resumption()


_Client = Annotated[str, Depends(client_of)]
_Said = Annotated[Say, Depends(_read_say)]
_Resumed = Annotated[Resumption, Depends(_read_resumption)]


@router.post("/{debate_id}/pause", status_code=202, summary="Pause", responses=CHANGE_ERRORS)
async def pause_by_id(debate_id: DebateId, runs: TheRuns) -> DebateSummary:
    """Pause the debate after the current turn."""
    debate = await find_debate(runs, debate_id)
    run = await runs.find_active_run(debate.id)
    if run is None:
        raise not_possible(debate, "It does not run in this service.")
    await asyncio.to_thread(runs.records.withdraw, debate.id)
    run.pause()
    return await summarize_now(runs, debate)


@router.post(
    "/{debate_id}/resume",
    status_code=202,
    summary="Resume",
    responses=CHANGE_ERRORS,
    openapi_extra=describe_body(Resumption, required=False),
)
async def resume_by_id(
    debate_id: DebateId, runs: TheRuns, client: _Client, said: _Resumed
) -> DebateSummary:
    """Continue a paused or failed debate, or comment on a running one with `say`."""
    return await _continue_debate(runs, client, debate_id, Remark(say=said.say), said.changes)


@router.post(
    "/{debate_id}/finish",
    status_code=202,
    summary="Finish now",
    responses=CHANGE_ERRORS,
    openapi_extra=describe_body(Say, required=False),
)
async def finish_by_id(
    debate_id: DebateId, runs: TheRuns, client: _Client, said: _Said
) -> DebateSummary:
    """Finish the current round, then write the answer."""
    return await _continue_debate(runs, client, debate_id, Remark(say=said.say, finish=True))


async def _continue_debate(
    runs: Runs,
    client: str,
    debate_id: UUID,
    remark: Remark,
    changes: Mapping[str, Given] | None = None,
) -> DebateSummary:
    debate = await find_debate(runs, debate_id)
    if debate.status == "done":
        raise not_possible(debate, "The debate is done.")
    if run := await runs.find_active_run(debate.id):
        if changes:
            raise not_possible(debate, "The debate is running; pause it to change its budget.")
        _check_remark(run, remark)
        was_paused = run.is_paused
        run.add_remark(remark)
        if was_paused:
            await asyncio.to_thread(runs.records.accept, debate.id)
        return await summarize_now(runs, debate)
    if debate.status == "running":
        raise not_possible(debate, "Another process runs the debate.")
    settings = None
    if changes:
        with refusing_bad_input():
            settings = await asyncio.to_thread(with_budget, runs.records, debate, changes)
    with runs.reserve_slot(client):
        run = runs.begin(debate, remark, client=client, settings=settings)
    await run.wait_for_start()
    await asyncio.to_thread(runs.records.accept, debate.id)
    return await summarize_now(runs, run.debate)


def _check_remark(run: Run, remark: Remark) -> None:
    if remark.say.strip() or remark.finish:
        return
    if run.is_paused:
        raise not_possible(run.debate, "The debate is still in its turn; resume it once it paused.")
    raise not_possible(run.debate, "The debate is already running.")
