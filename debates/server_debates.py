import asyncio
from contextlib import suppress
from typing import Any, cast

from langgraph_sdk.errors import NotFoundError

from contend.debates.prepare import DebateDraft
from contend.debates.record import RAN_ON, SERVER, StoredDebate, settings_in
from contend.debates.repository import DebateExists, Repository, TaskAccepted
from contend.debates.server_graph import ServerGraph
from contend.debates.servers import ServerAddress, ServerConnection, ServerLost, connected
from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.state import DebateState
from contend.models.seats import is_demonstration

_FIRST_NODE = "retrieve"  # this node chooses the seats and refuses unusable questions


async def begin_on_server(
    records: Repository,
    address: ServerAddress,
    draft: DebateDraft,
    request: DebateRequest | None,
    debate_id: str,
    task_id: str | None = None,
) -> StoredDebate:
    """Let the server check the question and choose the seats; if it refuses, store nothing."""
    if draft.attachments.documents or draft.attachments.images:
        raise BadInput(
            "Documents and images are stored on this machine, where the server cannot read them."
        )
    await asyncio.to_thread(_refuse_known, records, debate_id, task_id)
    protocol = draft.settings.protocol
    try:
        async with connected(address) as server:
            await server.check(protocol)
            state = await _prepared(server, draft, request, debate_id)
            given = records, address, protocol, debate_id, state, task_id
            try:
                return await asyncio.to_thread(_store_record, *given)
            except TaskAccepted:  # another service has just started the same task
                await _delete_thread(server, debate_id)
                raise
    except ServerLost as lost:
        raise BadInput(f"{lost}. Check the address, and that it is running.") from lost


def _refuse_known(records: Repository, debate_id: str, task_id: str | None) -> None:
    if debate_id in records.ids():
        raise DebateExists(debate_id)
    if task_id is not None and records.debate_of(task_id):
        raise TaskAccepted


async def _prepared(
    server: ServerConnection, draft: DebateDraft, request: DebateRequest | None, debate_id: str
) -> DebateState:
    protocol = draft.settings.protocol
    await server.ask(
        lambda client: client.threads.create(
            thread_id=debate_id, if_exists="raise", graph_id=protocol
        )
    )
    try:
        return await _retrieve(server, draft, request, debate_id)
    except BaseException:
        await asyncio.shield(_delete_thread(server, debate_id))
        raise


async def _retrieve(
    server: ServerConnection, draft: DebateDraft, request: DebateRequest | None, debate_id: str
) -> DebateState:
    graph = ServerGraph(server, draft.settings.protocol, debate_id)
    given: dict[str, Any] = {"question": draft.question}
    if request:
        given["request"] = request.model_dump(mode="json")
    # Send only the settings that were set here; the server chooses the rest.
    context = draft.settings.model_dump(mode="json", exclude_unset=True)
    run = await graph.start({"input": given}, context, until=_FIRST_NODE)
    async for _ in graph.follow(run):
        pass
    return cast("DebateState", (await graph.aget_state()).values)


async def _delete_thread(server: ServerConnection, debate_id: str) -> None:
    with suppress(NotFoundError, BadInput, ServerLost):
        await server.ask(lambda client: client.threads.delete(debate_id))


async def delete_on_server(debate: StoredDebate) -> None:
    """Stop and delete the debate on its server; raise ServerLost if the server does not answer."""
    async with connected(ServerAddress(debate.server or "")) as server:
        with suppress(NotFoundError):
            await server.ask(lambda client: client.threads.get(debate.id))
            await ServerGraph(server, debate.protocol, debate.id).delete()


def _store_record(
    records: Repository,
    address: ServerAddress,
    protocol: str,
    debate_id: str,
    state: DebateState,
    task_id: str | None,
) -> StoredDebate:
    where = f"LangGraph server {address}"
    settings = {**settings_in(state, protocol), RAN_ON: where, SERVER: str(address)}
    is_demo = is_demonstration(state["seats"])
    about = debate_id, protocol, state, settings
    try:
        records.start(*about, demonstration=is_demo, task_id=task_id)
    except DebateExists:  # a server that uses our database has created the record already
        _take_over(records, debate_id, settings, task_id)
    return records.find(debate_id)


def _take_over(
    records: Repository, debate_id: str, settings: dict[str, Any], task_id: str | None
) -> None:
    try:
        records.accept_with(debate_id, settings, task_id)
    except TaskAccepted:
        records.delete(debate_id)
        raise
