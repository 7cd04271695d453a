"""Many parallel debates on a busy machine end without repeated calls."""

import asyncio
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from contend import create_debate
from contend.graph.record import DebateRecord
from contend.graph.settings import data_home
from tests.cli.support import ROOT, Command, debaters
from tests.faults.test_providers import SPEAKERS, speak
from tests.support.forecasting import forecasters
from tests.support.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

# More for a measurement: CONTEND_TEST_FORECASTS=300 CONTEND_TEST_HOGS=8.
FORECASTS = int(os.environ.get("CONTEND_TEST_FORECASTS", "4"))
# 500 for a measurement.
DEBATES_IN_MEMORY = int(os.environ.get("CONTEND_TEST_DEBATES", "50"))
HOGS = int(os.environ.get("CONTEND_TEST_HOGS", "1"))
DEBATES, FORECASTS_AT_ONCE = 100, 32
MEGABYTES_MORE = 60
SHORT = {"min_rounds": 1, "max_rounds": 1, "templates": False, "model": "openai:m1"}


@pytest.fixture(autouse=True)
def hogs() -> Iterator[None]:
    """Run processes that use all available CPU time."""
    with ExitStack() as stack:
        for _ in range(HOGS):
            hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(hog.wait)
            stack.callback(hog.kill)
        yield


async def _run(limit: asyncio.Semaphore, question: str, **settings: Any) -> DebateRecord:
    async with limit:
        return await create_debate(question, **settings).result()


def _assert_each_paid_once(server: ModelServer) -> None:
    """Check that no call was repeated, ignoring nonces."""
    paid = Counter(re.sub(r"[0-9a-f]{8,}", "", call.request.text) for call in server.calls)
    assert [text for text, count in paid.items() if count > 1] == []
    assert not list((data_home() / "unsaved").rglob("*.writes"))
    with closing(sqlite3.connect(data_home() / "contend.db")) as opened:
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_runs_a_hundred_debates_in_parallel(server: ModelServer) -> None:
    server.script = debaters()
    at_once = asyncio.Semaphore(DEBATES)
    asked = (_run(at_once, f"Is {number} a good number?", **SHORT) for number in range(DEBATES))
    ended = await asyncio.gather(*asked)
    assert Counter((each.status, each.error) for each in ended) == {("done", None): DEBATES}
    assert len(server.calls) == 4 * DEBATES
    _assert_each_paid_once(server)


async def test_runs_many_forecasts_in_parallel(server: ModelServer) -> None:
    server.script = forecasters()
    at_once = asyncio.Semaphore(FORECASTS_AT_ONCE)
    more: dict[str, Any] = {"protocol": "forecast", "model": "openai:m1", "overall_timeout": 3600}
    outcomes = ["yes: It opens", "no: It does not"]
    asked = (
        _run(at_once, f"Will bridge {number} open?", outcomes=outcomes, **more)
        for number in range(FORECASTS)
    )
    ended = await asyncio.gather(*asked)
    assert Counter((each.status, each.error) for each in ended) == {("done", None): FORECASTS}
    assert len(server.calls) == 31 * FORECASTS
    _assert_each_paid_once(server)


def test_memory_does_not_grow_with_the_number_of_debates(
    server: ModelServer, tmp_path: Path
) -> None:
    server.script, server.models = speak, list(SPEAKERS)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.faults.many_debates", str(DEBATES_IN_MEMORY)],
        env=Command(tmp_path / "memory", server).env,
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    result = json.loads(ran.stdout)
    assert Counter(each["status"] for each in result["ended"]) == {"done": DEBATES_IN_MEMORY}
    first, last = result["megabytes"]
    sys.stdout.write(f"{first:.0f} MB after a fifth of the debates, {last:.0f} MB after all\n")
    assert last - first < MEGABYTES_MORE
