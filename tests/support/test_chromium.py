"""The test summary reports skipped browser tests."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest
from tests.support import chromium

GIVEN, ALL = pytest.Config.ArgsSource.ARGS, pytest.Config.ArgsSource.TESTPATHS


def _said(source: pytest.Config.ArgsSource) -> list[str]:
    lines: list[str] = []
    reporter: Any = SimpleNamespace(write_line=lambda line, **_: lines.append(line))
    config: Any = SimpleNamespace(args_source=source)
    conftest.pytest_terminal_summary(reporter, config)
    return lines


@pytest.mark.parametrize(
    ("browser", "package", "said"),
    [
        (None, True, "Skipped the browser tests: install chromium, for example with"),
        ("/usr/bin/chromium", None, "Skipped the browser tests: run `pip install playwright`."),
        ("/usr/bin/chromium", True, None),
    ],
)
def test_reports_skipped_browser_tests_at_the_end(
    browser: str | None, package: object, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chromium, "CHROMIUM", browser)
    monkeypatch.setattr(chromium, "find_spec", lambda _: package)
    lines = _said(ALL)
    assert len(lines) == (said is not None)
    assert "".join(lines).startswith(said or "")
    assert _said(GIVEN) == []
