"""Every command of the README is run as it stands there."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import QUESTION, ROOT, Command, Ended, debaters
from tests.support.model_server import ModelServer

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
COMMANDS = [line for block in BLOCKS for line in block.splitlines()]
# These two would test the tests and start a server that never ends; tests/dev starts the latter.
ONLY_SHOWN = ("make test", "make dev")
MODELS = ["qwen3:32b", "llama3.3:70b", "gpt-5-mini", "mistralai/mistral-large"]


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=MODELS) as running:
        yield running


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer) -> Command:
    (tmp_path / "question.txt").write_text("Which one?", encoding="utf-8")
    (tmp_path / "settings.yaml").write_text("min_rounds: 2\n", encoding="utf-8")
    command = Command(tmp_path / "home", models)
    command.env |= {
        "PATH": f"{Path(sys.executable).parent}:{command.env['PATH']}",
        "OPENROUTER_BASE_URL": models.openrouter_url,
        "OPENROUTER_API_KEY": "or-canary-0123456789abcdef",
    }
    return command


def _debate(contend: Command, *, waiting: bool) -> str:
    pause = ["--pause", "each_round"] if waiting else []
    asked = contend("ask", QUESTION, "-m", "openai:gpt-5-mini", "--json", *pause)
    assert asked.code == (3 if waiting else 0)
    return str(asked.json["id"])


def _run(contend: Command, line: str) -> Ended:
    of_the_project = line.startswith((".", "make"))
    ran = subprocess.run(
        ["bash", "-c", line],
        env=contend.env,
        cwd=ROOT if of_the_project else contend.home.parent,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return Ended(ran.returncode, ran.stdout, ran.stderr)


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) > 15
    assert all(line.startswith(("make ", "contend ", ". ")) for line in COMMANDS)


@pytest.mark.parametrize("line", COMMANDS)
def test_command(line: str, contend: Command) -> None:
    if line in ONLY_SHOWN:
        line = line.replace("make", "make -n")
    if " ID" in line:
        line = line.replace(" ID", f" {_debate(contend, waiting='resume' in line)}")
    # What make set up stays as it is, whatever the times of its files.
    ended = _run(contend, line.replace("make ask", "make -o .venv/.ready ask"))
    waits = "--pause each_round" in line or ("resume" in line and "--finish" not in line)
    assert ended.code == (3 if waits else 0), ended.err
    assert "Traceback" not in ended.err


def test_every_local_link_leads_somewhere() -> None:
    targets = re.findall(r"\]\((?!http)([^)#]+)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
