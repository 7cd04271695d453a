from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Route

from contend.graph.errors import DamagedDebate, DatabaseUnavailable
from contend.graph.forecast_contract.request import DebateRequest
from contend.service import catalogue, chat, debates, errors, forks, listing, steering
from contend.service.guards import Guard
from contend.service.limits import StreamLimit
from contend.service.mcp_route import McpEndpoint
from contend.service.openapi import add_examples, share_definitions
from contend.service.options import ServiceOptions
from contend.service.page import add_page
from contend.service.routes import health, router
from contend.service.runs import Runs

_ABOUT = (
    "Debates of language models. `/api/v1/debates` starts debates of every protocol and streams "
    "their events. `/api/v1/reasoning/debate` is for forecasts: five roles argue over outcomes "
    "for three rounds, every argument is scored, and the numbers they state give a probability "
    "distribution. What a debate could not produce is null and listed in `report.gaps`."
)


def create_app(
    options: ServiceOptions | None = None, on_start: Callable[[], Awaitable[None]] | None = None
) -> FastAPI:
    runs = Runs(options or ServiceOptions())

    tools = McpEndpoint(runs)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        _prepare_routes(made)
        await runs.open()
        if on_start:
            await on_start()
        try:
            yield
        finally:
            await tools.close()
            await runs.close()

    made = FastAPI(
        title="Contend",
        version=version("contend"),
        description=_ABOUT,
        lifespan=lifespan,
        # FastAPI's documentation pages load scripts from other sites.
        docs_url=None,
        redoc_url=None,
    )
    made.state.runs = runs
    made.state.recent_chats = {}
    made.include_router(router)
    for each in (listing, debates, steering, forks, catalogue, chat):
        made.include_router(each.router)
    made.include_router(health)
    add_page(made)
    made.router.routes.append(Route("/mcp", endpoint=tools))
    made.exception_handler(errors.Refused)(errors.on_refused)
    made.exception_handler(DatabaseUnavailable)(errors.on_database_unavailable)
    made.exception_handler(DamagedDebate)(errors.on_damaged)
    made.exception_handler(RequestValidationError)(errors.on_invalid)
    made.exception_handler(HTTPException)(errors.on_http_error)
    # A middleware, because after an exception handler of the app the server also prints a
    # traceback, which may contain secrets.
    made.add_middleware(ExceptionMiddleware, handlers={Exception: errors.on_unexpected})
    made.add_middleware(StreamLimit, most=runs.options.max_streams_per_client)
    made.add_middleware(Guard, only_loopback=not runs.options.open_to_network)
    made.openapi = lambda: _openapi(made)  # type: ignore[method-assign]
    return made


def _prepare_routes(made: FastAPI) -> None:
    """Make FastAPI build its routes now, so that the first client does not have to wait."""
    scope = {"type": "http", "method": "GET", "path": "/", "root_path": "", "headers": []}
    for route in made.routes:
        route.matches(scope)


def _openapi(made: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, adding the request schema that FastAPI cannot derive."""
    if made.openapi_schema:
        return made.openapi_schema
    document = get_openapi(
        title=made.title, version=made.version, description=made.description, routes=made.routes
    )
    at = "#/components/schemas/{model}"
    schema = DebateRequest.model_json_schema(mode="validation", ref_template=at)
    schemas = document["components"]["schemas"]
    schemas |= {name: each for name, each in schema.pop("$defs").items() if name not in schemas}
    schemas["DebateRequest"] = schema
    share_definitions(document)
    add_examples(document)
    made.openapi_schema = document
    return document
