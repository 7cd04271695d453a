"""Detects whether the browser tests can run."""

import shutil
from importlib.util import find_spec

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def how_to_get_a_browser() -> str | None:
    """Return how to get a missing browser or playwright, else None."""
    if CHROMIUM is None:
        return "install chromium, for example with `apt install chromium`"
    return None if find_spec("playwright") else "run `pip install playwright`"
