import gzip
import json
import subprocess
import sys
from pathlib import Path

from tests.cli.support import ROOT, Command

RELEASE = ROOT / "tests" / "releases" / "release_0_2"


def test_graph_models_version_and_help_print_their_output(contend: Command) -> None:
    drawn = contend.here("graph").out
    assert "graph TD" in drawn
    assert "judge_continue" in drawn
    assert "not downloaded" in contend.here("models", "list").out
    assert contend.here("models", "list", "--json").json[0]["pulled"] is False
    version = contend("--version")
    assert version.out.startswith("contend ")
    shown = contend.here().out
    assert "Exit codes" in shown
    assert "Results:\n  list " in shown
    assert "Other:" not in shown
    bare = contend.here("models")
    assert (bare.code, bare.err) == (0, "")
    assert "Usage: contend models" in bare.out


def test_help_loads_nothing_heavy() -> None:
    """The exit path is the same as for other commands, so it must stay light too."""
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


READING = """
import json, os, sys
from contend.cli.completion import complete_debate, complete_model
from contend.cli.main import run
for home, debate in json.loads(sys.argv[1]).items():
    os.environ["CONTEND_HOME"] = home
    assert run(["list"]) == run(["show", debate]) == run(["rate", debate, "8"]) == 0
    assert run(["tree", debate]) == 0
    assert complete_debate(debate[:4]) and complete_model("")
assert run(["config"]) == 0
sys.exit(", ".join({"langgraph", "langchain_core"} & {*sys.modules}) or 0)
"""


def test_reading_debates_loads_no_langgraph(tmp_path: Path) -> None:
    """That import took most of the time until the first output."""
    stored = {}
    for file in sorted(RELEASE.glob("*.done.db.gz")):
        home = tmp_path / file.name.partition(".")[0]
        home.mkdir()
        (home / "contend.db").write_bytes(gzip.decompress(file.read_bytes()))
        told = json.loads((RELEASE / f"{home.name}.json").read_text("utf-8"))
        stored[str(home)] = told["record"]["id"]
    assert len(stored) == 6
    command = [sys.executable, "-c", READING, json.dumps(stored)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


def test_warns_about_dotenv_variables_that_redirect_data(contend: Command) -> None:
    lines = ("DATABASE_URL=postgresql://127.0.0.1:1/x", "LANGSMITH_ENDPOINT=http://127.0.0.1:1")
    (contend.home.parent / ".env").write_text("\n".join((*lines, "CONTEND_MAX_ROUNDS=2")))
    expected = (
        "Note: .env sets variables that control where data is sent or stored: "
        "DATABASE_URL, LANGSMITH_ENDPOINT.\n"
    )
    assert contend.here("keys", "list").err == expected
    assert contend.here("keys", "list", "--json").err == ""
