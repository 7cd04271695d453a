"""Options of `contend serve`; actions/serve.py does the work."""

from typing import Annotated

import typer

from contend.cli.commands.options import Assignments, Config, Model


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=1, max=65535, help="Port to listen on.")
    ] = 8000,
    max_running: Annotated[
        int, typer.Option(metavar="N", min=1, help="Debates that may run at the same time.")
    ] = 32,
    model: Model = None,
    assignments: Assignments = None,
    config: Config = None,
) -> None:
    """Serve the HTTP API for forecasts; clients must send the token in CONTEND_SERVICE_TOKEN."""
    from contend.cli.actions.serve import serve_forecasts  # slow to import
    from contend.debates.settings_sources import parse_assignments
    from contend.service.runs import ServiceOptions

    options = ServiceOptions(model, parse_assignments(assignments or []), config, max_running)
    serve_forecasts(host, port, options)
