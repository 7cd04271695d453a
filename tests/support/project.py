"""Copies the project's version-controlled files, for tests that build it."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def copy_project(to: Path) -> None:
    for name in subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines():
        if (ROOT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (to / name).write_bytes((ROOT / name).read_bytes())
