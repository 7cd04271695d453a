from functools import partial
from statistics import median

from benchmarks.harness import Result, debate, model_process, replay, wall

LIMIT = 1.03
# The seconds that a call takes, and how often the debate is run.
_CALLS = ((0.25, 5), (1.0, 3))
_TOKENS_PER_SECOND = 80


def results() -> list[Result]:
    return [_result(seconds, runs) for seconds, runs in _CALLS]


def _result(seconds: float, runs: int) -> Result:
    """Return the median ratio of a debate's time to the bare client's time for the same calls.

    The baseline is the bare client, because a busy machine slows down the debate and the client
    equally. The note gives the ratio to the time measured by the server.
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
    """Return options that spend half of each call before the first token, like hosted models."""
    tokens = round(seconds * _TOKENS_PER_SECOND)
    rest = seconds / 2
    return ["--tokens", str(tokens), "--delay", str(rest), "--chunk-delay", str(rest / tokens)]
