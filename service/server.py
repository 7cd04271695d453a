"""Stopping a server whose callers wait for debates."""

import signal
import socket
from types import FrameType

import uvicorn

from contend.service.runs import Runs

# By then every debate is paused and its caller answered; others are not waited for.
_SECONDS_FOR_REQUESTS = 5


class PausingServer(uvicorn.Server):
    """Pauses the debates first: waiting for open requests would mean waiting for their debates."""

    def __init__(self, config: uvicorn.Config, runs: Runs) -> None:
        config.timeout_graceful_shutdown = _SECONDS_FOR_REQUESTS
        super().__init__(config)
        self._runs = runs

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as uvicorn has it
        """Stop; a second Ctrl-C waits for no more requests.

        The signal is not raised again afterwards, as it is by uvicorn: to stop is no error.
        """
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Pause, answer those who wait, and end."""
        await self._runs.stop()
        await super().shutdown(sockets)
