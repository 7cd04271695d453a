"""Help, version and the small commands."""

import subprocess
import sys

from tests.cli.support import ROOT, Command


def test_graph_models_version_and_help(contend: Command) -> None:
    drawn = contend.here("graph").out
    assert "graph TD" in drawn
    assert "judge_continue" in drawn
    assert "not downloaded" in contend.here("models", "list").out
    assert contend.here("models", "list", "--json").json[0]["pulled"] is False
    version = contend("--version")
    assert version.out.startswith("contend ")
    assert "Exit codes" in contend.here().out
    bare = contend.here("models")
    assert (bare.code, bare.err) == (0, "")
    assert "Usage: contend models" in bare.out


def test_help_loads_nothing_heavy() -> None:
    """The process ends through the same code as any other, which must stay light as well."""
    code = (
        "import sys\n"
        "sys.argv = ['contend', '--help']\n"
        "from contend.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'langgraph', 'langchain_core', 'pydantic', 'numpy'}\n"
        "sys.exit(','.join(heavy & {*sys.modules}) or 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
