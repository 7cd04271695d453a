"""The GitHub action is valid, runs and is safe with untrusted text."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.support import ANSWER, ROOT, Command, debaters
from tests.support.model_server import ModelServer, Reply
from tests.support.project import copy_project

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / "examples" / "github").glob("*.yml"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
TITLE = '"; touch pwned; echo "$(touch pwned)` `touch pwned`'
BODY = "It's ${{ secrets.KEY }} $(touch pwned)\n\nend-0\nanswer<<EOF"


# What the author of a pull request may put into the folder that is checked out.
MODULE = (
    "from pathlib import Path\nPath(__file__).with_name('pwned').touch()\nraise SystemExit(1)\n"
)
HOSTILE = {
    **dict.fromkeys(("json.py", "secrets.py", "sitecustomize.py", "pip/__main__.py"), MODULE),
    "pip/__init__.py": "",
    ".env": "DATABASE_URL=postgresql://127.0.0.1:1/theirs\n",
}


def _jobs() -> Iterator[dict[str, Any]]:
    for path in WORKFLOWS:
        yield from yaml.safe_load(path.read_text("utf-8"))["jobs"].values()


def test_action_is_composite_and_describes_inputs_and_outputs() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert all(each["description"] for each in {**ACTION["inputs"], **ACTION["outputs"]}.values())
    assert all("shell" in step for step in STEPS if "run" in step)


def test_no_script_interpolates_untrusted_text() -> None:
    steps = [*STEPS, *(step for job in _jobs() for step in job["steps"])]
    scripts = [step["run"] for step in steps if "run" in step]
    assert len(scripts) == 3
    assert not any("${{" in script for script in scripts)


def test_no_step_runs_code_or_reads_settings_of_the_checkout() -> None:
    for step in (step for step in STEPS if "run" in step):
        assert step["working-directory"] == "${{ runner.temp }}"
        assert step["run"].count("python ") == step["run"].count("python -I ") > 0


def test_example_workflow_uses_existing_inputs_and_outputs() -> None:
    (job,) = _jobs()
    debate, use = job["steps"]
    assert set(debate["with"]) <= set(ACTION["inputs"])
    assert use["env"] == {"ANSWER": "${{ steps.contend.outputs.answer }}"}
    assert "answer" in ACTION["outputs"]


class Runner:
    """Run a step as GitHub does."""

    def __init__(self, contend: Command) -> None:
        self.folder = contend.home.parent
        self.workspace = self.folder / "workspace"
        for name, text in HOSTILE.items():
            file = self.workspace / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.summary, self.output = self.folder / "summary", self.folder / "output"
        self.env = contend.env | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(self.folder),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.output),
            **dict.fromkeys(("QUESTION", "MODEL", "SETTINGS", "PR_TITLE", "PR_BODY"), ""),
            "PROTOCOL": "adversarial",
        }

    def __call__(self, name: str, **env: str) -> subprocess.CompletedProcess[str]:
        step = next(step for step in STEPS if step.get("name") == name)
        folders = {"": self.workspace, "${{ runner.temp }}": self.folder}
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env=self.env | env,
            cwd=folders[step.get("working-directory", "")],
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )

    def outputs(self) -> dict[str, str]:
        """Read the file as GitHub does."""
        lines, found = iter(self.output.read_text("utf-8").splitlines()), {}
        for line in lines:
            name, is_long, end = line.partition("<<")
            if is_long:
                found[name] = "\n".join(iter(lambda: next(lines), end))
            else:
                name, _, found[name] = line.partition("=")
        return found


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(debaters(), models=["m"]) as running:
        yield running


@pytest.fixture
def runner(tmp_path: Path, models: ModelServer) -> Runner:
    return Runner(Command(tmp_path / "home", models))


@pytest.mark.slow
def test_debates_a_pull_request_with_hostile_text(runner: Runner, models: ModelServer) -> None:
    given = {"MODEL": "openai:m", "SETTINGS": "min_rounds=1\nmax_rounds=2\n"}
    ended = runner("Debate", PR_TITLE=TITLE, PR_BODY=BODY, **given)
    assert ended.returncode == 0, ended.stderr
    assert not list(runner.folder.rglob("pwned*"))
    sent = models.calls[0].request.user
    assert "Should this pull request be merged" in sent
    assert TITLE in sent
    assert BODY in sent
    outputs = runner.outputs()
    assert outputs["answer"] == ANSWER
    assert Path(outputs["file"]).read_text("utf-8") == runner.summary.read_text("utf-8")
    assert "This is critique 2" in runner.summary.read_text("utf-8")
    assert len(outputs["debate-id"]) == 36
    assert len(models.calls) == 6


@pytest.mark.slow
def test_a_failed_debate_fails_the_step_without_an_answer(
    runner: Runner, models: ModelServer
) -> None:
    nothing = runner("Debate")
    assert nothing.returncode == 2
    assert "give the input 'question'" in nothing.stdout
    models.script = lambda _: Reply(status=400)
    failed = runner("Debate", QUESTION="Why?", MODEL="openai:m")
    assert failed.returncode == 4
    assert "Error: " in failed.stderr
    assert not runner.output.exists()


@pytest.mark.slow
def test_installs_contend_from_the_action_folder(runner: Runner, tmp_path: Path) -> None:
    source = tmp_path / "action"
    copy_project(source)
    # Its dependencies are installed here already.
    pip = {"PIP_NO_DEPS": "1", "PIP_TARGET": str(tmp_path / "installed")}
    pip |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    ended = runner("Install Contend", ACTION_PATH=str(source), **pip)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "installed" / "contend" / "cli" / "main.py").exists()
    assert not list(runner.folder.rglob("pwned*"))
