from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from starlette.middleware.gzip import GZipMiddleware
from starlette.staticfiles import StaticFiles

_WEB = Path(__file__).parent / "web"


def add_page(app: FastAPI) -> None:
    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def get_page() -> FileResponse:
        return FileResponse(_WEB / "index.html", headers={"Cache-Control": "no-cache"})

    app.mount("/static", GZipMiddleware(StaticFiles(directory=_WEB)), name="static")
