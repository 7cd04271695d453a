"""Every output shows the same tokens and time."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contend.debates.exports.wording import duration, usage_words
from tests.cli.support import Command, Ended
from tests.support.floor_server import floor_script
from tests.support.forecasting import QUESTION, forecasters
from tests.support.model_server import ModelServer

MODEL = ["-m", "openai:m", "--set", "retry_wait=0.01"]
MODERATED = ["ask", "Should it be rewritten?", "-p", "moderated", *MODEL, "--set", "round_count=1"]
FORECAST = ["ask", QUESTION, "-p", "forecast", "--yes", *MODEL, "--set", "max_rounds=1"]


def fact(ended: Ended, name: str) -> str:
    """Return the value shown for a name in the summary at the end."""
    found = re.findall(rf"^{name}\s\s+(.+)$", ended.out, re.MULTILINE)
    return str(found[-1]).strip()


@pytest.fixture(params=["moderated", "forecast"])
def models(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    script = floor_script() if request.param == "moderated" else forecasters()
    with ModelServer(script, models=["m"]) as running:
        yield running


def test_every_output_shows_the_same_tokens_and_time(
    contend: Command, tmp_path: Path, request: Any
) -> None:
    protocol = request.node.callspec.params["models"]
    live = contend.here(*(MODERATED if protocol == "moderated" else FORECAST))
    assert live.code == 0, live.err
    (listed,) = contend.here("list", "--json").json
    record = contend.here("show", listed["id"], "--json").json
    usage, total_ms = record["usage"], record["timing"]["total_ms"]
    tokens, time = usage_words(usage), duration(total_ms)
    assert usage["input_tokens"] > 0
    assert usage["without_usage"] == 0

    shown = contend.here("show", listed["id"])
    for ended in (live, shown):
        assert (fact(ended, "Tokens"), fact(ended, "Time")) == (tokens, time)
    assert (listed["usage"], listed["total_ms"]) == (usage, total_ms)
    assert f"{tokens}, {time}" in contend.here("list").out
    document = contend.here("export", listed["id"], "--format", "md").out
    assert f"Tokens: {tokens}. Time: {time}." in document
    folder = tmp_path / "folder"
    contend.here("export", listed["id"], "--format", "folder", "--output", str(folder))
    (metadata,) = folder.rglob("metadata.md")
    about = metadata.read_text("utf-8")
    assert tokens in about
    assert time in about
    if protocol == "moderated":
        assert record["duration_ms"] == total_ms
    else:
        result = record["forecast"]["metadata"]
        used = {"input": usage["input_tokens"], "output": usage["output_tokens"]}
        assert result["sonnet_tokens_used"] == used
        assert result["wall_clock_time_ms"] == total_ms
