"""Close connections that never finish the headers of a request."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_FOR_HEADERS = 10
_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class PunctualProtocol(H11Protocol):
    """HTTP with a time limit for the headers of a request, which uvicorn does not have."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        is_partial = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if not is_partial:
            self._stop_timer()
        elif not self._timer:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(SECONDS_FOR_HEADERS, self._close)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self.transport.write(_TIMED_OUT)
        self.transport.close()
