"""Run every command in the README and in docs/."""

import contextlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contend.graph.forecast_contract.result import json_schemas
from tests.cli.actions.test_templates import librarian
from tests.cli.support import QUESTION, ROOT, Command, Ended
from tests.nodes.calls.test_evidence import PIXEL
from tests.retrieval.test_templates import GOOD
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer, Reply, Request

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


(EXAMPLE,) = _blocks(TEXTS[ROOT / "docs" / "forecast.md"], "json")
TABLES = _blocks(TEXTS[ROOT / "docs" / "batch.md"], "csv")
COMMANDS = list(
    dict.fromkeys(
        line
        for text in TEXTS.values()
        for block in _blocks(text, "bash")
        for line in re.sub(r" \\\n +", " ", block).splitlines()
    )
)
# These two would test the tests and start a server that never ends; tests/dev starts the latter.
ONLY_SHOWN = ("make test", "make dev")
# This one would serve for ever; tests/service starts it.
ONLY_EXPLAINED = "contend serve"
_SHELL = set("<>|$`~;&")
OLLAMA_MODELS = ["qwen3:32b", "llama3.3:70b", "qwen3:8b", "llama3.1:8b", "gemma3:12b"]
OPENROUTER_MODELS = [
    "openai/gpt-5-mini",
    "mistralai/mistral-large",
    "google/gemini-2.5-flash",
]
MODELS = [*OLLAMA_MODELS, *OPENROUTER_MODELS, "gpt-5-mini"]


def _any_model(request: Request) -> Reply | str:
    """Reply as forecasters to forecasts, and as debaters to everything else."""
    forecast = "forecasting panel" in request.instructions or "asks for a forecast" in request.user
    reply: Reply | str = forecasters()(request) if forecast else librarian(request)
    return reply


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(_any_model, models=MODELS) as running:
        yield running


@pytest.fixture
def contend(tmp_path: Path, models: ModelServer, embedding_model: str) -> Command:
    (tmp_path / "question.txt").write_text("Which one?", encoding="utf-8")
    (tmp_path / "settings.yaml").write_text("min_rounds: 2\n", encoding="utf-8")
    (tmp_path / "contract.txt").write_text("Pets need consent.", encoding="utf-8")
    (tmp_path / "better.md").write_text("A better answer.", encoding="utf-8")
    (tmp_path / "designs").mkdir()
    (tmp_path / "designs" / "queue.md").write_text("A queue and a worker.", encoding="utf-8")
    (tmp_path / "minutes").mkdir()
    (tmp_path / "minutes" / "may.md").write_text("Nobody minds dogs.", encoding="utf-8")
    (tmp_path / "chart.png").write_bytes(PIXEL)
    (tmp_path / "tea.md").write_text(GOOD, encoding="utf-8")
    (tmp_path / "request.json").write_text(EXAMPLE, encoding="utf-8")
    for name, table in zip(("questions.csv", "forecasts.csv"), TABLES, strict=True):
        (tmp_path / name).write_text(table, encoding="utf-8")
    command = Command(tmp_path / "home", models)
    command.env |= {
        "PATH": f"{Path(sys.executable).parent}:{command.env['PATH']}",
        "EDITOR": "sed -i '1s/^/To be clear: /'",
        "OPENROUTER_BASE_URL": models.openrouter_url,
        "OPENROUTER_API_KEY": "or-canary-0123456789abcdef",
        "CONTEND_PRICES": '{"openai:gpt-5-mini": [0.25, 2.0]}',
    }
    return command


def _debate(contend: Command, *, waiting: bool) -> str:
    pause = ["--pause", "each_round"] if waiting else []
    asked = contend.here("ask", QUESTION, "-m", "openai:gpt-5-mini", "--json", *pause)
    assert asked.code == (3 if waiting else 0)
    return str(asked.json["id"])


def _forecast(contend: Command) -> str:
    outcomes = ["--outcome", "yes: It opens", "--outcome", "no: It does not"]
    ask = ["ask", QUESTION, "-p", "forecast", "-m", "openai:gpt-5-mini", *outcomes]
    return str(contend.here(*ask, "--json").json["id"])


def _run(contend: Command, line: str) -> Ended:
    """Run the line in this process, or in a shell if it needs one."""
    if line.startswith("contend ") and not _SHELL & set(line):
        with contextlib.chdir(contend.home.parent):
            return contend.here(*shlex.split(line)[1:])
    of_the_project = line.startswith((".", "make"))
    ran = subprocess.run(
        ["bash", "-c", line],
        env=contend.env,
        cwd=ROOT if of_the_project else contend.home.parent,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    return Ended(ran.returncode, ran.stdout, ran.stderr)


def test_every_command_starts_with_a_known_program() -> None:
    assert len(COMMANDS) > 40
    assert all(line.startswith(("make ", "contend ", ". ")) for line in COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("line", COMMANDS)
def test_documented_command_runs(line: str, contend: Command) -> None:
    if line in ONLY_SHOWN:
        line = line.replace("make", "make -n")
    if line.startswith(ONLY_EXPLAINED):
        line = f"{ONLY_EXPLAINED} --help"
    if "scoreboard" in line:
        assert contend.here("resolve", _forecast(contend), "yes").code == 0
    if "--cassette" in line:
        recording = str(contend.home.parent / "debate.json")
        export = "export", _debate(contend, waiting=False), "--format", "cassette"
        assert contend.here(*export, "--output", recording).code == 0
    if " ID" in line:
        forecast = "resolve" in line
        debate = _forecast(contend) if forecast else _debate(contend, waiting="resume" in line)
        if "learn" in line:
            contend.here("rate", debate, "9")
        line = line.replace(" ID", f" {debate}")
    if " OTHER" in line:
        line = line.replace(" OTHER", f" {_debate(contend, waiting=False)}")
    # What make set up stays as it is, whatever the times of its files.
    ended = _run(contend, line.replace("make ask", "make -o .venv/.ready ask"))
    asks_a_person = "--pause each_round" in line or "=human" in line
    waits = asks_a_person or ("resume" in line and "--finish" not in line)
    assert ended.code == (3 if waits else 0), ended.err
    assert "Traceback" not in ended.err


def test_documented_request_matches_the_schema_example() -> None:
    assert json_schemas()["debate_request"]["examples"] == [json.loads(EXAMPLE)]


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", TEXTS[page], re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_local_link_has_a_target(page: Path) -> None:
    targets = re.findall(r"\]\((?!http)([^)#]*)#?([^)]*)\)", TEXTS[page])
    linked = [((page.parent / path).resolve() if path else page, part) for path, part in targets]
    assert [path for path, _ in linked if not path.exists()] == []
    assert [part for path, part in linked if part and part not in _anchors(path)] == []


def test_every_page_is_listed_in_the_docs_readme() -> None:
    listed = re.findall(r"\]\(([^)]+)\)", TEXTS[ROOT / "docs" / "README.md"])
    assert [page.name for page in PAGES[1:] if page.name not in {"README.md", *listed}] == []


def test_the_animated_picture_is_small_and_loads_nothing() -> None:
    picture = (ROOT / "docs" / "pictures" / "debate.svg").read_text("utf-8")
    assert len(picture) < 300_000
    assert "<script" not in picture
    assert re.findall(r"\w+://[^\"]+", picture) == ["http://www.w3.org/2000/svg"]
