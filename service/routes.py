"""Provides the endpoints under /api/v1/reasoning/debate, for forecasts, and the health checks."""

from dataclasses import asdict
from hashlib import sha256
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from contend.debates.record import StoredDebate
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.forecast_contract.result import (
    Argument,
    DebateResult,
    Disagreement,
    OutcomeForecast,
    Round,
)
from contend.graph.forecast_contract.terms import MAX_REQUEST_BYTES, MOST_ROUNDS, OwnName, Share
from contend.models.limits import current_outages
from contend.service.auth import client_of, require_token
from contend.service.bodies import parse_body, read_json
from contend.service.errors import Refused
from contend.service.examples import example
from contend.service.lookup import DebateId, TheRuns
from contend.service.openapi import ID, accepted, errors, ok

PREFIX = "/api/v1/reasoning/debate"


class Accepted(BaseModel):
    """A debate that has started. Use its id to fetch the result."""

    debate_id: str
    task_id: str
    status: str
    location: str = Field(description="Where to fetch the result.")


class RoundAnswer(BaseModel):
    """One round of a debate."""

    round: Round


class RoleAnswer(BaseModel):
    """All arguments of one role."""

    arguments: list[Argument]


class ConsensusAnswer(BaseModel):
    """The result of the debate, without the arguments."""

    consensus_score: Share | None
    probability_distribution: list[OutcomeForecast]
    disagreement_map: list[Disagreement]


_FIND = errors(401, 404, 409, 422, 502, 503)

router = APIRouter(prefix=PREFIX, tags=["forecast"], dependencies=[Depends(require_token)])
health = APIRouter(include_in_schema=False)


@health.get("/healthz")
async def get_health() -> dict[str, str]:
    """Return `ok` as long as the service process is running."""
    return {"status": "ok"}


@health.get("/readyz")
async def get_readiness(runs: TheRuns) -> dict[str, Any]:
    """Report which providers are down; respond with 503 if the service cannot run a debate."""
    await runs.check_ready()
    outages, are_all = current_outages()
    if are_all:
        names = ", ".join(sorted({each.provider for each in outages}))
        raise Refused(503, "providers_down", f"No model provider answers: {names}.")
    down = [asdict(each) for each in outages]
    return {"status": "ready", **({"providers_down": down} if down else {})}


_BODY = {
    "requestBody": {
        "required": True,
        "description": f"A DebateRequest of at most {MAX_REQUEST_BYTES:,} bytes.",
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/DebateRequest"},
                "example": example("request"),
            }
        },
    }
}


@router.post(
    "",
    summary="Debate a question and forecast its outcomes",
    response_model=None,
    openapi_extra=_BODY,
    responses={
        **ok(DebateResult, "result", "The result; a partial one lists its gaps."),
        **accepted(
            Accepted(debate_id=ID, task_id="task-7", status="running", location=f"{PREFIX}/{ID}")
        ),
        **errors(401, 403, 408, 409, 413, 415, 422, 429, 502, 503),
    },
)
async def post_debate(
    request: Request,
    runs: TheRuns,
    _: Annotated[  # only for the OpenAPI document; the code below reads all such headers
        str | None,
        Header(
            alias="prefer",
            description="With `respond-async` the response is sent immediately, with the id.",
            examples=["respond-async"],
        ),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=200,
            description="A repeated request with the same key gets the result of the first one.",
            examples=["bridge-1-2027-05-01"],
        ),
    ] = None,
) -> JSONResponse:
    """Run a debate and return its result or, with `Prefer: respond-async`, its id immediately."""
    wanted = parse_body(DebateRequest, await read_json(request, MAX_REQUEST_BYTES))
    preferred = _wants_async(",".join(request.headers.getlist("prefer")))
    debate_id = _id_of_key(idempotency_key) if idempotency_key else None
    debate = None
    if debate_id:
        debate = await runs.find_repeated(wanted, debate_id, wait=not preferred)
    if debate is None:
        run = await runs.start(wanted, client_of(request), debate_id)
        debate = run.debate if preferred else await runs.wait(run)
    if debate.status == "running":
        return _accepted(debate, wanted.task_id, preferred=preferred)
    return JSONResponse(_result(debate))


def _id_of_key(key: str) -> str:
    return str(UUID(bytes=sha256(key.encode()).digest()[:16], version=4))


def _accepted(debate: StoredDebate, task_id: str, *, preferred: bool) -> JSONResponse:
    location = f"{PREFIX}/{debate.id}"
    body = Accepted(debate_id=debate.id, task_id=task_id, status=debate.status, location=location)
    headers = {"Location": location}
    headers |= {"Preference-Applied": "respond-async"} if preferred else {}
    return JSONResponse(body.model_dump(), 202, headers=headers)


@router.get(
    "",
    summary="The result of the newest debate for a task",
    response_model=None,
    responses={**ok(DebateResult, "result", "The result."), **_FIND},
)
async def get_task(
    task_id: Annotated[
        str, Query(min_length=1, max_length=200, description="The task's id.", examples=["task-7"])
    ],
    runs: TheRuns,
) -> JSONResponse:
    """Return the complete result of the newest debate for a task."""
    return JSONResponse(_result(await runs.find_task(task_id)))


@router.get(
    "/{debate_id}",
    summary="The result of a debate",
    response_model=None,
    responses={**ok(DebateResult, "result", "The result."), **_FIND},
)
async def get_debate(debate_id: DebateId, runs: TheRuns) -> JSONResponse:
    """Return a debate's complete result."""
    return JSONResponse(_result(await runs.find(str(debate_id))))


@router.get(
    "/{debate_id}/round/{round_number}",
    summary="One round of a debate",
    response_model=None,
    responses={**ok(RoundAnswer, "round", "The round."), **_FIND},
)
async def get_round(
    debate_id: DebateId,
    round_number: Annotated[
        int, Path(ge=1, le=MOST_ROUNDS, description="Starts at 1.", examples=[1])
    ],
    runs: TheRuns,
) -> JSONResponse:
    """Return the arguments and the summary of one round."""
    rounds = _result(await runs.find(str(debate_id)))["debate_log"]["rounds"]
    for each in rounds:
        if each["round_number"] == round_number:
            return JSONResponse({"round": each})
    raise Refused(404, "no_such_round", f"The debate has {len(rounds)} rounds.")


@router.get(
    "/{debate_id}/role/{role_name}",
    summary="All arguments of one role",
    response_model=None,
    responses={**ok(RoleAnswer, "role", "Its arguments, in order."), **_FIND},
)
async def get_role(
    debate_id: DebateId,
    role_name: Annotated[OwnName, Path(description="The role's name.", examples=["historian"])],
    runs: TheRuns,
) -> JSONResponse:
    """Return one role's arguments, round by round."""
    debate = await runs.find(str(debate_id))
    result = _result(debate)
    own = (each["name"] for each in debate.settings.get("own_roles", []))
    if role_name not in (*debate.settings.get("roles", []), *own):
        raise Refused(404, "no_such_role", f"The {role_name} did not take part in this debate.")
    arguments = [
        each
        for held in result["debate_log"]["rounds"]
        for each in held["arguments"]
        if each["role"] == role_name
    ]
    return JSONResponse({"arguments": arguments})


@router.get(
    "/{debate_id}/consensus",
    summary="The probabilities, and how far the roles agree",
    response_model=None,
    responses={**ok(ConsensusAnswer, "consensus", "The result in numbers."), **_FIND},
)
async def get_consensus(debate_id: DebateId, runs: TheRuns) -> JSONResponse:
    """Return the probabilities, the consensus score and the disagreements."""
    result = _result(await runs.find(str(debate_id)))
    parts = ("consensus_score", "probability_distribution", "disagreement_map")
    return JSONResponse({part: result[part] for part in parts})


def _wants_async(prefer: str) -> bool:
    asked = prefer.replace(";", ",").split(",")
    return "respond-async" in {each.strip().lower() for each in asked}


_HOW_TO_RESUME = ". The service resumes its own debates; resume others with"


def _result(debate: StoredDebate) -> dict[str, Any]:
    result: dict[str, Any] | None = debate.state.get("forecast")
    more = {"debate_id": debate.id, "status": debate.status}
    if debate.status == "done" and result:
        if all(row["probability"] is None for row in result["probability_distribution"]):
            detail = "No probability could be read from any model's reply."
            raise Refused(502, "no_forecast", detail, **more)
        return result
    if debate.status == "failed":
        raise Refused(502, "failed", f"The debate failed: {debate.error}", **more)
    resume = f"{_HOW_TO_RESUME} `contend resume {debate.id[:8]}`."
    words = {
        "running": "The debate is still running; try again later.",
        "paused": f"The debate is paused{resume}",
        "interrupted": f"The debate was interrupted{resume}",
    }
    detail = words.get(debate.status, "The debate has no result.")
    raise Refused(409, "no_result", detail, **more)
