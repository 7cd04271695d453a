"""Compares parallel seats with the slowest call, and measures how cacheable prompts are."""

import asyncio
import json
import time
from collections.abc import Iterable, Sequence
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.harness import (
    ModelProcess,
    Result,
    Seen,
    debate,
    in_steps,
    model_process,
    replay_steps,
    settings,
    wall,
)
from benchmarks.latency import pace

if TYPE_CHECKING:
    from contend.debates.events import Event
    from contend.graph.settings import DebateSettings

ROUND_LIMIT = 1.1
DEBATE_LIMIT = 1.05
_SECONDS = 1.0
_RUNS, _SHORT_RUNS = 3, 9
_SEATS = 5
_REFINERS = 4
# A refine debate of two rounds: answers, twice feedback and refinements, the merge, the score.
_REFINE_STEPS = [_REFINERS, 1, _REFINERS, 1, _REFINERS, 1, 1]
_GROWING = (3, 5, 8)
_DEBATERS = 3
_BYTES_PER_TOKEN = 4


def results() -> list[Result]:
    """Measure parallel rounds, conviction checks, a refine debate, and growing prompts."""
    with model_process(*pace(_SECONDS)) as server:
        timed = [_first_round(server), _checks(server), _refining(server)]
    with model_process("--tokens", "300") as server:
        grown = [
            _prompts(server, "adversarial", _adversarial),
            _prompts(server, "forum with a judge", partial(_forum, judge_mode="external_judge")),
            _prompts(server, "forum by concession", partial(_forum, judge_mode="self_convergence")),
            _prompts(server, "refine", refine_settings),
        ]
    return timed + grown


class _Stopwatch:
    def __init__(self) -> None:
        self._came: list[tuple[str, int | None, str, float]] = []

    def __call__(self, event: "Event") -> None:
        phase = str(event["metadata"].get("phase", ""))
        self._came.append((event["event"], event["round"], phase, time.monotonic()))

    def last(self, name: str, number: int, phase: str = "") -> float:
        """Return the time of the last matching event."""
        return max(at for *what, at in self._came if what == [name, number, phase])


def _first_round(server: ModelProcess) -> Result:
    """Measure the time from the first to the last event of round 1."""
    ratios, chosen = _Ratios(), _forum(_SEATS, 1, judge_mode="display_only")
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
    """Measure the time from the end of round 2 to the event with the remaining seats."""
    ratios, chosen = _Ratios(), _forum(_SEATS, 3, judge_mode="self_convergence")
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

    def add(self, took: float, calls: Sequence[Seen]) -> None:
        (yardstick,) = asyncio.run(replay_steps([calls]))
        self._bare.append(took / yardstick)
        self._strict.append(took / _slowest(calls))

    def result(self, what: str) -> Result:
        note = f"calls of {_SECONDS:g} s; {median(self._strict):.2f} over the server's own time"
        return Result(what, median(self._bare), ROUND_LIMIT, "x", note)


def _slowest(calls: Iterable[Seen]) -> float:
    return max(call.ended - call.started for call in calls)


def _refining(server: ModelProcess) -> Result:
    """Compare a refine debate with its critical path, which is the slowest call of every step."""
    ratios, strict = [], []
    chosen = refine_settings(_REFINERS, 2)
    for _ in range(_RUNS):
        took = wall(partial(debate, chosen))
        steps = in_steps(server.take_calls(), _REFINE_STEPS)
        ratios.append(took / wall(partial(replay_steps, steps)))
        strict.append(took / sum(_slowest(step) for step in steps))
        server.take_calls()
    what = f"refine with {_REFINERS} models and 2 rounds over its critical path"
    note = f"{len(_REFINE_STEPS)} steps; {median(strict):.2f} over the server's own time"
    return Result(what, median(ratios), DEBATE_LIMIT, "x", note)


def _prompts(server: ModelProcess, name: str, settings_of: Any) -> Result:
    """Measure the growth of prompts with each round, and the share that a provider can cache."""
    shown, share = [], 0.0
    for rounds in _GROWING:
        asyncio.run(debate(settings_of(_DEBATERS, rounds)))
        sent, known = _sent_and_known(server.take_calls())
        share = 100 * known / sent
        tokens = sent / _BYTES_PER_TOKEN / 1000
        shown.append(f"{rounds} rounds: {tokens:.0f}k tokens, {share:.0f} %")
    what = f"{name}: stable prefix of all prompts, {_GROWING[-1]} rounds"
    note = (
        f"{'; '.join(shown)}; {_DEBATERS} models debate; four bytes a token, replies of 300 words"
    )
    return Result(what, share, unit="%", note=note)


def _sent_and_known(calls: Sequence[Seen]) -> tuple[int, int]:
    """Return the total size of the prompts, and of prefixes that the model has already received."""
    before: dict[str, list[bytes]] = {}
    sent = known = 0
    for call in calls:
        prompt = "\n".join(_text(message) for message in call.messages).encode()
        earlier = before.setdefault(call.model, [])
        known += max((_shared(prompt, other) for other in earlier), default=0)
        sent += len(prompt)
        earlier.append(prompt)
    return sent, known


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return f"{message['role']}: {content if isinstance(content, str) else json.dumps(content)}"


def _shared(one: bytes, other: bytes) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _adversarial(_: int, rounds: int) -> "DebateSettings":
    from contend.graph.settings import AdversarialSettings

    return AdversarialSettings.model_validate(settings(min_rounds=rounds, max_rounds=rounds))


def _forum(seats: int, rounds: int, **changes: Any) -> "DebateSettings":
    from contend.graph.settings import ForumSettings

    return ForumSettings.model_validate(_table(seats) | {"max_rounds": rounds} | changes)


def refine_settings(seats: int, rounds: int) -> "DebateSettings":
    """Return settings for a refine debate that runs the full number of rounds."""
    from contend.graph.settings import RefineSettings

    return RefineSettings.model_validate(_table(seats) | {"max_debate_rounds": rounds})


def _table(seats: int) -> dict[str, Any]:
    """Return settings with a separate model for every seat, to track prefixes by seat."""
    given = [{"name": f"Seat {n}", "model": f"openai:seat-{n}"} for n in range(1, seats + 1)]
    calm = {"max_retries": 0, "templates": False, "embedding_model": "embedded:minilm-l6"}
    return {"seats": given, "judge_model": "openai:judge", **calm}
