"""Compares debates of every protocol with the critical path of their model calls."""

from collections.abc import Iterator
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import forecast
from benchmarks.harness import (
    Result,
    debate,
    in_steps,
    model_process,
    pace,
    replay_steps,
    settings,
    slowest,
    wall,
)
from benchmarks.moderated import STEPS as MODERATED_STEPS
from benchmarks.moderated import moderated_settings
from benchmarks.parallel import forum_settings, refine_settings

if TYPE_CHECKING:
    from contend.graph.settings import DebateSettings

LIMIT = 1.03
# The seconds that a call takes, and how often each debate is run.
_CALLS = ((0.25, 5), (1.0, 3))
_SEATS = 3


class _Case(NamedTuple):
    protocol: str
    settings: "DebateSettings"
    steps: list[int]
    """How many calls each step makes at once."""


def results() -> list[Result]:
    found = []
    for seconds, runs in _CALLS:
        with model_process(*pace(seconds)) as server:
            found += [_compare(server, case, seconds, runs) for case in _cases()]
        found.append(forecast.critical_path(seconds, runs, LIMIT))
    return found


def _cases() -> Iterator[_Case]:
    from contend.graph.settings import AdversarialSettings

    yield _Case("adversarial", AdversarialSettings.model_validate(settings()), [1] * 8)
    by_judge = forum_settings(_SEATS, 3, judge_mode="external_judge")
    yield _Case("forum", by_judge, [_SEATS, *[1] * _SEATS, 1, *[1] * _SEATS, 1, 1, 1])
    # Answers, twice feedback and refined answers, the merge, the score.
    refine = refine_settings(_SEATS, 2)
    yield _Case("refine", refine, [_SEATS, 1, _SEATS, 1, _SEATS, 1, 1])
    yield _Case("moderated", moderated_settings(), MODERATED_STEPS)


def _compare(server: Any, case: _Case, seconds: float, runs: int) -> Result:
    """Return the median ratio of a debate's time to the bare client's time for the same steps.

    The baseline is the bare client, because a busy machine slows down the debate and the client
    equally. The note gives the ratio to the time measured by the server.
    """
    ratios, strict = [], []
    run = partial(debate, case.settings)
    wall(run)  # imports and caches
    server.take_calls()
    for _ in range(runs):
        took = wall(run)
        steps = in_steps(server.take_calls(), case.steps)
        ratios.append(took / wall(partial(replay_steps, steps)))
        strict.append(took / sum(slowest(step) for step in steps))
        server.take_calls()
    note = f"{sum(case.steps)} calls in {len(case.steps)} steps; "
    note += f"{median(strict):.2f} over the server's own time"
    what = f"{case.protocol}: wall-clock over its critical path, calls of {seconds:g} s"
    return Result(what, median(ratios), LIMIT, "x", note)
