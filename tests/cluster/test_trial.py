"""`make cluster`, without starting a cluster."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deploy import __main__ as trial
from deploy import postgres

ROOT = Path(__file__).parents[2]
_SHOW_IMPORTED = (
    "import sys, deploy.__main__; names = {name.partition('.')[0] for name in sys.modules};"
    "print(*names & {'pytest', '_pytest', 'tests'})"
)


def test_deploy_imports_no_test_code() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", _SHOW_IMPORTED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.split() == []


def test_reports_a_missing_postgres(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    for name in ("find_redis", "find_python"):
        monkeypatch.setattr(trial, name, lambda: "found")
    for name in ("_from_wheel", "_from_system"):
        monkeypatch.setattr(postgres, name, list)
    assert trial.main() == 2
    assert capsys.readouterr().err.startswith("PostgreSQL is missing: install postgresql")
