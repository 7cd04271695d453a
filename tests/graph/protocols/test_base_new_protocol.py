"""A sixth protocol runs with new settings, a strategy, wiring and prompts."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.model_server import ModelServer, Reply, Request
from tests.test_layout import ROOMS, ROOT

SETTINGS = '''
"""Settings of a debate that one author has with itself."""

from typing import ClassVar

from pydantic import Field

from contend.graph.settings.base import DebateSettings, fallbacks_of, temperature_of
from contend.graph.values import Seat


class SoloSettings(DebateSettings):
    protocol: ClassVar[str] = "solo"

    drafts: int = Field(2, ge=1, le=9, description="How many drafts the author writes.")
    author_model: str = Field("ollama:qwen3:32b", description="Model that writes.")
    author_temperature: float = temperature_of(0.7, "author")
    author_fallbacks: tuple[str, ...] = fallbacks_of("author")

    @property
    def opening_seats(self) -> tuple[str, ...]:
        return ("author",)

    def build_seats(self) -> list[Seat]:
        return [self._seat("author"), self._seat("judge")]
'''

STRATEGY = '''
"""Solo: one author writes drafts and then the answer."""

from collections import Counter

from contend.graph.protocols.base import Strategy
from contend.graph.settings.solo import SoloSettings
from contend.graph.state import DebateState
from contend.graph.stop_reasons import StopDecision, stop


class SoloStrategy(Strategy[SoloSettings]):
    answering_role = "author"
    writer_role = "author"

    def __init__(self, settings: SoloSettings) -> None:
        super().__init__(settings)
        self.rounds = settings.drafts, settings.drafts
        self.max_steps = 2 * settings.drafts + 10

    def calls_by_role(self) -> tuple[Counter[str], Counter[str]]:
        calls = Counter(author=self.settings.drafts + 1)
        return calls, calls

    def stop_decision(self, state: DebateState) -> StopDecision | None:
        if state["round"] < self.settings.drafts:
            return None
        return stop("max_rounds", state["round"], "all drafts are written")


STRATEGY = SoloStrategy
'''

WIRING = '''
"""Solo: drafts, then the answer."""

from langgraph.graph import END, START

from contend.graph.routing import after_judging
from contend.graph.settings.solo import SoloSettings
from contend.graph.debate_graph import DebateGraph
from contend.nodes.judge_continue import judge_continue
from contend.nodes.propose import propose
from contend.nodes.retrieve import retrieve
from contend.nodes.score import score
from contend.nodes.store import store
from contend.nodes.synthesize import synthesize

builder = DebateGraph(SoloSettings)
builder.add_node(retrieve)
builder.add_node(propose)
builder.add_node(judge_continue)
builder.add_node(synthesize)
builder.add_node(score)
builder.add_node(store)
builder.add_edge(START, "retrieve")
builder.add_edge("retrieve", "propose")
builder.add_edge("propose", "judge_continue")
builder.add_conditional_edges("judge_continue", after_judging)
builder.add_edge("synthesize", "score")
builder.add_edge("score", "store")
builder.add_edge("store", END)

graph = builder.compile(name="solo")
'''

PROMPTS = {
    "system": "An author works on a question.\n\n{data_rule}",
    "author": "You are the author.",
    "author.first": "{question}\n\n{role}\n\nWrite the first draft.",
    "author.again": "{question}\n\n{role}\n\nWrite draft {round}.",
    "author.final": "{question}\n\n{role}\n\nWrite the answer.",
    "judge": "You are the judge.",
}

RATED = """Correctness: 8
Completeness: 8
Clarity: 8
Depth: 8
Justification: Good.
Would-benefit-from-finetune: false"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Create a copy of the product with the new protocol."""
    package = tmp_path / "site" / "contend"
    shutil.copytree(ROOT / "contend", package)
    for room in ROOMS:
        shutil.copytree(ROOT / room, package / room)
    settings = package / "graph" / "settings"
    listed = (settings / "__init__.py").read_text()
    solo = "from contend.graph.settings.solo import SoloSettings\n\nSETTINGS: "
    listed = listed.replace("SETTINGS: ", solo, 1)
    listed = listed.replace('    "forum": ', '    "solo": SoloSettings,\n    "forum": ', 1)
    (settings / "__init__.py").write_text(listed)
    (settings / "solo.py").write_text(SETTINGS.lstrip())
    (package / "graph" / "protocols" / "solo.py").write_text(STRATEGY.lstrip())
    (package / "graph" / "solo.py").write_text(WIRING.lstrip())
    (package / "prompts" / "solo").mkdir()
    for name, text in PROMPTS.items():
        (package / "prompts" / "solo" / f"{name}.md").write_text(text)
    return tmp_path / "site"


def _said(request: Request) -> Reply:
    if "You are the judge" in request.instructions:
        return Reply(RATED)
    return Reply(f"This is {request.user.splitlines()[-1].removeprefix('Write ')}")


@pytest.mark.slow
def test_new_protocol_works_in_ask_list_show_export_and_graph(site: Path, tmp_path: Path) -> None:
    def contend(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "contend", *arguments],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout

    with ModelServer(_said, models=["m"]) as models:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(site),
            "CONTEND_HOME": str(tmp_path / "home"),
            "OPENAI_BASE_URL": models.openai_url,
            "OPENAI_API_KEY": "sk-for-a-local-test-server",
            "CONTEND_TEMPLATES": "false",
        }
        asked = ["ask", "Why is the sky blue?", "-p", "solo", "-m", "openai:m"]
        shown = contend(*asked)
        assert "Author · openai:m" in shown
        assert "This is draft 2." in shown
        (listed,) = json.loads(contend("list", "--json"))
        assert listed["protocol"] == "solo"
        record = json.loads(contend("show", listed["id"], "--json"))
        assert [turn["id"] for turn in record["turns"]] == [
            *("r1.propose.author", "r2.propose.author", "r2.synthesize.author", "r2.score.judge")
        ]
        assert record["final_answer"] == "This is the answer."
        assert (record["stop_reason"], record["quality_score"]) == ("max_rounds", 8.0)
        assert "This is draft 2." in contend("export", listed["id"])
        assert "propose --> judge_continue" in contend("graph", "solo")
