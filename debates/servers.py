"""Connects to a LangGraph server that runs debates for us, such as a cluster's workers."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import (
    APIStatusError,
    AuthenticationError,
    InternalServerError,
    NotFoundError,
    PermissionDeniedError,
)
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from contend.graph.errors import BadInput, Paused
from contend.graph.settings import SETTINGS
from contend.models.failures import scrub

Result = TypeVar("Result")

_TOKEN_VARIABLE = "CONTEND_SERVICE_TOKEN"  # noqa: S105 - the variable's name, not a token
# Longer than a worker takes to restart; the debate does not wait for us.
_PATIENCE = 30.0
_PAUSE = 0.5
_TIMEOUT = (5.0, 60.0, 60.0, 5.0)  # to connect, read, write, and get a connection
_OUTAGES = (httpx.TransportError, InternalServerError)


class ServerLost(Paused):
    """Raised if no address of the server answers; the debate may continue there."""


class ServerAddress:
    """The addresses of one server, comma-separated; each gives access to all its debates."""

    def __init__(self, text: str) -> None:
        self.all = [_checked(each) for each in text.split(",")]

    def __str__(self) -> str:
        return ",".join(self.all)


def _checked(address: str) -> str:
    address = address.strip().rstrip("/")
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise BadInput(
            "The address of a server must look like http://HOST:PORT, and its token belongs in "
            f"{_TOKEN_VARIABLE}."
        )
    return address


class ServerConnection:
    """Sends requests to one address of a server, or to the next if that one does not answer."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        token = os.environ.get(_TOKEN_VARIABLE, "").strip()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._clients = [
            get_client(url=url, api_key=None, headers=headers, timeout=_TIMEOUT)
            for url in address.all
        ]

    @property
    def client(self) -> LangGraphClient:
        return self._clients[0]

    async def close(self) -> None:
        for each in self._clients:
            await each.aclose()

    async def ask(
        self, question: Callable[[LangGraphClient], Awaitable[Result]], *, patience: float = 0
    ) -> Result:
        """Ask every address, and retry for `patience` seconds; raise ServerLost if none answers."""
        try:
            async for trial in AsyncRetrying(
                retry=retry_if_exception_type(_OUTAGES),
                stop=stop_after_delay(patience),
                wait=wait_fixed(_PAUSE),
                reraise=True,
            ):
                with trial:
                    result = await self._ask_each(question)
        except _OUTAGES as outage:
            raise ServerLost(self._connection_error(outage)) from outage
        except NotFoundError:
            raise
        except APIStatusError as refused:
            raise BadInput(self._refusal(refused)) from refused
        return result

    async def ask_with_retries(
        self, question: Callable[[LangGraphClient], Awaitable[Result]]
    ) -> Result:
        return await self.ask(question, patience=_PATIENCE)

    async def _ask_each(self, question: Callable[[LangGraphClient], Awaitable[Result]]) -> Result:
        for _ in self._clients[1:]:
            try:
                return await question(self.client)
            except _OUTAGES:
                self.try_next()
        return await question(self.client)

    def try_next(self) -> None:
        self._clients.append(self._clients.pop(0))

    def _refusal(self, refused: APIStatusError) -> str:
        if isinstance(refused, AuthenticationError | PermissionDeniedError):
            return f"The server {self._address} needs a token. Set {_TOKEN_VARIABLE} to its token."
        return f"The server {self._address} refused: {scrub(refused.message)}"

    def _connection_error(self, error: Exception) -> str:
        why = scrub(str(error)) or type(error).__name__
        return f"The server {self._address} cannot be reached: {why}"

    async def check(self, protocol: str) -> None:
        """Raise BadInput unless the server answers, accepts our token and has the graph."""
        try:
            found = await self.ask(
                lambda client: client.assistants.search(graph_id=protocol, limit=1)
            )
        except (ServerLost, NotFoundError) as unusable:
            problem = str(unusable)
            if isinstance(unusable, NotFoundError):
                problem = f"{self._address} is not a LangGraph server"
            raise BadInput(f"{problem}. Check the address, and that it is running.") from unusable
        if not found:
            raise BadInput(f"The server {self._address} has no graph '{protocol}'.")


@asynccontextmanager
async def connected(address: ServerAddress) -> AsyncIterator[ServerConnection]:
    connection = ServerConnection(address)
    try:
        yield connection
    finally:
        await connection.close()


async def check_server(address: ServerAddress, *protocols: str) -> None:
    async with connected(address) as connection:
        for protocol in protocols or tuple(SETTINGS):
            await connection.check(protocol)


def text_of_error(error: Any) -> tuple[str, str]:
    """Return the kind and the message of an error that a run reports."""
    given = error if isinstance(error, dict) else {"message": str(error)}
    return str(given.get("error") or ""), str(given.get("message") or "the run failed")
