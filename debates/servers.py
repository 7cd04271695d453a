import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import (
    APIStatusError,
    AuthenticationError,
    NotFoundError,
    PermissionDeniedError,
)
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_fixed

from contend.graph.errors import BadInput, Paused
from contend.graph.settings import SETTINGS
from contend.models.failures import scrub

Result = TypeVar("Result")

_TOKEN_VARIABLE = "CONTEND_SERVICE_TOKEN"  # noqa: S105 - the variable's name, not a token
# Longer than a worker takes to restart; the debate does not wait for us.
_PATIENCE = 30.0
_PAUSE = 0.5
_TIMEOUT = (5.0, 60.0, 60.0, 5.0)  # to connect, read, write, and get a connection
# A server that answers so is busy: it may answer the same request later.
_BUSY = frozenset({408, 409, 425, 429})


class ServerLost(Paused):
    """Raised if the server stops reporting on a debate; the debate may continue there."""


class ServerAddress:
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


def _connect(url: str, headers: dict[str, str]) -> LangGraphClient:
    # Unlike the one of `get_client`, this transport does not itself retry for 7 seconds.
    transport, timeout = httpx.AsyncHTTPTransport(), httpx.Timeout(_TIMEOUT)
    client = httpx.AsyncClient(base_url=url, transport=transport, timeout=timeout, headers=headers)
    return LangGraphClient(client)


class ServerConnection:
    """Sends requests to a server; if a URL does not answer, tries the server's next URL."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        token = os.environ.get(_TOKEN_VARIABLE, "").strip()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._clients = [_connect(url, headers) for url in address.all]

    @property
    def client(self) -> LangGraphClient:
        return self._clients[0]

    async def close(self) -> None:
        for each in self._clients:
            await each.aclose()

    async def ask(
        self, question: Callable[[LangGraphClient], Awaitable[Result]], *, patience: float = 0
    ) -> Result:
        """Try each URL, retrying for `patience` seconds; raise ServerLost if none answers."""
        try:
            async for trial in AsyncRetrying(
                retry=retry_if_exception(is_outage),
                stop=stop_after_delay(patience),
                wait=wait_fixed(_PAUSE),
                reraise=True,
            ):
                with trial:
                    result = await self._ask_each(question)
        except NotFoundError:
            raise
        except (httpx.TransportError, APIStatusError) as error:
            raise self._failure(error) from error
        return result

    async def ask_with_retries(
        self, question: Callable[[LangGraphClient], Awaitable[Result]]
    ) -> Result:
        return await self.ask(question, patience=_PATIENCE)

    async def ask_about_run(
        self, question: Callable[[LangGraphClient], Awaitable[Result]]
    ) -> Result:
        """Ask about a run, with retries; raise ServerLost even if the server refuses."""
        try:
            return await self.ask_with_retries(question)
        except BadInput as refused:
            raise ServerLost(str(refused)) from refused

    def excuse(self, error: httpx.TransportError | APIStatusError) -> None:
        if not is_outage(error):
            raise ServerLost(str(self._failure(error))) from error

    async def _ask_each(self, question: Callable[[LangGraphClient], Awaitable[Result]]) -> Result:
        for _ in self._clients[1:]:
            try:
                return await question(self.client)
            except (httpx.TransportError, APIStatusError) as error:
                if not is_outage(error):
                    raise
                self.try_next()
        return await question(self.client)

    def try_next(self) -> None:
        self._clients.append(self._clients.pop(0))

    def _failure(self, error: httpx.TransportError | APIStatusError) -> ServerLost | BadInput:
        server = f"The server {self._address}"
        if not isinstance(error, APIStatusError):
            why = scrub(str(error)) or type(error).__name__
            return ServerLost(f"{server} cannot be reached: {why}")
        if is_outage(error):
            return ServerLost(f"{server} cannot answer now: {scrub(error.message)}")
        if isinstance(error, AuthenticationError | PermissionDeniedError):
            return BadInput(f"{server} needs a token. Set {_TOKEN_VARIABLE} to its token.")
        return BadInput(f"{server} refused: {scrub(error.message)}")

    async def check(self, protocol: str) -> None:
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


def is_outage(error: BaseException) -> bool:
    """Return whether the error is temporary: the same request may succeed later."""
    if isinstance(error, APIStatusError):
        return error.status_code in _BUSY or error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
    return isinstance(error, httpx.TransportError)


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
    given = error if isinstance(error, dict) else {"message": str(error)}
    return str(given.get("error") or ""), str(given.get("message") or "the run failed")
