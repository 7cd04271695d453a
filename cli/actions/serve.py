import asyncio
import errno
import os
import signal
import socket
import sys
import threading
import webbrowser
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import uvicorn

from contend.cli.actions.ask import TerminalReporter
from contend.cli.database import records
from contend.cli.garbage import start_collecting
from contend.cli.view.console import print_message
from contend.debates.prepare import draft_debate, prepare_debate
from contend.debates.servers import check_server
from contend.graph.errors import BadInput
from contend.service.address import published_address
from contend.service.app import create_app
from contend.service.auth import TOKEN_VARIABLE
from contend.service.logs import show_notes
from contend.service.options import ServiceOptions
from contend.service.protocol import PunctualProtocol
from contend.service.routes import PREFIX
from contend.service.runs import Runs

# By then all debates are paused and all clients have their responses.
_SECONDS_FOR_REQUESTS = 5
# Many threads may wait for a locked database while others read from it.
_THREADS = 100


def serve_app(host: str, port: int, options: ServiceOptions, *, open_page: bool) -> None:
    if not host.strip():  # an unset shell variable would mean all network interfaces
        raise BadInput("The address given to --host is empty.")
    has_token = bool(os.environ.get(TOKEN_VARIABLE, "").strip())
    if options.open_to_network and not has_token:
        raise BadInput(
            f"On a network, clients need a token: set {TOKEN_VARIABLE} to a long random string."
        )
    notice = asyncio.run(_check(options))
    with records():  # fails if the database cannot be opened
        pass
    listening = _listen(host, port)
    app = create_app(options)
    show_notes()
    start_collecting()
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    print_message(f"{notice} Serving http://{place}/ (API description: /openapi.json).")
    if not has_token:
        print_message(f"The API under {PREFIX} is off: to use it, set {TOKEN_VARIABLE}.")
    running = uvicorn.Config(
        app, http=PunctualProtocol, log_level="warning", access_log=False, server_header=False
    )
    server = _PausingServer(running, app.state.runs)
    if open_page and sys.stdout.isatty():
        threading.Thread(target=webbrowser.open, args=(f"http://{place}/",), daemon=True).start()
    with published_address(host, port):
        server.run(sockets=[listening])


async def _check(options: ServiceOptions) -> str:
    settings = options.settings()
    if options.server:
        await check_server(options.server)
        return f"Debates run on LangGraph server {options.server}."
    draft = draft_debate("?", settings)
    return (await prepare_debate(draft, TerminalReporter(quiet=False))).plan.notice


class _PausingServer(uvicorn.Server):
    """A server that pauses the debates on shutdown, so that open requests can end."""

    def __init__(self, config: uvicorn.Config, runs: Runs) -> None:
        config.timeout_graceful_shutdown = _SECONDS_FOR_REQUESTS
        super().__init__(config)
        self._runs = runs

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        # Unlike uvicorn, do not raise the signal again: stopping is not an error.
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "contend"))
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._runs.stop()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        why = error.strerror or type(error).__name__
        hint = "--host must be an address of this machine."
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            hint = "Try another --port."
        raise BadInput(f"Cannot listen on {host}:{port}: {why}. {hint}") from error
    return listening
