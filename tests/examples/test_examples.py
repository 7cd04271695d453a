"""Run every example against the local model server."""

import json
import os
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from contend.graph.settings import FORMATS, SETTINGS
from tests.cli.support import ANSWER, ROOT, debaters
from tests.support.floor_server import SUMMARY, floor_script, with_block
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer, Reply, Request

pytestmark = pytest.mark.slow

EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))


def better_first(what: str, request: Request, reply: Reply) -> Reply:
    """Simulate a judge that gives the speaker for the ban higher scores."""
    if what != "stage":
        return reply
    found = re.search(r"(Speaker \w): They should\n", request.user)
    preferred = found[1] if found else "nobody"
    names = ("logical_coherence", "evidence_quality", "responsiveness", "persuasiveness")
    shown = request.user.split("### S")[1:]
    marks = [
        {"statement": f"S{n}"}
        | dict.fromkeys((*names, "rule_adherence"), 8 if preferred in text.splitlines()[0] else 6)
        for n, text in enumerate(shown, 1)
    ]
    return with_block(reply, request, scores=marks)


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(floor_script(better_first), models=["m", "vendor/judge"]) as running:
        yield running


def run(name: str, models: ModelServer, home: Path, *arguments: str) -> str:
    """Run an example in this process and return its output."""
    env = {
        "PATH": os.environ["PATH"],
        "CONTEND_HOME": str(home),
        "OPENAI_BASE_URL": models.openai_url,
        "OPENAI_API_KEY": "sk-canary-0123456789abcdef",
        "OPENROUTER_BASE_URL": models.openrouter_url,
        "OPENROUTER_API_KEY": "or-canary-0123456789abcdef",
        "OLLAMA_HOST": "http://127.0.0.1:1",
        "LANGSMITH_TRACING": "false",
        # Nothing is fetched in a test.
        "PIP_NO_INDEX": "1",
    }
    path, out = str(ROOT / "examples" / name), StringIO()
    with (
        patch.dict(os.environ, env, clear=True),
        patch.object(sys, "argv", [path, *arguments]),
        redirect_stdout(out),
    ):
        runpy.run_path(path, run_name="__main__")
    return out.getvalue()


def test_every_protocol_and_moderated_format_has_an_example() -> None:
    names = [*SETTINGS, *FORMATS]
    assert sorted(f"{name}.py" for name in names if name != "moderated") == EXAMPLES


def test_adversarial(models: ModelServer, tmp_path: Path) -> None:
    models.script = debaters()
    said = run("adversarial.py", models, tmp_path / "home", "openai:m")
    assert said.startswith(ANSWER)
    assert "Stopped after round 2: max_rounds" in said


def test_refine(models: ModelServer, tmp_path: Path) -> None:
    models.script = debaters()
    said = run("refine.py", models, tmp_path / "home", "openai:m")
    assert re.search(r"\nTokens written: \d+\n$", said)


def test_forum(models: ModelServer, tmp_path: Path) -> None:
    models.script = lambda _: "NOT CONVINCED: I still think so."
    said = run("forum.py", models, tmp_path / "home", "openai:m")
    for seat in ("ann", "ben", "cyd"):
        assert f"{seat}: NOT CONVINCED" in said
    assert "Ann wrote the answer (first_named):" in said


def test_forecast(models: ModelServer, tmp_path: Path) -> None:
    models.script = forecasters()
    said = run("forecast.py", models, tmp_path / "home", "openai:m")
    assert re.match(r"yes: 0\.\d+\nno: 0\.\d+\nAgreement of the roles: 0\.\d+\n$", said)


def test_formal(models: ModelServer, tmp_path: Path) -> None:
    said = run("formal.py", models, tmp_path / "home", "openrouter:m")
    assert "Ended: max_rounds" in said
    assert "Advocate A: 6.00 (logical_coherence 6.00" in said
    assert "Winner: nobody" in said
    assert SUMMARY in said
    assert {call.request.openrouter for call in models.calls} == {True}


def test_casual(models: ModelServer, tmp_path: Path) -> None:
    said = run("casual.py", models, tmp_path / "home", "openai:m")
    assert "Gio: This is the opening of Gio." in said
    assert list((tmp_path / "home" / "outputs").glob("*/*/index.txt"))
    assert not any("Score each" in call.request.user for call in models.calls)
    hosts = [
        c.request.instructions
        for c in models.calls
        if "You are the moderator" in c.request.instructions
    ]
    assert all("food puns" in system for system in hosts)


def test_educational(models: ModelServer, tmp_path: Path) -> None:
    said = run("educational.py", models, tmp_path / "home", "openai:m")
    assert SUMMARY in said
    (transcript,) = (tmp_path / "home" / "outputs").glob("*/*/transcript.md")
    assert "Jurist: rebuttal" in transcript.read_text()
    assert any("List the claims" in call.request.user for call in models.calls)


def test_competitive(models: ModelServer, tmp_path: Path) -> None:
    said = run("competitive.py", models, tmp_path / "home", "openai:m", "openrouter:vendor/judge")
    assert "Winner: Pro" in said
    assert "Contra: 6.00 (6 statements scored)" in said
    judged = [call for call in models.calls if "Score each" in call.request.user]
    assert len(judged) == 8
    assert {call.request.model for call in judged} == {"vendor/judge"}
    (index,) = (tmp_path / "home" / "outputs").glob("*/*/index.json")
    assert json.loads(index.read_text())["status"] == "done"


@pytest.mark.parametrize("name", ["formal.py", "competitive.py"])
def test_examples_report_an_unreadable_judge(
    name: str, models: ModelServer, tmp_path: Path
) -> None:
    usual = models.script

    def script(request: Request) -> Reply | str:
        judged = request.schema or "Score each" in request.user
        return "They were good." if judged else usual(request)

    models.script = script
    said = run(name, models, tmp_path / "home", "openai:m")
    assert said.count(": no valid score") == 2
    assert "Winner: nobody" in said
