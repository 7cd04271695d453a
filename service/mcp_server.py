import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from datetime import date
from importlib.metadata import version
from typing import Annotated, Any
from uuid import UUID

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field
from starlette.requests import Request

from contend.debates.forecasts import PROTOCOL as FORECAST
from contend.debates.listing import Filter
from contend.debates.record import StoredDebate
from contend.graph.settings import SETTINGS
from contend.models.text import shorten
from contend.service.auth import client_of
from contend.service.bodies import parse_given
from contend.service.errors import Refused, refusing_outages
from contend.service.lookup import find_debate
from contend.service.progress import follow_progress
from contend.service.runs import Runs
from contend.service.starts import start_run
from contend.service.uploads import Start, Upload

_LONGEST_MESSAGE = 200
_ABOUT = (
    "Contend makes language models debate a question and returns an answer that was attacked, "
    "defended and judged. A debate takes minutes and makes many model calls. If a call times out, "
    "the debate goes on: find it with list_debates, and read it with read_debate."
)

_Model = Annotated[str | None, Field(description="Model for all roles, such as openai:gpt-5-mini.")]
_Preset = Annotated[str | None, Field(description="Named models and settings, such as cheap.")]
_Settings = Annotated[
    dict[str, Any] | None, Field(description="Settings of the protocol, such as max_rounds.")
]
_Outcomes = Annotated[
    list[str], Field(description='Two or more, such as "yes: It opens" and "no: It does not".')
]
_Due = Annotated[date | None, Field(description="The day the outcome will be known.")]


class DebateAnswer(BaseModel):
    """A debate and its answer."""

    debate_id: str
    protocol: str
    status: str
    question: str
    answer: str | None
    warnings: list[str] = Field(description="Read these before the answer.")
    stop_reason: str | None
    score: float | None = Field(description="Out of 10, by the user or the judge.")
    open_objections: list[str]
    probabilities: dict[str, float | None] = Field(
        description="The probability of each outcome of a forecast; null if it could not be parsed."
    )
    error: str | None = None


class ListedDebate(BaseModel):
    debate_id: str
    protocol: str
    status: str
    question: str
    created_at: str


def create_server(runs: Runs) -> MCPServer:
    server = MCPServer("contend", version=version("contend"), instructions=_ABOUT)
    for protocol, schema in SETTINGS.items():
        description = f"{(schema.__doc__ or '').strip()} Use it when: {schema.use_when}"
        tool = _forecast_tool(runs) if protocol == FORECAST else _debate_tool(runs, protocol)
        server.add_tool(tool, f"debate_{protocol}", description=description)
    server.add_tool(_read_tool(runs), "read_debate", description="Read a debate and its answer.")
    server.add_tool(_list_tool(runs), "list_debates", description="List debates, newest first.")
    return server


def _debate_tool(runs: Runs, protocol: str) -> Callable[..., Awaitable[DebateAnswer]]:
    async def debate(
        question: str,
        context: Context[Any, Any],
        model: _Model = None,
        preset: _Preset = None,
        settings: _Settings = None,
    ) -> DebateAnswer:
        given = {"model": model, "preset": preset, "settings": settings or {}}
        return await _debate(runs, context, question=question, protocol=protocol, **given)

    return debate


def _forecast_tool(runs: Runs) -> Callable[..., Awaitable[DebateAnswer]]:
    async def forecast(
        question: str,
        outcomes: _Outcomes,
        context: Context[Any, Any],
        due: _Due = None,
        model: _Model = None,
        preset: _Preset = None,
        settings: _Settings = None,
    ) -> DebateAnswer:
        given = {"model": model, "preset": preset, "settings": settings or {}}
        about = {"outcomes": outcomes, "due": due, "protocol": FORECAST}
        return await _debate(runs, context, question=question, **about, **given)

    return forecast


async def _debate(runs: Runs, context: Context[Any, Any], **given: Any) -> DebateAnswer:
    with _tool_errors():
        start = parse_given(Start, given)
        run = await start_run(runs, Upload(start), _client(context), is_attended=False)
        steps = 0
        async with aclosing(follow_progress(run)) as progress:
            async for text in progress:
                steps += 1
                await context.report_progress(steps, message=shorten(text, _LONGEST_MESSAGE))
        return await _read(runs, UUID(run.debate.id))


def _client(context: Context[Any, Any]) -> str:
    request = context.request_context.request
    return client_of(request) if isinstance(request, Request) else "stdin"


@contextmanager
def _tool_errors() -> Iterator[None]:
    try:
        with refusing_outages():
            yield
    except Refused as refused:
        raise ToolError(" ".join([refused.body.detail, *refused.body.problems])) from refused


def _read_tool(runs: Runs) -> Callable[..., Awaitable[DebateAnswer]]:
    async def read_debate(debate_id: UUID) -> DebateAnswer:
        with _tool_errors():
            return await _read(runs, debate_id)

    return read_debate


async def _read(runs: Runs, debate_id: UUID) -> DebateAnswer:
    found = await find_debate(runs, debate_id, with_turns=True)
    return await asyncio.to_thread(_describe, found)


def _describe(debate: StoredDebate) -> DebateAnswer:
    record = debate.as_record()
    outcomes = (record.forecast or {}).get("probability_distribution", ())
    return DebateAnswer(
        debate_id=debate.id,
        protocol=debate.protocol,
        status=debate.status,
        question=debate.question,
        answer=record.final_answer,
        warnings=record.warnings,
        stop_reason=record.stop_reason,
        score=record.quality_score,
        open_objections=[point.text for point in record.points.open],
        probabilities={each["outcome_id"]: each["probability"] for each in outcomes},
        error=debate.error,
    )


def _list_tool(runs: Runs) -> Callable[..., Awaitable[list[ListedDebate]]]:
    async def list_debates(
        search: Annotated[str, Field(description="Words in the question or answer.")] = "",
        limit: Annotated[int, Field(ge=1, le=100)] = 20,
    ) -> list[ListedDebate]:
        wanted = Filter(search.replace("\x00", "").strip())
        with _tool_errors():
            page = await asyncio.to_thread(runs.records.search, wanted, limit)
        found = map(runs.with_live_status, page.debates)
        return [
            ListedDebate(
                debate_id=each.id,
                protocol=each.protocol,
                status=each.status,
                question=shorten(each.question, _LONGEST_MESSAGE),
                created_at=each.created_at,
            )
            for each in found
        ]

    return list_debates
