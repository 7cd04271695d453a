"""A server that pauses its debates when it stops."""

import signal
import socket
from types import FrameType

import uvicorn

from contend.service.runs import Runs

# By then all debates are paused and their callers answered.
_SECONDS_FOR_REQUESTS = 5


class PausingServer(uvicorn.Server):
    """Pauses the debates first, so that open requests end soon."""

    def __init__(self, config: uvicorn.Config, runs: Runs) -> None:
        config.timeout_graceful_shutdown = _SECONDS_FOR_REQUESTS
        super().__init__(config)
        self._runs = runs

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """Stop; a second Ctrl-C does not wait for open requests.

        Unlike uvicorn, do not raise the signal again: stopping is not an error.
        """
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Pause the debates, answer their callers, and stop."""
        await self._runs.stop()
        await super().shutdown(sockets)
