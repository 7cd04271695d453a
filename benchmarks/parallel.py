"""Compares the time of parallel seats with the time of their slowest call."""

import asyncio
import time
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.harness import (
    ModelProcess,
    ObservedCall,
    Result,
    debate,
    model_process,
    pace,
    replay_steps,
    slowest,
)

if TYPE_CHECKING:
    from contend.debates.events import Event
    from contend.graph.settings import DebateSettings

ROUND_LIMIT = 1.1
_SECONDS = 1.0
_RUNS, _SHORT_RUNS = 3, 9
_SEATS = 5


def results() -> list[Result]:
    with model_process(*pace(_SECONDS)) as server:
        return [_first_round(server), _checks(server)]


class _Stopwatch:
    def __init__(self) -> None:
        self._came: list[tuple[str, int | None, str, float]] = []

    def __call__(self, event: "Event") -> None:
        phase = str(event["metadata"].get("phase", ""))
        self._came.append((event["event"], event["round"], phase, time.monotonic()))

    def last(self, name: str, number: int, phase: str = "") -> float:
        return max(at for *what, at in self._came if what == [name, number, phase])


def _first_round(server: ModelProcess) -> Result:
    ratios, chosen = _Ratios(), forum_settings(_SEATS, 1, judge_mode="display_only")
    asyncio.run(debate(chosen))  # imports and caches
    server.take_calls()
    for _ in range(_SHORT_RUNS):
        watch = _Stopwatch()
        asyncio.run(debate(chosen, watch))
        took = watch.last("round_complete", 1) - watch.last("round_start", 1)
        ratios.add(took, server.take_calls())
        server.take_calls()
    return ratios.result(f"round 1 of {_SEATS} seats over its slowest call")


def _checks(server: ModelProcess) -> Result:
    ratios, chosen = _Ratios(), forum_settings(_SEATS, 3, judge_mode="self_convergence")
    for _ in range(_RUNS):
        watch = _Stopwatch()
        asyncio.run(debate(chosen, watch))
        proposed_at = watch.last("seat_complete", 2, "propose")
        calls = server.take_calls()[2 * _SEATS : 3 * _SEATS]
        ratios.add(watch.last("convergence_status", 2) - proposed_at, calls)
        server.take_calls()
    return ratios.result(f"{_SEATS} conviction checks over the slowest")


class _Ratios:
    """Ratios of the time for a step to the time for its calls.

    The baseline is the bare client, which makes the same calls concurrently. The note gives a
    stricter ratio, to the slowest call measured by the server.
    """

    def __init__(self) -> None:
        self._bare: list[float] = []
        self._strict: list[float] = []

    def add(self, took: float, calls: Sequence[ObservedCall]) -> None:
        (yardstick,) = asyncio.run(replay_steps([calls]))
        self._bare.append(took / yardstick)
        self._strict.append(took / slowest(calls))

    def result(self, what: str) -> Result:
        note = f"calls of {_SECONDS:g} s; {median(self._strict):.2f} over the server's own time"
        return Result(what, median(self._bare), ROUND_LIMIT, "x", note)


def forum_settings(seats: int, rounds: int, **changes: Any) -> "DebateSettings":
    from contend.graph.settings import ForumSettings

    return ForumSettings.model_validate(debaters(seats) | {"max_rounds": rounds} | changes)


def refine_settings(seats: int, rounds: int) -> "DebateSettings":
    from contend.graph.settings import RefineSettings

    return RefineSettings.model_validate(debaters(seats) | {"max_debate_rounds": rounds})


def debaters(seats: int) -> dict[str, Any]:
    """Return settings with a separate model for every seat, to track prefixes by seat."""
    given = [{"name": f"Seat {n}", "model": f"openai:seat-{n}"} for n in range(1, seats + 1)]
    calm = {"max_retries": 0, "templates": False, "embedding_model": "embedded:minilm-l6"}
    return {"seats": given, "judge_model": "openai:judge", **calm}
