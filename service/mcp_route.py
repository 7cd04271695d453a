"""Serves the MCP tools at /mcp. Loads the slow MCP package on the first request."""

import asyncio
from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from contend.service.auth import client_of, is_loopback, is_service_token
from contend.service.errors import Refused, refuse
from contend.service.runs import Runs

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class McpEndpoint:
    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._app: asyncio.Future[ASGIApp] | None = None
        self._serving: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = client_of(HTTPConnection(scope))
        is_open = self._runs.options.open_to_network or not is_loopback(client)
        if is_open and not is_service_token(scope):
            refused = Refused(401, "unauthorized", "A valid service token is required.")
            await refuse(refused)(scope, receive, send)
            return
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._app))
        app = await asyncio.shield(self._app)
        await app(scope, receive, send)

    async def close(self) -> None:
        self._closing.set()
        if self._serving:
            await self._serving

    async def _serve(self, app: "asyncio.Future[ASGIApp]") -> None:
        try:
            sessions = await asyncio.to_thread(_create_sessions, self._runs)
        except Exception as error:  # noqa: BLE001 - every request reports it
            app.set_exception(error)
            return
        async with sessions.run():
            app.set_result(sessions.handle_request)
            await self._closing.wait()


def _create_sessions(runs: Runs) -> "StreamableHTTPSessionManager":
    from mcp.server.transport_security import TransportSecuritySettings

    from contend.service.mcp_server import create_server  # slow to import

    server = create_server(runs)
    # `Guard` has checked the request already.
    checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server.streamable_http_app(transport_security=checked)
    return server.session_manager
