"""Check every view in both themes with axe-core."""

import threading
from typing import Any

import httpx
import pytest

from tests.service.web.browser import needs_browser, open_browser, serve_page
from tests.service.web.monolith import MODELS, QUESTION, SETTINGS, monolith
from tests.support.forecasting import forecasters
from tests.support.model_server import Reply, Request

pytestmark = [pytest.mark.slow, needs_browser]

LIVE = "Is this one still being debated?"
# A view, and what shows that it is complete.
VIEWS = [("", ".start"), ("#/library", ".debate-row"), ("#/scoreboard", ".calibration")]


def start(api: httpx.Client, question: str, **more: Any) -> str:
    started = api.post("/debates", json={"question": question, **more})
    assert started.status_code == 201, started.text
    return str(started.json()["id"])


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_view_has_serious_accessibility_violations(
    theme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_seen = threading.Event()

    def speak(request: Request) -> Reply | str:
        if LIVE in request.text:
            assert is_seen.wait(120)
        return (forecasters() if "forecast" in request.instructions else monolith())(request)

    with (
        serve_page(speak, monkeypatch, MODELS) as address,
        open_browser(address) as browser,
        httpx.Client(base_url=f"{address}/api/v1", timeout=60) as api,
    ):
        done = start(api, QUESTION, settings=SETTINGS)
        outcomes = ["yes: It opens", "no: It does not"]
        asked = start(api, "Will it open?", protocol="forecast", outcomes=outcomes)
        for debate in (done, asked):
            api.get(f"/debates/{debate}/events", timeout=120)
        api.post(f"/debates/{asked}/resolve", json={"outcome": "yes"})
        live = start(api, LIVE)
        debates = [(done, ".answer-foot"), (asked, ".chart"), (live, ".pill-running")]
        views = [*VIEWS, *((f"#/debates/{each}", sign) for each, sign in debates)]
        found = []
        for path, sign in views:
            page = browser.open(path, color_scheme=theme, width=1400 if path else 390)
            page.wait_for_selector(sign)
            found += barriers(page)
            if path == "#/library":
                page.click(f"li:has-text('{QUESTION}') .row-menu")
                page.click(".menu:visible >> text=Rate")
                found += barriers(page)
        is_seen.set()
        assert found == []
        assert browser.errors == []


def barriers(page: Any) -> list[str]:
    """Return the serious and critical violations that axe-core finds."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{page.url}: {each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]
