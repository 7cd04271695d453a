"""Generated parts of the docs match the code."""

import re
from typing import get_args

import pytest

from contend.graph.events import EventName
from contend.graph.settings import SETTINGS
from tests.docs.generated import PAGES, ROOT, calls, generated


@pytest.mark.parametrize("page", PAGES)
def test_generated_parts_of_the_page_are_current(page: str) -> None:
    text = PAGES[page].read_text("utf-8")
    missing = [part for part in generated(page) if f"\n{part}" not in text]
    assert missing == [], "run: python -m tests.docs.generated"


@pytest.mark.parametrize("protocol", SETTINGS)
def test_readme_states_the_number_of_calls_per_protocol(protocol: str) -> None:
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    (row,) = [line for line in lines if line.startswith(f"| [`{protocol}`]")]
    assert row.endswith(f"| {calls(protocol)} |")


def test_page_of_events_lists_every_event() -> None:
    rows = (ROOT / "docs/events.md").read_text("utf-8").split("## Names used elsewhere")[0]
    assert set(get_args(EventName)) <= set(re.findall(r"`(\w+)`", rows))
