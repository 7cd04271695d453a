"""Blocks requests from other web sites, and keeps the web page from contacting other sites."""

import re

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contend.service.errors import Refused, refuse

_LOOPBACK = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
# In `langgraph dev`, all other paths belong to its own API.
_OWN_PATHS = ("/api/v1", "/static", "/v1/", "/mcp", "/healthz", "/readyz")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PAGE_POLICY = (
    "default-src 'self'; img-src 'self' data:; style-src 'self'; script-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    def __init__(self, app: ASGIApp, *, only_loopback: bool) -> None:
        self._app, self._only_loopback = app, only_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path == "/" or path.startswith(_OWN_PATHS)):
            await self._app(scope, receive, send)
            return
        if refused := self._refused(path, scope["method"], Headers(scope=scope)):
            await refuse(refused)(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if path == "/" or path.startswith("/static"):
                    headers["Content-Security-Policy"] = _PAGE_POLICY
            await send(message)

        await self._app(scope, receive, send_guarded)

    def _refused(self, path: str, method: str, headers: Headers) -> Refused | None:
        if _CONTROL.search(path):
            return Refused(422, "invalid", "The path contains control characters.")
        host = headers.get("host", "")
        # DNS rebinding: a site whose name points at this machine sends that name as the host.
        if self._only_loopback and not _LOOPBACK.fullmatch(host):
            return Refused(421, "wrong_host", "This service answers only on this machine.")
        if method in _SAFE_METHODS:
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        foreign = site not in (None, "same-origin", "none")
        if foreign or (origin is not None and origin.partition("://")[2] != host):
            return Refused(403, "other_site", "Requests from other web sites are refused.")
        return None
