"""Every view in both themes, checked by axe-core for barriers."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.support import debaters
from tests.service.web.browser import needs_browser, open_browser, serve_page
from tests.service.web.monolith import MODELS, QUESTION, SETTINGS, monolith
from tests.support.model_server import Request

pytestmark = [pytest.mark.slow, needs_browser]


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
