"""Defines the app that LangGraph servers, such as Aegra, run alongside the graphs."""

import os
import sys

import httpx
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from contend.debates.threads import ThreadRunner
from contend.graph.runners import set_runner
from contend.service.app import create_app
from contend.service.assistants import register_presets
from contend.service.auth import TOKEN_VARIABLE
from contend.service.dev_auth import RememberConnection
from contend.service.options import ServiceOptions


async def _register_presets() -> None:
    async with _client() as client:
        await register_presets(client)


def _client() -> LangGraphClient:
    """Return a client for this app's server, which works even before the server is listening."""
    if "langgraph_api" in sys.modules:
        return get_client(api_key=None)
    # Aegra adds its routes to our app.
    transport = httpx.ASGITransport(app=app)
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    inside = "http://127.0.0.1"
    return LangGraphClient(httpx.AsyncClient(transport=transport, base_url=inside, headers=headers))


# Do not resume debates just because somebody started a development server.
app = create_app(ServiceOptions(resumes_debates=False), on_start=_register_presets)
app.add_middleware(RememberConnection)

_address = os.environ.get("LANGGRAPH_API_URL", "").rstrip("/")
set_runner(ThreadRunner(lambda: app.state.runs.records, f"LangGraph server {_address}".strip()))
