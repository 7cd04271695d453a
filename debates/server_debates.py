import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, cast

from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError

from contend.debates.leases import LEASE, written
from contend.debates.prepare import DebateDraft
from contend.debates.record import OPENING, RAN_ON, SERVER, StoredDebate, settings_in
from contend.debates.repository import DebateExists, Repository, TaskAccepted
from contend.debates.server_graph import ServerGraph
from contend.debates.servers import ServerAddress, ServerConnection, ServerLost, connected
from contend.graph.errors import BadInput
from contend.graph.events import NodeEvent
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.state import DebateState
from contend.models.seats import is_demonstration
from contend.nodes.retrieve import retrieval_event

_FIRST_NODE = "retrieve"  # this node chooses the seats and refuses unusable questions


async def begin_on_server(
    records: Repository,
    address: ServerAddress,
    draft: DebateDraft,
    request: DebateRequest | None,
    debate_id: str,
    task_id: str | None = None,
) -> StoredDebate:
    """Have the server check the question and choose the seats, then store the debate."""
    if draft.attachments.documents or draft.attachments.images:
        raise BadInput(
            "Documents and images are stored on this machine, where the server cannot read them."
        )
    await asyncio.to_thread(_refuse_known, records, debate_id, task_id)
    protocol = draft.settings.protocol
    try:
        async with connected(address) as server:
            await server.check(protocol)
            state, said = await _prepared(server, draft, request, debate_id)
            given = records, address, protocol, debate_id, state, task_id, said
            try:
                return await asyncio.to_thread(_store_record, *given)
            except TaskAccepted:  # another service has just started the same task
                await _delete_thread(server, debate_id)
                raise
    except ServerLost as lost:
        raise _unreachable(lost) from lost


def _refuse_known(records: Repository, debate_id: str, task_id: str | None) -> None:
    if debate_id in records.ids():
        found = records.find(debate_id)
        before = written(datetime.now(UTC) - LEASE)
        if found.turns or not is_only_prepared(found) or found.updated_at > before:
            raise DebateExists(debate_id)
        records.delete(debate_id)
    if task_id is not None and records.debate_of(task_id):
        raise TaskAccepted


def is_only_prepared(debate: StoredDebate) -> bool:
    """Return whether a server has created the debate, but no client has started running it."""
    is_ours = debate.ran_on is None or debate.server is not None
    return not is_ours and debate.last_seq == 0 and debate.status in ("paused", "interrupted")


async def _prepared(
    server: ServerConnection, draft: DebateDraft, request: DebateRequest | None, debate_id: str
) -> tuple[DebateState, list[NodeEvent]]:
    try:
        await _create_thread(server, draft.settings.protocol, debate_id)
        return await _retrieve(server, draft, request, debate_id)
    except DebateExists:
        raise
    except BaseException:
        await asyncio.shield(_delete_thread(server, debate_id))
        raise


async def _create_thread(server: ServerConnection, protocol: str, debate_id: str) -> None:
    """Create the debate's thread, replacing any thread left by a failed start."""

    async def create(client: LangGraphClient) -> bool:
        try:
            await client.threads.create(thread_id=debate_id, if_exists="raise", graph_id=protocol)
        except ConflictError:
            return False
        return True

    if await server.ask(create):
        return
    if await ServerGraph(server, protocol, debate_id).is_in_use():
        raise DebateExists(debate_id)
    await _delete_thread(server, debate_id)
    if not await server.ask(create):
        raise DebateExists(debate_id)


@asynccontextmanager
async def thread_of_fork(parent: StoredDebate, fork_id: str) -> AsyncIterator[None]:
    """Create the fork's thread if the parent is on a server; delete the thread on failure."""
    if parent.server is None:
        yield
        return
    async with connected(ServerAddress(parent.server)) as server:
        await server.check(parent.protocol)
        try:
            await _create_thread(server, parent.protocol, fork_id)
            yield
        except BaseException as failed:
            await asyncio.shield(_delete_thread(server, fork_id))
            if isinstance(failed, ServerLost):
                raise _unreachable(failed) from failed
            raise


def _unreachable(lost: ServerLost) -> BadInput:
    return BadInput(f"{lost}. Check the address, and that it is running.")


async def _retrieve(
    server: ServerConnection, draft: DebateDraft, request: DebateRequest | None, debate_id: str
) -> tuple[DebateState, list[NodeEvent]]:
    graph = ServerGraph(server, draft.settings.protocol, debate_id)
    given: dict[str, Any] = {"question": draft.question}
    if request:
        given["request"] = request.model_dump(mode="json")
    # Send only the settings that were set here; the server chooses the rest.
    context = draft.settings.model_dump(mode="json", exclude_unset=True)
    run = await graph.start({"input": given}, context, until=_FIRST_NODE)
    said = [part["data"] async for part in graph.follow(run) if part["type"] == "custom"]
    return cast("DebateState", (await graph.aget_state()).values), said


async def take_opening(
    records: Repository, debate: StoredDebate, state: DebateState
) -> list[NodeEvent]:
    """Return and remove the stored events that the server sent while preparing the debate."""
    said: list[NodeEvent] | None = debate.settings.pop(OPENING, None)
    if said is None:  # an earlier release has stored the debate
        return [retrieval_event(state["retrieval"])]
    await asyncio.to_thread(records.change_settings, debate.id, debate.settings)
    return said


async def _delete_thread(server: ServerConnection, debate_id: str) -> None:
    with suppress(NotFoundError, BadInput, ServerLost):
        await server.ask(lambda client: client.threads.delete(debate_id))


async def move_to_server(
    records: Repository, debate: StoredDebate, address: ServerAddress
) -> StoredDebate:
    """Change the URL of a debate's server; raise BadInput if the new server lacks the debate."""
    if debate.server is None:
        raise BadInput(f"Debate {debate.id[:8]} runs on this machine. Leave out --server.")
    async with connected(address) as server:
        await server.check(debate.protocol)
        try:
            await server.ask(lambda client: client.threads.get(debate.id))
        except NotFoundError as unknown:
            name = f"debate {debate.id[:8]}"
            raise BadInput(f"The server {address} does not have {name}.") from unknown
        except ServerLost as lost:
            raise _unreachable(lost) from lost
    settings = {**debate.settings, SERVER: str(address)}
    await asyncio.to_thread(records.change_settings, debate.id, settings)
    return debate.model_copy(update={"settings": settings})


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
    said: Sequence[NodeEvent] = (),
) -> StoredDebate:
    where = f"LangGraph server {address}"
    settings = {**settings_in(state, protocol), RAN_ON: where, SERVER: str(address)}
    settings[OPENING] = list(said)
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
