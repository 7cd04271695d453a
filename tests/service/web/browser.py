"""Run a headless Chromium against the service with scripted models."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from contend.service.app import create_app
from contend.service.options import ServiceOptions
from tests.support.chromium import CHROMIUM, how_to_get_a_browser
from tests.support.model_server import ModelServer, Script

# Kept for people to look at.
PICTURES = Path(__file__).parents[3] / ".cache" / "pictures"
needs_browser = pytest.mark.skipif(
    how_to_get_a_browser() is not None, reason=f"needs a browser: {how_to_get_a_browser()}"
)


@contextmanager
def serve_page(
    script: Script, monkeypatch: pytest.MonkeyPatch, models: Sequence[str] = ("m",)
) -> Iterator[str]:
    """Serve the page with models of these names; yield its address."""
    with ModelServer(script, models=models) as server_of_models:
        monkeypatch.setenv("OPENAI_BASE_URL", server_of_models.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
        monkeypatch.setenv("CONTEND_TEMPLATES", "false")
        app = create_app(ServiceOptions(model=f"openai:{models[0]}"))
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive(), "the service did not start"
                time.sleep(0.01)
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class Browser:
    """Open pages and collect their console errors."""

    def __init__(self, chromium: Any, address: str) -> None:
        self._chromium, self.address = chromium, address
        self.errors: list[str] = []

    def open(
        self, path: str = "", prepare: Callable[[Any], None] | None = None, **options: Any
    ) -> Any:
        """Open a path of the service, or another address, in a new browser context."""
        size = {"width": options.pop("width", 1400), "height": 900}
        page = self._chromium.new_context(viewport=size, **options).new_page()
        page.set_default_timeout(60_000)
        if prepare:
            prepare(page)
        page.on("console", lambda said: self._note(said.type, said.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.goto(path if "://" in path else f"{self.address}/{path}")
        return page

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.errors.append(text)

    def take_picture(self, page: Any, name: str) -> None:
        page.screenshot(path=PICTURES / f"{name}.png")


@contextmanager
def open_browser(address: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Browser(chromium, address)
        chromium.close()


def fill_in(page: Any, protocol: str, question: str) -> None:
    """Fill in the form with a question; outcomes too for a forecast."""
    page.check(f"input[value={protocol}]", force=True)
    page.fill(".question-field", question)
    if protocol == "forecast":
        page.fill("#outcomes", "yes: It opens\nno: It does not")


def start(page: Any) -> None:
    page.click("text=Start debate")
    page.wait_for_selector(".pill-running, .pill-done")
