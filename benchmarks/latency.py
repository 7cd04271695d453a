"""Wall-clock of a debate over the critical path of its model calls."""

from functools import partial
from statistics import median

from benchmarks.harness import Result, debate, model_process, replay, wall

LIMIT = 1.05
# Seconds a call takes, and how often the debate is run.
_CALLS = ((0.25, 5), (1.0, 3))
_TOKENS_PER_SECOND = 80


def results() -> list[Result]:
    """Return one result per call duration."""
    return [_result(seconds, runs) for seconds, runs in _CALLS]


def _result(seconds: float, runs: int) -> Result:
    """The median of ratios, each of a debate and the same calls made by the bare client.

    The bare client is the yardstick, not the server's clock: it is what the calls cost a program
    that does nothing else, and a busy machine slows both alike. The note gives the other ratio.
    """
    ratios, strict = [], []
    with model_process(*pace(seconds)) as server:
        wall(debate)  # imports and caches
        server.take_calls()
        for _ in range(runs):
            took = wall(debate)
            calls = server.take_calls()
            ratios.append(took / wall(partial(replay, calls)))
            strict.append(took / sum(call.ended - call.started for call in calls))
            server.take_calls()
    note = f"{len(calls)} calls in a row; {median(strict):.2f} over the server's own time"
    return Result(f"wall-clock over calls of {seconds:g} s", median(ratios), LIMIT, "x", note)


def pace(seconds: float) -> list[str]:
    """Delay half the time before the first token, as a fast hosted model does."""
    tokens = round(seconds * _TOKENS_PER_SECOND)
    rest = seconds / 2
    return ["--tokens", str(tokens), "--delay", str(rest), "--chunk-delay", str(rest / tokens)]
