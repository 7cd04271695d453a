import asyncio

from contend.cli.garbage import start_collecting
from contend.service.mcp_server import create_server
from contend.service.options import ServiceOptions
from contend.service.runs import Runs


def serve_tools(options: ServiceOptions) -> None:
    """Serve the tools until stdin is closed, then pause all running debates."""
    options.settings_of("adversarial", {})  # refuses invalid settings before a client connects
    start_collecting()
    asyncio.run(_serve(Runs(options)))


async def _serve(runs: Runs) -> None:
    await runs.open()
    try:
        await create_server(runs).run_stdio_async()
    finally:
        await runs.close()
