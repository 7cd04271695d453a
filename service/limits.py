import re
from collections import Counter

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from contend.service.auth import client_of
from contend.service.errors import Refused, refuse

_STREAMS = re.compile(r"/api/v1/debates/[^/]+/events/?|/v1/chat/completions/?")


class StreamLimit:
    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app, self._most = app, most
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _STREAMS.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        client = client_of(HTTPConnection(scope))
        if self._open[client] >= self._most:
            detail = f"You have {self._most} streams of events open; close one and try again."
            await refuse(Refused(429, "too_many_streams", detail))(scope, receive, send)
            return
        self._open[client] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[client] -= 1
            if not self._open[client]:
                del self._open[client]
