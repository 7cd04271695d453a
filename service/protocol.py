"""Closes connections of clients that send headers or read responses too slowly."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS_FOR_HEADERS = 10
SECONDS_WITHOUT_READING = 30
_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class PunctualProtocol(H11Protocol):
    _timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None

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
        self._stop_stall_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reading()

    def resume_writing(self) -> None:
        self._stop_stall_timer()
        super().resume_writing()

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(SECONDS_FOR_HEADERS, self._close)

    def _stop_timer(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self.transport.write(_TIMED_OUT)
        self.transport.close()

    def _watch_reading(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._stall_timer = self.loop.call_later(
            SECONDS_WITHOUT_READING, self._abort_if_stalled, unread
        )

    def _stop_stall_timer(self) -> None:
        if self._stall_timer:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _abort_if_stalled(self, unread: int) -> None:
        if self.transport.get_write_buffer_size() < unread:
            self._watch_reading()
        else:
            self.transport.abort()  # close() would wait until the client has read everything
