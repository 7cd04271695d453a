import asyncio
from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, model_validator

from contend.debates.compare import compare
from contend.debates.family import Origin
from contend.debates.fork import AfterTurn, Edit, FollowUp, ForkPoint, fork_debate, reply_of
from contend.debates.record import StoredDebate
from contend.graph.errors import BadInput
from contend.graph.record import Status
from contend.graph.state import Remark
from contend.models.text import shorten
from contend.service.address import DEBATES_PREFIX
from contend.service.auth import client_of, require_token_from_network
from contend.service.bodies import describe_body, parse_body, read_json
from contend.service.errors import refusing_bad_input
from contend.service.lookup import (
    CHANGE_ERRORS,
    FIND_ERRORS,
    DebateId,
    TheRuns,
    find_debate,
    not_possible,
)
from contend.service.openapi import errors
from contend.service.runs import Runs
from contend.service.starts import check_fork
from contend.service.steering import Say
from contend.service.summaries import DebateSummary, summarize

_MOST_RELATIVES = 500
_EXCERPT = 280

router = APIRouter(
    prefix=DEBATES_PREFIX, tags=["debates"], dependencies=[Depends(require_token_from_network)]
)

TurnId = Annotated[StrictStr, Field(max_length=200, pattern=r"^[\w.-]+$")]


class TurnEdit(BaseModel):
    model_config = ConfigDict(extra="forbid")

    turn: TurnId = Field(description="The id of the turn to rewrite.")
    text: StrictStr = Field(
        max_length=200_000, description="The whole new reply, with its control block if it has one."
    )


class ForkGiven(Say):
    """Where a fork starts, and what it changes."""

    at: Annotated[StrictStr, Field(max_length=60, pattern=r"^\d{1,4}(:[a-z_]+)?$")] | None = Field(
        None, description="The end of a round or phase, such as 2 or 2:critique."
    )
    after: TurnId | None = Field(None, description="The id of the last turn to keep.")
    edit: TurnEdit | None = Field(
        None, description="A turn to rewrite; everything after it is rerun."
    )
    another_round: StrictBool = Field(
        False, description="Open one more round of a finished debate; `say` is the question."
    )
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings to change.", max_length=100
    )

    @model_validator(mode="after")
    def _check_place(self) -> Self:
        given = [self.at, self.after, self.edit, self.another_round or None]
        if sum(each is not None for each in given) != 1:
            raise ValueError("give one of at, after, edit and another_round")
        if self.another_round and not self.say.strip():
            raise ValueError("another_round needs a question in say")
        return self

    @property
    def place(self) -> ForkPoint | AfterTurn | Edit | FollowUp:
        if self.edit:
            return Edit(self.edit.turn, self.edit.text)
        if self.after:
            return AfterTurn(self.after)
        return ForkPoint.parse(self.at) if self.at else FollowUp()


class EditableReply(BaseModel):
    """A model's complete reply, in the format that `edit` expects."""

    text: str


class Relative(BaseModel):
    """A debate in a family of forks."""

    id: str
    parent_id: str | None = Field(description="The debate from which this one was forked.")
    forked_at: str | None = Field(
        description="The last round and node that this debate shares with its parent."
    )
    edited: str | None = Field(description="The turn that a person rewrote in this debate.")
    status: Status | Literal["deleted"]
    answer_excerpt: str | None


class FamilyAnswer(BaseModel):
    """A family of debates; every parent comes before its forks."""

    debates: list[Relative]
    left_out: int = Field(description="Number of debates not listed.")


class ChangedTurn(BaseModel):
    turn: str
    change: Literal["differs", "only in the first", "only in the second"]


class ChangedFact(BaseModel):
    name: str
    first: str
    second: str


class AnswerWords(BaseModel):
    where: Literal["both", "first", "second"]
    text: str


class ComparisonAnswer(BaseModel):
    """The differences between two debates."""

    shared_turns: int = Field(description="How many turns are the same, from the beginning.")
    turns: list[ChangedTurn]
    facts: list[ChangedFact] = Field(description="Models, settings and results that differ.")
    answer: list[AnswerWords] = Field(description="The words of both answers, in order.")


async def _read_fork(request: Request) -> ForkGiven:
    return parse_body(ForkGiven, await read_json(request))


_Fork = Annotated[ForkGiven, Depends(_read_fork)]
_Client = Annotated[str, Depends(client_of)]


@router.post(
    "/{debate_id}/forks",
    status_code=201,
    response_model=DebateSummary,
    summary="Fork a debate",
    responses=CHANGE_ERRORS,
    openapi_extra=describe_body(ForkGiven),
)
async def post_fork(
    debate_id: DebateId, runs: TheRuns, client: _Client, given: _Fork
) -> JSONResponse:
    """Start a new debate from a point in this debate, which stays unchanged."""
    parent = await find_debate(runs, debate_id, with_turns=True)
    if parent.status == "running":
        raise not_possible(parent, "The debate is running; pause it first.")
    with runs.reserve_slot(client), refusing_bad_input():
        await asyncio.to_thread(check_fork, runs.options, parent, given.settings)
        place, changes = given.place, given.settings
        fork = await fork_debate(runs.records, parent, place, changes, given.say, fetch=False)
        runs.begin(fork, Remark(say=given.say), client=client)
    shown = summarize(
        fork.model_copy(update={"status": "running"}), here=True, waiting_for_you=False
    )
    where = {"Location": f"{DEBATES_PREFIX}/{fork.id}"}
    return JSONResponse(shown.model_dump(mode="json"), 201, where)


@router.get(
    "/{debate_id}/turns/{turn_id}/reply", summary="A reply to edit", responses=CHANGE_ERRORS
)
async def get_reply(
    debate_id: DebateId,
    turn_id: Annotated[
        str,
        Path(
            max_length=200,
            pattern=r"^[\w.-]+$",
            description="The turn's id.",
            examples=["r1.critique.skeptic"],
        ),
    ],
    runs: TheRuns,
) -> EditableReply:
    """Return a turn's complete model reply, including its control block."""
    debate = await find_debate(runs, debate_id, with_turns=True)
    try:
        return EditableReply(text=await reply_of(runs.records, debate, turn_id))
    except BadInput as unusable:
        raise not_possible(debate, str(unusable)) from unusable


@router.get("/{debate_id}/family", summary="The family of a debate", responses=FIND_ERRORS)
async def get_family(debate_id: DebateId, runs: TheRuns) -> FamilyAnswer:
    """List all debates in a debate's family of forks."""
    debate = await find_debate(runs, debate_id)
    return await asyncio.to_thread(_family, runs, debate.id)


def _family(runs: Runs, debate_id: str) -> FamilyAnswer:
    found = runs.records.family(debate_id)
    ids = [found.eldest, *found.origins]
    shown = [_relative(runs, each, found.origins.get(each)) for each in ids[:_MOST_RELATIVES]]
    return FamilyAnswer(debates=shown, left_out=len(ids) - len(shown))


def _relative(runs: Runs, debate_id: str, origin: Origin | None) -> Relative:
    about = _status_and_answer(runs, debate_id)
    place = f"{origin.round}:{origin.node}" if origin else None
    parent, edited = (origin.parent_id, origin.edited) if origin else (None, None)
    return Relative(id=debate_id, parent_id=parent, forked_at=place, edited=edited, **about)


def _status_and_answer(runs: Runs, debate_id: str) -> dict[str, Any]:
    try:
        debate = runs.with_live_status(runs.records.find(debate_id, with_turns=False))
    except BadInput:  # the oldest debate of a family may have been deleted
        return {"status": "deleted", "answer_excerpt": None}
    answer = debate.state.get("final_answer")
    excerpt = shorten(answer, _EXCERPT) if answer else None
    return {"status": debate.status, "answer_excerpt": excerpt}


@router.get(
    "/{debate_id}/diff/{other_id}",
    summary="Compare two debates",
    responses={**FIND_ERRORS, **errors(409)},
)
async def get_diff(debate_id: DebateId, other_id: DebateId, runs: TheRuns) -> ComparisonAnswer:
    """Compare two debates: their turns, models, settings, results and answers."""
    first = await find_debate(runs, debate_id, with_turns=True)
    if debate_id == other_id:
        raise not_possible(first, "These are the same debate; compare it with another one.")
    second = await find_debate(runs, other_id, with_turns=True)
    return await asyncio.to_thread(_compare, first, second)


def _compare(first: StoredDebate, second: StoredDebate) -> ComparisonAnswer:
    found = asdict(compare(first.as_json(), second.as_json()))
    words = [{"where": where, "text": text} for where, text in found["answer"]]
    return ComparisonAnswer.model_validate({**found, "answer": words})
