from typing import Annotated

import typer

from contend.cli.commands.options import Assignments, Config, Model


def serve(  # noqa: PLR0913, PLR0917 - one parameter per option
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=1, max=65535, help="Port to listen on.")
    ] = 8000,
    max_running: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of running debates.")
    ] = 32,
    max_running_per_client: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum running debates per client.")
    ] = 32,
    max_streams_per_client: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum open event streams per client.")
    ] = 64,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Do not open the web page in a browser.")
    ] = False,
    allow_model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN",
            help="Models that clients may choose, as a pattern such as 'ollama:*' (repeatable). "
            "Default: any model if --host is local, otherwise only the models named in the "
            "server's settings.",
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Run debates on this LangGraph server. If it has several addresses, separate "
            "them with commas.",
        ),
    ] = None,
    model: Model = None,
    assignments: Assignments = None,
    config: Config = None,
) -> None:
    """Serve the web page and the HTTP API.

    To accept connections from other machines, use --host and set CONTEND_SERVICE_TOKEN.
    """
    from contend.cli.actions.serve import serve_app  # slow to import
    from contend.debates.servers import ServerAddress
    from contend.debates.settings_sources import parse_assignments
    from contend.service.auth import is_loopback
    from contend.service.options import ServiceOptions

    on_network = not is_loopback(host)
    allowed = allow_model or ([] if on_network else ["*"])
    options = ServiceOptions(
        model,
        parse_assignments(assignments or []),
        config,
        max_running,
        max_running_per_client,
        max_streams_per_client,
        open_to_network=on_network,
        server=None if server is None else ServerAddress(server),
        allowed_models=tuple(allowed),
    )
    serve_app(host, port, options, open_page=not no_open)
