"""Whether the tests of the page can run here."""

import shutil
from importlib.util import find_spec

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def how_to_get_a_browser() -> str | None:
    """Say what is missing, or nothing."""
    if CHROMIUM is None:
        return "install chromium, for example with `apt install chromium`"
    return None if find_spec("playwright") else "run `pip install playwright`"
