"""Forecast turns stored by earlier releases."""

from datetime import UTC, datetime
from typing import Any

import pytest

from contend.graph.errors import ModelFailed
from contend.graph.values import Degradation, Seat, Usage, WorkSpan
from contend.nodes.forecast import calls

SEAT = Seat(id="optimist", name="Optimist", role="optimist", model="fake:one")
THEN = datetime(2026, 1, 1, tzinfo=UTC)
LOST = WorkSpan(started_at=THEN, ended_at=THEN, calls=1, usage=Usage(input_tokens=3))
RETRIED = Degradation(seat="optimist", round=2, what="retried", why="busy")


async def _speak_as_stored(monkeypatch: pytest.MonkeyPatch, **stored: Any) -> Any:
    async def found(*_: object) -> dict[str, Any]:
        return {"spoken": None, "degraded": [], "spans": [], **stored}

    monkeypatch.setattr(calls, "_speak_once", found)
    unused: Any = None
    return await calls.speak({}, unused, SEAT, "propose", "closing", None, unused)


async def test_a_stored_failure_of_release_0_1_keeps_its_reason_and_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    why = "Optimist (fake:one): no answer"
    failure = await _speak_as_stored(
        monkeypatch, what="failed", why=why, degraded=[RETRIED], spans=[LOST]
    )
    assert isinstance(failure, ModelFailed)
    assert calls.why_missing(failure) == why
    reported = Degradation(what="sat_out", why=why)
    assert calls.without_turn(failure, reported) == {
        "turns": [],
        "degraded": [RETRIED, reported],
        "spans": [LOST],
        "given_up": [],
    }


async def test_a_stored_late_turn_of_release_0_1_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failure = await _speak_as_stored(monkeypatch, what="out_of_time", why="it was due 3 s ago")
    assert calls.why_missing(failure) == "it was due 3 s ago"
    assert calls.without_turn(failure, RETRIED)["spans"] == []


async def test_reads_a_stored_turn_of_release_0_1(monkeypatch: pytest.MonkeyPatch) -> None:
    spoken = {"turn": "a turn", "raw": "", "degraded": []}
    assert await _speak_as_stored(monkeypatch, what="", why="", spoken=spoken) == spoken
