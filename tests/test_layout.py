"""Checks of the project layout."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.model_server import ModelServer, always
from tests.support.project import copy_project

ROOT = Path(__file__).parents[1]
ROOMS = ["graph", "nodes", "prompts", "models", "retrieval", "debates", "service", "cli", "evals"]
PRODUCT = [path for room in [*ROOMS, "contend"] for path in sorted((ROOT / room).rglob("*.py"))]
# Tests of the whole system, and what tests share.
NOT_MIRRORED = {"cluster", "dev", "docs", "examples", "faults", "releases", "support"}
MOST_LINES = 400


def _packages() -> list[str]:
    folders = [path.parent.relative_to(ROOT) for path in PRODUCT if path.name == "__init__.py"]
    return sorted(
        ".".join(("contend", *folder.parts)).replace("contend.contend", "contend")
        for folder in folders
    )


def _modules(folder: Path) -> set[str]:
    """Return the names that test modules in the mirrored folder may use."""
    names = {path.stem for path in folder.glob("*.py")} | {path.name for path in folder.iterdir()}
    return {*names, folder.name}


def test_pyproject_lists_every_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert sorted(settings["packages"]) == _packages()


@pytest.mark.parametrize("room", sorted({*ROOMS, "contend"}))
def test_every_test_module_is_named_after_what_it_tests(room: str) -> None:
    strangers = [
        path
        for path in (ROOT / "tests" / room).rglob("test_*.py")
        if not any(
            re.fullmatch(rf"test_{name}(_\w+)?", path.stem)
            for name in _modules(ROOT / path.parent.relative_to(ROOT / "tests"))
        )
    ]
    assert strangers == []


def test_no_public_name_is_defined_twice() -> None:
    # Nodes are called what their phase is called, migrations and providers by their interface.
    allowed = {"upgrade", "provider", "propose", "critique", "synthesize", "score", "main"}
    names = Counter(
        node.name
        for path in PRODUCT
        if "commands" not in path.parts
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
    )
    assert sorted(name for name, n in names.items() if n > 1 and name not in allowed) == []


def test_modules_are_short() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in PRODUCT}
    assert {path.name: n for path, n in lines.items() if n >= MOST_LINES} == {}


@pytest.mark.slow
def test_the_wheel_has_one_package_that_caller_files_do_not_shadow(tmp_path: Path) -> None:
    source = tmp_path / "source"
    copy_project(source)
    wheel = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(tmp_path)]
    subprocess.run([*wheel, str(source)], check=True)
    (built,) = tmp_path.glob("contend-*.whl")
    with ZipFile(built) as files:
        names = files.namelist()
        files.extractall(tmp_path / "installed")
    assert {name.split("/")[0].split("-")[0] for name in names} == {"contend"}
    prompts = {f"contend/{path.relative_to(ROOT)}" for path in (ROOT / "prompts").rglob("*.md")}
    sets = {f"contend/evals/datasets/{p.name}" for p in (ROOT / "evals/datasets").iterdir()}
    assert len(sets) >= 5
    assert {*prompts, *sets, "contend/models/prices.yaml"} <= set(names)
    caller = tmp_path / "caller"
    caller.mkdir()
    for name in ("models.py", "graph.py", "cli.py"):
        (caller / name).write_text("raise ImportError('the caller has its own')")
    env = {"PYTHONPATH": str(tmp_path / "installed"), "CONTEND_HOME": str(tmp_path / "home")}

    def contend(*given: str, **more: str) -> str:
        command = [sys.executable, "-m", "contend", *given]
        ended = subprocess.run(
            command, env={**env, **more}, cwd=caller, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert "conviction_check" in contend("graph", "forum")
    with ModelServer(always("Answer: 10"), models=["m"]) as models:
        asked = ("eval", "run", "--arms", "single", "--limit", "2", "--model", "openai:m")
        report = contend(*asked, OPENAI_BASE_URL=models.openai_url, OPENAI_API_KEY="sk-none")
    assert "questions (version 1); 2 items" in report
    assert "| single |" in report
