"""`contend serve`: the HTTP API on this machine."""

from typing import Annotated

import typer

from contend.cli.commands.ask import Assignments, Config, Model
from contend.cli.exit_codes import OK


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8000,
    model: Model = None,
    assignments: Assignments = None,
    config: Config = None,
) -> int:
    """Serve the forecasting API; callers need the token in CONTEND_SERVICE_TOKEN."""
    import asyncio  # --help must not wait for it
    import errno
    import os
    import socket

    import uvicorn

    from contend.cli.actions.models import pull_missing
    from contend.cli.database import records
    from contend.cli.view.console import print_message
    from contend.debates.settings_sources import parse_assignments
    from contend.graph.errors import BadInput
    from contend.models.seats import choose_seats, preflight
    from contend.service.app import create_app
    from contend.service.auth import TOKEN_VARIABLE
    from contend.service.logs import show_notes
    from contend.service.routes import PREFIX
    from contend.service.runs import ServiceOptions
    from contend.service.server import PausingServer

    if not os.environ.get(TOKEN_VARIABLE, "").strip():
        raise BadInput(f"Callers need a token: set {TOKEN_VARIABLE} to a long random text.")
    if not host.strip():  # an unset variable: it would mean every address of this machine
        raise BadInput("--host was given no address.")
    wanted = parse_assignments(assignments or [])
    options = ServiceOptions(model, wanted, config)
    settings = options.settings()
    seating = asyncio.run(choose_seats(settings))
    pull_missing(seating.seats, quiet=False)
    asyncio.run(preflight(seating.seats, settings, "?"))
    with records():  # one that cannot be used is told before anything is served
        pass
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
    app = create_app(options)
    show_notes()
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    print_message(f"{seating.notice} Serving http://{place}{PREFIX}, documented under /docs.")
    running = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    PausingServer(running, app.state.runs).run(sockets=[listening])
    return OK
