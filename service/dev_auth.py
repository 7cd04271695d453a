"""Authenticates LangGraph server users. If no token is set, only this machine has access."""

import os
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from langgraph_sdk import Auth
from starlette.types import ASGIApp, Receive, Scope, Send

from contend.service.auth import TOKEN_VARIABLE, is_loopback, is_service_token
from contend.service.dev_checks import refuse_rollback, refuse_unknown_settings

auth = Auth()

_connection: ContextVar[Mapping[str, Any]] = ContextVar("connection")
_UNKNOWN: Mapping[str, Any] = {"headers": ()}


class RememberConnection:
    """Stores each request's scope for `authenticate`, to which Aegra passes only the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            _connection.set(scope)
        await self._app(scope, receive, send)


@auth.authenticate
async def authenticate(scope: dict[str, Any]) -> Auth.types.MinimalUserDict:
    # Aegra passes the headers instead of the scope.
    if isinstance(scope.get("headers", ""), str):
        scope = dict(_connection.get(_UNKNOWN))
    has_token = bool(os.environ.get(TOKEN_VARIABLE, "").strip())
    if not has_token and _is_local(scope):
        return {"identity": "local"}
    if is_service_token(scope):
        return {"identity": "token"}
    detail = "A valid service token is required: Authorization: Bearer TOKEN."
    if not has_token:
        detail = f"Only this machine may use a server without a token. Set {TOKEN_VARIABLE}."
    raise Auth.exceptions.HTTPException(status_code=401, detail=detail)


@auth.on
async def allow_everything(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001 - called by these names
    return True


@auth.on.threads.create_run
async def check_run(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001 - called by these names
    refuse_rollback(value.get("multitask_strategy"))
    asked = value.get("kwargs", value)  # Aegra has no kwargs
    refuse_unknown_settings(value.get("assistant_id"), asked.get("context"))
    return True


@auth.on.threads.update
async def check_update(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001 - called by these names
    refuse_rollback(value.get("action"))
    return True


def _is_local(scope: Mapping[str, Any]) -> bool:
    # `langgraph dev` sets the variable, even behind a tunnel; `reached` is the local address of the
    # connection.
    bound = urlsplit(os.environ.get("LANGGRAPH_API_URL", "")).hostname
    reached = (scope.get("server") or ("",))[0]
    return is_loopback(reached) and (bound is None or is_loopback(bound))
