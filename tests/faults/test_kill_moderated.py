"""The output folder of a killed moderated debate."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.actions.test_ask_moderated import ASK, SIDES
from tests.cli.support import Command, spoken
from tests.support.floor_server import floor_script
from tests.support.model_server import Call, ModelServer, Reply, Request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

KILLED_AT = 5


@pytest.fixture
def models() -> Iterator[ModelServer]:
    with ModelServer(floor_script(), models=["m"]) as running:
        yield running


def _index(home: Path) -> str:
    found = list((home / "outputs").glob("*/*/index.md"))
    return found[0].read_text("utf-8") if found else ""


def _rows(index: str) -> list[str]:
    return re.findall(r"\| \[(messages/\S+)\]\(", index)


def test_folder_of_a_killed_debate_is_readable_and_completed_on_resume(
    tmp_path: Path, models: ModelServer
) -> None:
    undisturbed = Command(tmp_path / "calm", models)(*ASK, *SIDES, "--json").json
    calls = len(models.calls)
    contend = Command(tmp_path / "killed", models)
    killed = False

    def endless(what: str, request: Request, reply: Reply) -> Reply:
        is_sixth = what == "argument" and "You are Ann" in request.user and not killed
        return replace(reply, text="word " * 900, chunk_delay=0.02) if is_sixth else reply

    def kill(call: Call, _sent: int) -> None:
        nonlocal killed
        writing = "Bring one argument" in call.request.user and not killed
        if writing and len(_rows(_index(contend.home))) == KILLED_AT:
            killed = True
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    models.script, models.on_chunk = floor_script(endless), kill
    process = contend.start(*ASK, *SIDES, "--quiet")
    process.communicate()
    models.check()
    assert process.returncode == -signal.SIGKILL

    index = _index(contend.home)
    folder = next((contend.home / "outputs").glob("*/*/index.md")).parent
    assert "**Status:** not finished" in index
    assert f"**Messages:** {KILLED_AT} so far" in index
    kept = sorted(p.name for p in (folder / "messages").iterdir())
    assert [f"messages/{name}" for name in kept] == _rows(index)
    assert len(kept) == KILLED_AT
    before = {name: (folder / "messages" / name).read_bytes() for name in kept}

    (listed,) = contend.here("list", "--json").json
    record = contend("resume", listed["id"], "--quiet", "--json").json
    assert spoken(record) == spoken(undisturbed)
    assert record["output_dir"] == str(folder)
    names = sorted(p.name for p in (folder / "messages").iterdir())
    assert len(names) == len(record["turns"])
    assert [name[:3] for name in names] == [f"{n:03d}" for n in range(1, len(names) + 1)]
    assert {n: (folder / "messages" / n).read_bytes() for n in kept} == before
    assert f"**Messages:** {len(names)}\n" in _index(contend.home)
    assert "**Status:** done" in _index(contend.home)
    assert not list(folder.rglob("*.new"))
    finished = sum(call.completed for call in models.calls[calls:])
    assert finished == calls
