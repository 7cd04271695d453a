"""Working time, unaffected by changes to the system clock."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from contend import nodes
from contend.nodes import timing
from contend.nodes.timing import busy_ms, intervals, span_since, start_clock, steady_now


class Clocks:
    """A settable wall clock and a monotonic clock."""

    min = datetime.min  # noqa: DTZ901 - as in the class it stands for

    def __init__(self) -> None:
        self.wall, self.steady = datetime(2026, 1, 1, tzinfo=UTC), 100.0

    def now(self, _: object) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def work(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.steady += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(timing, "datetime", clocks)
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=clocks.monotonic))
    start_clock()
    return clocks


@pytest.mark.parametrize("minutes", [10, -10])
def test_setting_the_clock_does_not_change_working_time(minutes: int, clocks: Clocks) -> None:
    began = steady_now()
    clocks.work(2)
    inner = steady_now()
    clocks.wall += timedelta(minutes=minutes)
    clocks.work(3)
    spans = [span_since(began), span_since(inner)]
    assert [busy_ms(intervals([span])) for span in spans] == [5000, 3000]
    assert busy_ms(intervals(spans)) == 5000


def test_each_run_starts_at_the_wall_clock_time(clocks: Clocks) -> None:
    clocks.wall += timedelta(minutes=10)
    assert steady_now() == clocks.wall - timedelta(minutes=10)
    start_clock()
    assert steady_now() == clocks.wall


def test_no_node_reads_the_wall_clock() -> None:
    files = [file for folder in nodes.__path__ for file in Path(folder).rglob("*.py")]
    reading = {file.name for file in files if "datetime.now(" in file.read_text("utf-8")}
    assert reading == {"timing.py"}
